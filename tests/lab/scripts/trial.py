"""Trains a small network at a learning rate, and saves it: an ordinary script with an argument."""

from __future__ import annotations

import argparse

import keras
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--rows", type=int, default=6400)
args = parser.parse_args()

keras.utils.set_random_seed(7)
rows = np.random.default_rng(0).standard_normal((args.rows, 32)).astype("float32")
model = keras.Sequential(
    [
        keras.layers.Dense(args.width, activation="relu"),
        keras.layers.Dense(args.width, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(keras.optimizers.SGD(args.lr), "mse")
model.fit(rows, rows.sum(axis=1), batch_size=64, epochs=args.epochs, verbose=0)
model.save("trained.keras")
