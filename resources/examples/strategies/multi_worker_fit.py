"""Several machines, trained by fit: MultiWorkerMirroredStrategy keeps the model equal on all of them.
Every machine runs this script with its own TF_CONFIG; the data is the same as in ../digits."""

import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=32, help="rows of a step on each machine")
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

# Before anything else of TensorFlow: it starts this machine's server for the others.
strategy = tf.distribute.MultiWorkerMirroredStrategy()
chief = strategy.cluster_resolver.task_type in (None, "", "chief")
global_batch = args.batch_size * strategy.num_replicas_in_sync

# The same on all machines: each step takes one global batch, and every machine some of its rows.
keras.utils.set_random_seed(args.seed)
data = np.load(Path(__file__).parent / "digits.npz")
images = data["images"][..., None].astype("float32") / 16
labels = data["labels"].astype("int32")

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

model.fit(images, labels, batch_size=global_batch, epochs=args.epochs, verbose=2 if chief else 0)
if chief:
    model.save("multi_worker_fit.keras")
