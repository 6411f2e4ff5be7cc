"""A page on the web, "How can tf.distribute.MirroredStrategy be implemented outside of Keras?", whole.

Changed to run: the optimizer is made in the scope; the data is distributed, as the page says it has to be.
"""

from typing import Any

import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
print(f"Number of devices: {strategy.num_replicas_in_sync}")

with strategy.scope():
    W = tf.Variable(tf.random.normal((784, 10)), name="weights")
    b = tf.Variable(tf.zeros((10,)), name="biases")
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.001)


def loss_fn(y_true: Any, y_pred: Any) -> Any:
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_true, logits=y_pred))


def train_step(images: Any, labels: Any) -> Any:
    with tf.GradientTape() as tape:
        logits = tf.matmul(images, W) + b
        loss = loss_fn(labels, logits)

    gradients = tape.gradient(loss, [W, b])
    optimizer.apply_gradients(zip(gradients, [W, b], strict=True))
    return loss


@tf.function  # type: ignore[untyped-decorator]
def distributed_train_step(images: Any, labels: Any) -> Any:
    per_replica_losses = strategy.run(train_step, args=(images, labels))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


# dummy data creation
images = tf.random.normal((64, 784))
labels = tf.one_hot(tf.random.uniform((64,), minval=0, maxval=10, dtype=tf.int32), depth=10)
dataset = tf.data.Dataset.from_tensors((images, labels)).repeat(21).unbatch().batch(64)

for i, (images, labels) in enumerate(strategy.experimental_distribute_dataset(dataset)):
    loss = distributed_train_step(images, labels)
    if i % 10 == 0:
        print(f"step {i}, loss:{loss.numpy()}")
print("sum of weights", float(tf.reduce_sum(W)) + float(tf.reduce_sum(b)))
