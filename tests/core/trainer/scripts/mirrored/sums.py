"""Each way to sum and gather over the replicas of a MirroredStrategy, integers and empty parts included."""

import json
import sys
from typing import Any

import numpy as np
import psutil
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], tf.distribute.ReductionToOneDevice())
members = strategy.num_replicas_in_sync
told: dict[str, Any] = {"members": members}


def tell(name: str, *values: Any) -> None:
    told[name] = [np.asarray(value).tolist() for value in values]


def rank() -> Any:
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def each(fn: Any, *arguments: Any) -> Any:
    return strategy.run(fn, args=arguments)


def cast_rank(dtype: Any) -> Any:
    return tf.cast(rank() + 1, dtype)


for in_graph in (False, True):
    again = tf.function(each) if in_graph else each
    key = "graph " if in_graph else ""
    for dtype in (tf.int32, tf.int64, tf.float32, tf.float64, tf.bfloat16):
        values = again(cast_rank, dtype)
        sums = [strategy.reduce(op, values, axis=None) for op in ("SUM", "MEAN")]
        tell(f"{key}reduce {dtype.name}", *(tf.cast(total, tf.float64) for total in sums))

    def rows() -> Any:
        return tf.range(rank() * 3, dtype=tf.int64)  # none on the first

    parts = again(rows)
    tell(f"{key}reduce rows", strategy.reduce("SUM", parts, axis=0), strategy.reduce("MEAN", parts, axis=0))
    tell(f"{key}gather", strategy.gather(parts, axis=0))

    def table() -> Any:
        return tf.fill([2, rank() + 1], rank())

    tell(f"{key}gather columns", strategy.gather(again(table), axis=1))

    def in_replica() -> Any:
        context = tf.distribute.get_replica_context()
        own = tf.fill([rank() + 1], rank())
        summed = context.all_reduce("SUM", {"a": rank(), "b": tf.cast(rank(), tf.float32)})
        mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.cast(rank(), tf.float32))
        return summed["a"], summed["b"], mean, context.all_gather(own, axis=0)

    tell(f"{key}in replica", *(strategy.experimental_local_results(each)[0] for each in again(in_replica)))

    def with_gradient() -> Any:
        x = tf.constant(2.0) + tf.cast(rank(), tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.distribute.get_replica_context().all_reduce("SUM", x * x)
        return tape.gradient(y, x) / x  # the same on each

    tell(f"{key}gradient", strategy.experimental_local_results(again(with_gradient))[0])

aggregations = {
    "SUM": tf.VariableAggregation.SUM,
    "MEAN": tf.VariableAggregation.MEAN,
    "FIRST": tf.VariableAggregation.ONLY_FIRST_REPLICA,
}


def written(name: str, aggregation: Any, dtype: Any) -> None:
    """On-read and on-write variables, written by each replica."""
    with strategy.scope():
        on_read = tf.Variable(
            tf.zeros([2], dtype),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=aggregation,
        )
        on_write = tf.Variable(tf.zeros([2], dtype), trainable=False, aggregation=aggregation)

    def write() -> None:
        on_read.assign_add(tf.fill([2], tf.cast(rank() + 1, dtype)))
        on_write.assign_add(tf.fill([2], tf.cast(rank() + 1, dtype)))

    strategy.run(write)
    tf.function(lambda: strategy.run(write))()
    tell(f"{name} {dtype.name}", on_read.read_value(), on_write.read_value())


for name, aggregation in aggregations.items():
    for dtype in (tf.float32, tf.int32) if name != "MEAN" else (tf.float32,):  # TensorFlow has no other
        written(name, aggregation, dtype)

with strategy.scope():  # members draw other numbers
    drawn = tf.Variable(np.random.default_rng().normal(size=3), trainable=False)
    flag = tf.Variable(np.random.default_rng().random() < 0.5, trainable=False)
told["drawn"] = strategy.experimental_local_results(drawn)[0].numpy().tolist()
own = psutil.Process().net_connections("all")
told["listens"] = [list(each.laddr) for each in own if each.status == psutil.CONN_LISTEN]
told["flag"] = bool(strategy.experimental_local_results(flag)[0].numpy())
print("told", json.dumps(told))

if "--compiled" in sys.argv:

    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def compiled() -> Any:
        return each(in_replica)

    compiled()
