"""Loops by hand in a mirrored strategy, one for each way of distributing data that is named in an argument.
Prints what each ends with.

``--two-devices``: on two logical devices of one machine. ``--workers``: in a MultiWorkerMirroredStrategy.
"""

import hashlib
import json
import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

ROWS, BATCH, EPOCHS = 72, 16, 2  # the last batch has eight rows
if "--two-devices" in sys.argv:
    sys.argv.remove("--two-devices")
    [cpu] = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy: Any = tf.distribute.MirroredStrategy()
if "--workers" in sys.argv:
    sys.argv.remove("--workers")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    print("task", resolver.task_type, resolver.task_id, json.dumps(resolver.cluster_spec().as_dict()))
rng = np.random.default_rng(0)
words = rng.integers(0, 20, size=(ROWS, 3))
x = rng.normal(size=(ROWS, 4)).astype("float32")
y = rng.normal(size=(ROWS, 1)).astype("float32")
whole = tf.data.Dataset.from_tensor_slices(({"words": words, "x": x}, y))
print("replicas", strategy.num_replicas_in_sync)


class Loop:
    """A model with a table (its gradient is sparse), and its steps."""

    def __init__(self, optimizer: Any) -> None:
        keras.utils.set_random_seed(5)
        inputs = {"words": keras.Input((3,), dtype="int64", name="words"), "x": keras.Input((4,), name="x")}
        table = keras.layers.Flatten()(keras.layers.Embedding(20, 2)(inputs["words"]))
        hidden = keras.layers.Dense(8, activation="tanh")(keras.layers.Concatenate()([table, inputs["x"]]))
        self.model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
        self.optimizer = optimizer
        self.optimizer.build(self.model.trainable_variables)
        self.seen = keras.metrics.Mean()
        on_read, summed = tf.VariableSynchronization.ON_READ, tf.VariableAggregation.SUM
        self.rows = tf.Variable(0, synchronization=on_read, aggregation=summed)

    def step(self, features: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            errors = tf.square(self.model(features, training=True) - targets)[:, 0]
            loss = tf.nn.compute_average_loss(errors, global_batch_size=BATCH)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
        self.seen.update_state(errors)
        self.rows.assign_add(tf.shape(targets)[0])
        return loss

    def train_step(self, features: Any, targets: Any) -> Any:
        losses = strategy.run(self.step, args=(features, targets))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def epoch(self, batches: Any) -> Any:
        total = 0.0
        for features, targets in batches:
            total += self.train_step(features, targets)
        return total


def made_from(context: Any) -> Any:
    """Sharded by the function itself; one pipeline has a batch more than the other."""
    mine = whole.take(70).shard(context.num_input_pipelines, context.input_pipeline_id)
    return mine.batch(context.get_per_replica_batch_size(BATCH))


def made_alike(context: Any) -> Any:
    """The same for each pipeline, with an odd number of batches."""
    return whole.batch(context.get_per_replica_batch_size(BATCH))


def twice(*batch: Any) -> Any:
    return tf.nest.map_structure(lambda part: tf.concat([part, part], axis=0), batch)


def values(begin: Any) -> Any:
    def value(context: Any) -> Any:
        size = BATCH // context.num_replicas_in_sync
        own = slice(begin, begin + size)
        own = slice(own.start + size * context.replica_id_in_sync_group, None)
        own = slice(own.start, own.start + size)
        return {"words": tf.constant(words[own]), "x": tf.constant(x[own])}, tf.constant(y[own])

    return strategy.experimental_distribute_values_from_function(value)


def batches(way: Any) -> Any:
    distribute = strategy.experimental_distribute_dataset
    match way:
        case "shuffled":
            return distribute(whole.shuffle(ROWS).batch(BATCH))
        case "remainder" | "in-graph":  # in a graph, two devices gather tables of equal lengths alone
            return distribute(whole.batch(BATCH, drop_remainder=True))
        case "one-left":  # of 65 rows a single one is left, and other replicas have none
            return distribute(whole.take(65).batch(BATCH))
        case "repeated":  # with short batches in the midst
            return distribute(whole.take(24).batch(BATCH).repeat(2))
        case "off":
            options = tf.data.Options()
            policy = tf.data.experimental.AutoShardPolicy.OFF
            options.experimental_distribute.auto_shard_policy = policy
            return distribute(whole.batch(BATCH).with_options(options))
        case "function":
            return strategy.distribute_datasets_from_function(made_from)
        case "alike":
            return strategy.distribute_datasets_from_function(made_alike)
        case "doubled":  # both replicas have the same eight rows
            return distribute(whole.batch(BATCH // 2).map(twice))
        case "values":
            return [values(begin) for begin in range(0, ROWS - BATCH, BATCH)]
    return distribute(whole.batch(BATCH))


for way in sys.argv[1:]:
    with strategy.scope():
        adam = way in ("function", "values")
        loop = Loop(keras.optimizers.Adam(0.01) if adam else keras.optimizers.SGD(0.05, momentum=0.9))
    if way == "in-graph":
        loop.epoch = tf.function(loop.epoch)  # type: ignore[method-assign]
    elif way != "eager":
        loop.train_step = tf.function(loop.train_step)  # type: ignore[method-assign]
    losses = [float(loop.epoch(batches(way))) for _ in range(EPOCHS)]
    weights = [np.asarray(weight) for weight in loop.model.get_weights()]
    told = {
        "losses": losses,
        "seen": float(loop.seen.result()),
        "rows": int(loop.rows.numpy()),
        "steps": int(loop.optimizer.iterations.numpy()),
        "weights": [weight.ravel().tolist() for weight in weights],
        "digest": hashlib.sha256(b"".join(weight.tobytes() for weight in weights)).hexdigest(),
    }
    print("told", way, json.dumps(told))
