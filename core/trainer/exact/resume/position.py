"""Brings a fit's data to the position that another process had, by reading the same data again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.resume import randomness
from core.vocabulary.errors import TandemError


class Positioned(private.Epochs):
    """Keras' iterator over epochs, which counts them and can begin in the middle of one.

    Reading again, instead of skipping, brings shuffle buffers, generators and random maps to the same
    position, whatever the data consists of.
    """

    passes = 0
    """Epochs begun since the data was opened."""
    pass_random: dict[str, Any] | None = None
    """The random states when the current epoch began."""
    _suspended: Iterator[Any] | None = None

    def reset(self) -> None:
        super().reset()
        self.passes = 0

    def __iter__(self) -> Any:
        if self._suspended is not None:
            self.under_way, self._suspended = self._suspended, None
            return self
        self.passes += 1
        self.pass_random = randomness.capture()
        return super().__iter__()

    def read_again(self, passes: int) -> None:
        """Reads the data `passes` times from its beginning, as Keras' evaluate reads validation data."""
        for _ in range(passes):
            self._read_epoch()
            self.reset()

    def go_to(self, passes: int, batches: int, random: dict[str, Any] | None) -> None:
        """Goes to the position after `passes` whole epochs and `batches` batches of the next one.

        `random`: the random states when that epoch began. Raises TandemError if the data ends too early.
        """
        for _ in range(passes):
            self._read_epoch()
        self.passes = passes
        if not batches:
            return
        if random is not None:
            randomness.restore(random)
        iter(self)
        done = 0
        try:
            while done < batches:
                done += self.read(next(self.under_way))
        except (StopIteration, tf.errors.OutOfRangeError):
            if batches - done >= self.steps_per_execution:  # Keras counts a last call's steps as whole.
                raise _shorter(batches) from None
        self._suspended = self.under_way

    def read(self, item: Any) -> int:
        """Reads the batches of one item of the iterator; returns how many there were."""
        done = 0
        try:
            while done < self.steps_per_execution:
                next(item[2])
                done += 1
        except (StopIteration, tf.errors.OutOfRangeError):
            if not done:
                raise StopIteration from None
        return done

    def _read_epoch(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The data's end was reported when it was trained on.
            with self.catch_stop_iteration():
                for item in self:
                    self.read(item)


def _shorter(batches: int) -> TandemError:
    return TandemError(
        code="data-changed",
        what=f"The data ends before batch {batches}, where the checkpoint was made.",
        fix="Give the script the same data as before, or start the training again.",
    )
