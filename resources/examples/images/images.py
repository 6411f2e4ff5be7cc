"""Learn from a folder of pictures: photos/NAME/*.png, one folder for each class.
Source of the pictures: README.md beside this file."""

import argparse
from pathlib import Path

import keras

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

keras.utils.set_random_seed(args.seed)

train, validation = keras.utils.image_dataset_from_directory(
    Path(__file__).parent / "photos",
    color_mode="grayscale",
    image_size=(16, 16),
    batch_size=args.batch_size,
    validation_split=0.2,
    subset="both",
    seed=args.seed,
)
classes = train.class_names

model = keras.Sequential(
    [
        keras.Input((16, 16, 1)),
        keras.layers.Rescaling(1 / 127.5, offset=-1),
        keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(len(classes)),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(0.002),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(train, validation_data=validation, epochs=args.epochs, verbose=2)
model.save("images.keras")
