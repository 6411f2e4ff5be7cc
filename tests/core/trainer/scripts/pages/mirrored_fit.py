"""Pages on the web: fit in MirroredStrategy. Changed to run: noise instead of MNIST."""

from typing import Any

import numpy as np
import tensorflow as tf


# Define a simple Keras model
def build_model() -> Any:
    return tf.keras.Sequential(
        [
            tf.keras.layers.Dense(128, activation="relu", input_shape=(784,)),
            tf.keras.layers.Dense(10, activation="softmax"),
        ]
    )


strategy = tf.distribute.MirroredStrategy()
print(f"Number of devices: {strategy.num_replicas_in_sync}")

# Build the model within the strategy's scope
with strategy.scope():
    model = build_model()
    optimizer = tf.keras.optimizers.Adam()
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])

# Generate some dummy data
rng = np.random.default_rng(0)
x_train = rng.integers(0, 256, size=(600, 28, 28)).astype("uint8")
y_train = rng.integers(0, 10, size=600)
x_train = x_train.reshape(-1, 784).astype("float32") / 255.0
y_train = y_train.astype("int32")

# Train the model
model.fit(x_train, y_train, epochs=2, batch_size=32, verbose=0)
print("sum of weights", sum(float(tf.reduce_sum(weight)) for weight in model.weights))
