"""Several machines, a loop by hand: MultiWorkerMirroredStrategy with strategy.run and strategy.reduce.
Every machine runs this script with its own TF_CONFIG; the data is the same as in ../digits."""

import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="rows of a step on all machines together")
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

# Before anything else of TensorFlow: it starts this machine's server for the others.
strategy = tf.distribute.MultiWorkerMirroredStrategy(
    cluster_resolver=tf.distribute.cluster_resolver.TFConfigClusterResolver()
)
chief = strategy.cluster_resolver.task_type in (None, "", "chief")

keras.utils.set_random_seed(args.seed)
data = np.load(Path(__file__).parent / "digits.npz")
images = data["images"][..., None].astype("float32") / 16
labels = data["labels"].astype("int32")
steps_per_epoch = len(images) // args.batch_size

dataset = tf.data.Dataset.from_tensor_slices((images, labels))
dataset = dataset.shuffle(len(images), seed=args.seed).repeat().batch(args.batch_size, drop_remainder=True)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
dataset = strategy.experimental_distribute_dataset(dataset.with_options(options))

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
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    optimizer.build(model.trainable_variables)
    loss_of_each = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


@tf.function
def train_step(batch):
    def replica_step(images, labels):
        with tf.GradientTape() as tape:
            losses = loss_of_each(labels, model(images, training=True))
            # Each replica has some of the rows: gradients are summed over replicas, so the loss is
            # divided by the rows of all of them.
            loss = tf.nn.compute_average_loss(losses, global_batch_size=args.batch_size)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica_step, args=batch), axis=None)


batches = iter(dataset)
for epoch in range(args.epochs):
    losses = [float(train_step(next(batches))) for _ in range(steps_per_epoch)]
    print(f"epoch {epoch + 1}/{args.epochs}: loss {np.mean(losses):.4f}", flush=True)

if chief:
    model.save("multi_worker_loop.keras")
