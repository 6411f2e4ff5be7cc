"""One call of fit, evaluate or predict, as the engine knows it. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras.callback_kinds import monitored
from core.trainer.exact.resume.fit_progress import FitProgress
from core.trainer.exact.steps.data import SharedEpochIterator


@dataclass(slots=True)
class Fit:
    """One call of fit, evaluate or predict that this member is in."""

    model: Any
    kind: str
    name: str = ""
    """The kind, and its running number in the script: ``fit 2``."""
    each_batch: tuple[bool, bool] = (False, False)
    """Whether callbacks need every batch: in training; in testing or predicting."""
    epochs: int = 1
    first_epoch: int = 0
    epoch: int = 0
    batch: int = 0
    iterator: SharedEpochIterator | None = None
    equal: set[int] = field(default_factory=set)
    begun: set[bool] = field(default_factory=set)
    """Kinds of steps (training or not) whose first batch was checked."""
    progress: FitProgress | None = None
    """A fit's progress, for checkpoints; None for other calls."""

    @property
    def steps(self) -> int | None:
        return None if self.iterator is None else self.iterator.num_batches

    @property
    def monitored(self) -> str:
        return "" if self.progress is None else monitored(self.progress.callbacks)

    @property
    def place(self) -> str:
        if self.kind != "fit":
            return self.name
        return f"{self.name}, epoch {self.epoch + 1}, from batch {self.batch + 1} on"

    @property
    def data(self) -> str:
        """The data in words: how many batches of what."""
        assert self.iterator is not None
        leaves = tf.nest.flatten(self.iterator.dataset.element_spec)
        shapes = [
            f"{leaf.dtype.name} {leaf.shape[1:].as_list()}" for leaf in leaves if getattr(leaf, "shape", None)
        ]
        of_rows = "" if self.global_batch is None else f" of {self.global_batch} rows"
        return f"{self.steps or 'some'} batches{of_rows} ({', '.join(shapes[:4])}), epochs: {self.epochs}"

    @property
    def global_batch(self) -> int | None:
        size = getattr(self.iterator.data_adapter, "batch_size", None) if self.iterator else None
        return None if size is None else int(size)

    def epoch_ends_after(self, steps: int) -> bool:
        """Whether a fit's epoch ends after `steps` more steps, as far as known."""
        return self.kind == "fit" and self.steps is not None and self.batch + steps >= self.steps
