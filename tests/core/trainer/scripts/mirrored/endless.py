"""Tries fit in the scope of a MirroredStrategy that it uses by hand, too; then trains until it is stopped."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
data = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)
    model.compile("sgd", "mse")
try:
    model.fit(data, data[:, :1], verbose=0)
except Exception as error:
    print("refused", getattr(error, "code", error), flush=True)
alike = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
alike.compile("sgd", "mse")
alike.fit(data, data[:, :1], verbose=0)  # of no strategy: each member does the same
print("alone", f"{float(alike.evaluate(data, data[:, :1], verbose=0)):.6f}", flush=True)


@tf.function  # type: ignore[untyped-decorator]
def train(x: Any) -> Any:
    def step(own: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.square(model(own))[:, 0], global_batch_size=32)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return strategy.reduce("SUM", strategy.run(step, args=(x,)), axis=None)


dataset = tf.data.Dataset.from_tensor_slices(data).batch(32).repeat()
for number, x in enumerate(strategy.experimental_distribute_dataset(dataset)):
    loss = float(train(x))
    if number % 10 == 0:
        print("loss", loss, flush=True)
