"""A page on the web, "How can variables be shared across devices in a TensorFlow 2 cluster?": its example of
MirroredStrategy. Changed to run: the data and the loop that the page leaves out."""

from typing import Any

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()

with strategy.scope():
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(128, activation="relu", input_shape=(784,)), tf.keras.layers.Dense(10)]
    )
    optimizer = tf.keras.optimizers.Adam()
    loss_fn = tf.keras.losses.CategoricalCrossentropy(from_logits=True)


# Training loop using strategy.run
def train_step(images: Any, labels: Any) -> Any:
    with tf.GradientTape() as tape:
        predictions = model(images)
        loss = loss_fn(labels, predictions) / strategy.num_replicas_in_sync
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


rng = np.random.default_rng(0)
images = rng.normal(size=(256, 784)).astype("float32")
labels = np.eye(10, dtype="float32")[rng.integers(0, 10, size=256)]
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(64)
for images, labels in strategy.experimental_distribute_dataset(dataset):
    loss = strategy.reduce("SUM", strategy.run(train_step, args=(images, labels)), axis=None)
    print(f"Loss: {float(loss):.6f}")
print("sum of weights", sum(float(tf.reduce_sum(weight)) for weight in model.weights))
