"""Train a small convolutional network on 1,797 real handwritten digits, 8 by 8 pixels.
Source of the data: README.md beside this file."""

import argparse
from pathlib import Path

import keras
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

keras.utils.set_random_seed(args.seed)

data = np.load(Path(__file__).parent / "digits.npz")
order = np.random.default_rng(0).permutation(len(data["labels"]))
images = data["images"][order, :, :, None].astype("float32") / 16
labels = data["labels"][order].astype("int32")

model = keras.Sequential(
    [
        keras.Input(images.shape[1:]),
        keras.layers.Conv2D(16, 3, padding="same", activation="tanh"),
        keras.layers.Conv2D(32, 3, padding="same", activation="tanh"),
        keras.layers.AveragePooling2D(2),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.SGD(learning_rate=0.05, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(images, labels, batch_size=args.batch_size, epochs=args.epochs, validation_split=0.2, verbose=2)
model.save("digits.keras")
