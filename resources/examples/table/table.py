"""Learn from a table: 178 wines, 13 chemical measurements each, one column says which of three cultivars.
Source of the data: README.md beside this file."""

import argparse
import csv
from pathlib import Path

import keras
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

keras.utils.set_random_seed(args.seed)

with (Path(__file__).parent / "wine.csv").open(newline="") as file:
    header, *rows = csv.reader(file)
table = np.random.default_rng(args.seed).permutation(np.array(rows, dtype="float32"))
measurements, cultivar = table[:, :-1], table[:, -1].astype("int32")
print(f"{len(table)} wines, {len(header) - 1} measurements each")

normalise = keras.layers.Normalization()
normalise.adapt(measurements)

inputs = keras.Input((measurements.shape[1],))
hidden = keras.layers.Dense(32, activation="tanh")(normalise(inputs))
outputs = keras.layers.Dense(3)(hidden)
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(0.005),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(
    measurements, cultivar, batch_size=args.batch_size, epochs=args.epochs, validation_split=0.2, verbose=2
)
model.save("wine.keras")
