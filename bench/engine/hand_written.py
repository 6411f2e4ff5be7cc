"""The loop that a person writes for MultiWorkerMirroredStrategy, after TensorFlow's guide to custom loops.

One call into TensorFlow runs ``call`` steps: 1 as in the guide; an epoch for those who tune it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bench.engine.work import Work


def trainer(strategy: Any, work: Work, *, epoch_a_call: bool) -> tuple[Any, Callable[[int], None]]:
    """The model, and a function that trains it for a number of epochs."""
    with strategy.scope():
        model = work.model()
        optimizer = work.optimizer()
        optimizer.build(model.trainable_variables)
        loss_of = keras.losses.SparseCategoricalCrossentropy(reduction="none")
        accuracy = keras.metrics.SparseCategoricalAccuracy()

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    dataset = tf.data.Dataset.from_tensor_slices((work.images, work.labels))
    dataset = dataset.shuffle(len(work.images), seed=1).batch(work.batch).prefetch(tf.data.AUTOTUNE)
    if epoch_a_call:
        # Tuning reveals this: the end of an iterator often takes seconds (see exact/data.py).
        dataset = dataset.repeat()
    batches = strategy.experimental_distribute_dataset(dataset.with_options(options))
    steps = tf.constant(work.steps)

    def step(inputs: Any) -> Any:
        images, labels = inputs
        with tf.GradientTape() as tape:
            predicted = model(images, training=True)
            loss = tf.nn.compute_average_loss(loss_of(labels, predicted), global_batch_size=work.batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        accuracy.update_state(labels, predicted)
        return loss

    @tf.function  # type: ignore[untyped-decorator]
    def one(iterator: Any) -> Any:
        losses = strategy.run(step, args=(next(iterator),))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function  # type: ignore[untyped-decorator]
    def epoch(iterator: Any) -> Any:
        total = tf.constant(0.0)
        for _ in tf.range(steps):
            losses = strategy.run(step, args=(next(iterator),))
            total += strategy.experimental_local_results(losses)[0]
        return strategy.reduce(tf.distribute.ReduceOp.SUM, total, axis=None)

    endless = iter(batches) if epoch_a_call else None

    def train(epochs: int) -> None:
        for _ in range(epochs):
            if endless is not None:
                total = epoch(endless)
            else:
                iterator = iter(batches)
                total = tf.constant(0.0)
                for _ in range(work.steps):
                    total += one(iterator)
            float(total)
            float(accuracy.result())
            accuracy.reset_state()

    return model, train
