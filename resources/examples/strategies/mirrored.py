"""One machine, several GPUs: MirroredStrategy keeps a copy of the model on each and adds up their gradients.
The data is the same as in ../digits."""

import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="rows of a step on each GPU")
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

keras.utils.set_random_seed(args.seed)
data = np.load(Path(__file__).parent / "digits.npz")
images = data["images"][..., None].astype("float32") / 16
labels = data["labels"].astype("int32")

strategy = tf.distribute.MirroredStrategy()
global_batch = args.batch_size * strategy.num_replicas_in_sync
print(f"{strategy.num_replicas_in_sync} replica(s), {global_batch} rows a step")

with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input(images.shape[1:]),
            keras.layers.Conv2D(16, 3, padding="same", activation="tanh"),
            keras.layers.AveragePooling2D(2),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )

model.fit(images, labels, batch_size=global_batch, epochs=args.epochs, verbose=2)
model.save("mirrored.keras")
