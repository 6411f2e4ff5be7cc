"""A strategy class of one's own, a loop by hand, and datasets distributed with DATA and OFF sharding."""

from typing import Any

import tensorflow as tf


class Counting(tf.distribute.MultiWorkerMirroredStrategy):
    """Counts what it runs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.runs = 0

    def run(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        self.runs += 1
        return super().run(fn, *args, **kwargs)


strategy = Counting(cluster_resolver=tf.distribute.cluster_resolver.TFConfigClusterResolver())
with strategy.scope():
    weight = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)


def step(rows: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss((weight - tf.cast(rows, tf.float32)) ** 2, global_batch_size=8)
    gradient = tape.gradient(loss, weight)
    context = tf.distribute.get_replica_context()
    weight.assign_sub(0.1 * context.all_reduce(tf.distribute.ReduceOp.SUM, gradient))
    return loss


for name in ("DATA", "OFF"):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[name]
    dataset = tf.data.Dataset.range(16).batch(8).with_options(options)
    seen, losses = [], []
    for rows in strategy.experimental_distribute_dataset(dataset):
        (own,) = strategy.experimental_local_results(rows)
        seen += own.numpy().tolist()
        losses.append(float(strategy.reduce("SUM", strategy.run(step, args=(rows,)), axis=None)))
    print(name, "rows", *sorted(seen))
    print(
        name,
        "losses",
        *(f"{loss:.4f}" for loss in losses),
        "weight",
        f"{weight.numpy():.4f}",
        "runs",
        strategy.runs,
    )
