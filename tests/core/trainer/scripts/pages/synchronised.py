"""A page on the web, "How can two laptops synchronize TensorFlow operations using the mirrored strategy?".

Its three examples together. Changed to run: TF_CONFIG is JSON, the data ends, the model is in the scope.
"""

import json
import os
from typing import Any

import numpy as np
import tensorflow as tf


def create_cluster_resolver() -> Any:
    """Generates a cluster specification and resolver based on environment variables."""
    task_type = os.environ.get("TF_CONFIG_TASK_TYPE")
    task_index = int(os.environ.get("TF_CONFIG_TASK_INDEX", 0))
    cluster_spec: Any = os.environ.get("TF_CONFIG_CLUSTER")

    cluster_spec = {"chief": ["ip_address_machine_1:2222"], "worker": ["ip_address_machine_2:2222"]}

    # Example override (for local testing)
    if not cluster_spec:
        cluster_spec = {"worker": ["127.0.0.1:2222", "127.0.0.1:2223"]}

    task = {"type": task_type, "index": task_index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster_spec, "task": task})

    return tf.distribute.cluster_resolver.TFConfigClusterResolver()


def create_distributed_dataset(global_batch_size: Any, num_workers: Any) -> Any:
    """Creates a distributed dataset with sharding."""
    x = np.random.rand(100, 20).astype(np.float32)
    y = np.random.randint(0, 2, 100).astype(np.int32)
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    dataset = dataset.shuffle(100).repeat()

    per_worker_batch_size = global_batch_size // num_workers
    dataset = dataset.batch(per_worker_batch_size)

    return dataset.take(6)


def train_model(strategy: Any, distributed_dataset: Any, num_epochs: Any) -> Any:
    """Trains a simple model using the specified strategy."""
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Dense(128, activation="relu", input_shape=(20,)),
                tf.keras.layers.Dense(2, activation="softmax"),
            ]
        )
        optimizer = tf.keras.optimizers.Adam(learning_rate=0.001)
        loss_fn = tf.keras.losses.SparseCategoricalCrossentropy()

    @tf.function  # type: ignore[untyped-decorator]
    def distributed_train_step(inputs: Any, labels: Any) -> Any:
        def train_step(inputs: Any, labels: Any) -> Any:
            with tf.GradientTape() as tape:
                predictions = model(inputs)
                loss = loss_fn(labels, predictions)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        per_replica_losses = strategy.run(train_step, args=(inputs, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

    for epoch in range(num_epochs):
        for inputs, labels in distributed_dataset:
            loss = distributed_train_step(inputs, labels)
            print(f"Epoch {epoch}, Loss: {loss}")
    return model


resolver = create_cluster_resolver()
print(f"Task type: {resolver.task_type}, Task index: {resolver.task_id}")
strategy = tf.distribute.MirroredStrategy(cluster_resolver=resolver)
spec = resolver.cluster_spec().as_dict()
num_workers = len(spec.get("worker", [])) + (1 if spec.get("chief", []) else 0)
global_batch_size = 64
distributed_dataset = create_distributed_dataset(global_batch_size, num_workers)
print(f"Global Batch Size: {global_batch_size}, Per Worker Batch Size: {global_batch_size // num_workers}")

model = train_model(strategy, distributed_dataset, num_epochs=2)
print("sum of weights", sum(float(tf.reduce_sum(weight)) for weight in model.weights))
