"""An epoch's data in portions of several steps. Every member reads every global batch.

Each member runs the same pipeline with the same seeds, so all see the same batches in the same order; the
step then takes the member's rows. Keras' own adapters make the batches, as in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from core.trainer.exact.resume.position import Positioned
from core.trainer.exact.steps.pace import PortionPace


def untuned(dataset: Any) -> Any:
    """``dataset`` with tf.data's tuning off, unless its creator configured it; AUTOTUNE then uses every core.

    The tuning thread sleeps in periods that double, and a wake-up that arrives as the iterator is destroyed
    is often lost (TensorFlow 2.21). Measured on 2 cores: one epoch in four took 5.1 s instead of 2.7 s.
    """
    options = dataset.options()
    if options.autotune.enabled is not None:
        return dataset
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def next_batches(iterator: Any, count: int) -> list[Any]:
    """The next `count` batches, or as many as there are."""
    found: list[Any] = []
    try:
        while len(found) < count:
            found.append(next(iterator))
    except (StopIteration, tf.errors.OutOfRangeError):
        pass
    return found


@dataclass(slots=True)
class Portion:
    """Up to `steps` steps from an iterator. `sure`: the data is known to last for all of them."""

    iterator: Any
    steps: int
    sure: bool
    pace: PortionPace
    done: int = 0


class SharedEpochIterator(Positioned):
    """Keras' iterator over an epoch, yielding portions sized by the pace."""

    opened: Callable[[SharedEpochIterator], None] | None = None
    """Called with every iterator that Keras opens."""

    def __init__(self, distribute_strategy: Any = None, *args: Any, **kwargs: Any) -> None:
        self.open_whole(untuned, *args, **kwargs)
        # Keras counts batches once; a PyDataset or a generator may give fewer later, arrays never do.
        known = int(self.dataset.cardinality()) != tf.data.UNKNOWN_CARDINALITY
        self._promises = known or self.is_of_arrays
        self.pace = PortionPace()
        if SharedEpochIterator.opened is not None:
            SharedEpochIterator.opened(self)

    def middle(self, batch: Any) -> Any:
        """A batch like `batch` from the middle of the data; None if the data is not in readable arrays."""
        arrays, leaves = tf.nest.flatten(self.arrays), tf.nest.flatten(batch)
        known = (np.ndarray, tf.Tensor)
        if len(arrays) != len(leaves) or not all(isinstance(each, known) for each in (*arrays, *leaves)):
            return None
        rows = len(leaves[0])
        begin = max(0, min(len(arrays[0]) // 2, len(arrays[0]) - rows))
        found = [
            tf.cast(each[begin : begin + rows], leaf.dtype) for each, leaf in zip(arrays, leaves, strict=True)
        ]
        return tf.nest.pack_sequence_as(batch, found)

    def read(self, item: Any) -> int:
        """Reads a portion's batches; returns how many there were."""
        portion: Portion = item[2]
        try:
            while portion.done < portion.steps:
                next(portion.iterator)
                portion.done += 1
        except (StopIteration, tf.errors.OutOfRangeError):
            if not portion.done:
                raise StopIteration from None
        return portion.done

    def epoch(self) -> Iterator[tuple[int, int, Portion]]:
        """Like Keras' method, except for the portions' sizes, and that only steps really done count."""
        self.data_adapter.on_epoch_begin()
        once = self.steps_per_execution
        known = self.steps_per_epoch or self.known_batches
        if not known:
            yield from self._until_the_end(self.reopen(), once)
        else:
            if self.reader is None or self.steps_per_epoch is None:
                self.reader = self.reopen()
                self.steps_seen = 0
            step, end = 0, -(-known // once) * once
            while step < end:
                if self.known_batches and self.steps_seen >= self.known_batches:
                    if self.steps_per_epoch:
                        self.warn_of_interruption()
                    break
                portion = self._portion(self.reader, end - step)
                planned = -(-portion.steps // once) * once  # The number that callbacks receive, as in Keras.
                yield step, step + planned - 1, portion
                step += planned
                self.steps_seen += portion.done
                if portion.done < portion.steps:  # As in Keras, the next step finds that the data has ended.
                    yield step, step, Portion(self.reader, 1, sure=False, pace=self.pace)
            if once == 1 and not self.steps_per_epoch and self.data_adapter.num_batches is None:
                # Keras took the length from the first epoch, and counted the step that found no batch, too.
                portion = Portion(self.reader, 1, sure=False, pace=self.pace)
                yield step, step, portion
                self.steps_seen += portion.done
            if self.known_batches and self.steps_seen >= self.known_batches:
                # Keras reopens the data here, and once more when the next epoch begins. A tf.data.Dataset may
                # draw seeds each time, so it is reopened here, too; arrays draw none, and would take 15 ms.
                if self.steps_per_epoch or not self.is_of_arrays:
                    self.reader = self.reopen()
                self.steps_seen = 0
        self.data_adapter.on_epoch_end()

    def _until_the_end(self, iterator: Any, once: int) -> Iterator[tuple[int, int, Portion]]:
        self.steps_seen = 0
        while True:
            portion = Portion(iterator, self.pace.steps(once), sure=False, pace=self.pace)
            yield self.steps_seen, self.steps_seen + portion.steps - 1, portion
            self.steps_seen += portion.done

    def _portion(self, iterator: Any, left: int) -> Portion:
        if self.known_batches:
            # As in Keras, leaves out steps beyond the data, which steps_per_execution may ask for.
            left = min(left, self.known_batches - self.steps_seen)
        steps = self.pace.steps(self.steps_per_execution, left)
        return Portion(iterator, steps, sure=self._promises, pace=self.pace)
