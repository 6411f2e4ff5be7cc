"""Parameter servers hold the variables, workers calculate, a chief gives out the steps: ClusterCoordinator.
Every task runs this script with its own TF_CONFIG: one chief, workers, ps. The data is that of ../digits."""

import argparse
import os
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="rows of a step, which one worker calculates")
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

if "TF_CONFIG" not in os.environ:
    sys.exit("parameter_server.py needs a cluster: a chief, a worker and a ps, named in TF_CONFIG.")

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol=resolver.rpc_layer or "grpc",
        start=True,
    )
    server.join()  # serves until the process is ended

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

keras.utils.set_random_seed(args.seed)
data = np.load(Path(__file__).parent / "digits.npz")
images = data["images"][..., None].astype("float32") / 16
labels = data["labels"].astype("int32")
steps_per_epoch = len(images) // args.batch_size


def make_dataset():
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    return dataset.shuffle(len(images)).repeat().batch(args.batch_size, drop_remainder=True)


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
    learning_rate = 0.3
    loss_of_each = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


@tf.function
def train_step(batches):
    def replica_step(images, labels):
        with tf.GradientTape() as tape:
            losses = loss_of_each(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=args.batch_size)
        variables = [variable.value for variable in model.trainable_variables]
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(learning_rate * gradient)
        return loss

    return strategy.reduce(
        tf.distribute.ReduceOp.SUM, strategy.run(replica_step, args=next(batches)), axis=None
    )


batches = iter(coordinator.create_per_worker_dataset(make_dataset))
for epoch in range(args.epochs):
    results = [coordinator.schedule(train_step, args=(batches,)) for _ in range(steps_per_epoch)]
    coordinator.join()
    print(f"epoch {epoch + 1}/{args.epochs}: loss {np.mean([r.fetch() for r in results]):.4f}", flush=True)

model.save("parameter_server.keras")
