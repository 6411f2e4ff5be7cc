"""What the process around the engine hands it, a Cluster and an Observer to call back: data only.

Use, in the trainer process, on its main thread, with `install` of `patch.install`:

    cluster = Cluster(strategy, rank, shares, seed)
    installation = install(cluster, observer)       # patches Keras, sets every seed
    with installation.scope():
        runpy.run_path(script, run_name="__main__")

`scope()` is `strategy.scope()` for one member alone. With several members the script runs *outside* the
strategy's scope on purpose: it is a single-machine script and stays one, with plain variables that the engine
keeps equal on all members; the engine enters the strategy wherever members have to meet (see
docs/exactness.md). A script that opens a strategy of its own must not be run through here.

Every Observer method is called on the main thread, between steps, and must return at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from core.vocabulary.progress import Expectation


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Checkpoints: where this member writes them, and the one from which its training resumes."""

    folder: Path
    every_s: float = 60.0
    resume: Path | None = None
    """A checkpoint's own folder; every member must have the same one."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """This member's place among the members. Rank 0 is the chief."""

    strategy: Any
    """A tf.distribute.Strategy: MultiWorkerMirrored with one device a member, that of ``collectives`` where
    given, or any for one member alone."""
    rank: int
    shares: tuple[int, ...]
    """One whole number a member; only their proportions matter."""
    seed: int | None
    """None: whoever installs has set every seed, alike on all members."""
    wire: str = "f32"
    """How gradients travel: ``f32`` (exact), ``bf16``, ``fp16``, or ``auto`` (see gradients.py)."""
    balance: bool = False
    """Shares follow the members' speeds; `shares` is where they begin."""
    checkpointing: Checkpointing | None = None
    """None: no checkpoints. Set on every member or on none."""
    collectives: Any = None
    """The ``Collectives`` by which members meet; None: the strategy's own."""
    names: tuple[str, ...] = ()
    """Of the members' laptops, by rank, for words about them."""
    folders: tuple[Path, ...] = ()
    """This member's own: its script's, its temporary one. Callbacks that write files do so there on every
    member, and on the chief alone elsewhere."""

    def __post_init__(self) -> None:
        if not 0 <= self.rank < len(self.shares):
            raise ValueError(f"rank {self.rank} is not one of {len(self.shares)} members")

    @property
    def members(self) -> int:
        return len(self.shares)

    @property
    def is_chief(self) -> bool:
        return self.rank == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """Where a training is after a step, and what the steps since the last report were like."""

    step: int
    """Steps done in this process, over all fits."""
    epoch: int
    batch: int
    """Steps done in this epoch."""
    steps_in_epoch: int | None
    rows: int
    """Of the newest global batch."""
    logs: Mapping[str, float]
    """The metrics over all members, equal on each of them."""
    step_s: float
    """Mean time of a step since the last report."""
    wait_s: float | None = None
    """Where measured, the part of it from when this member's gradients were there until all members' were."""
    grad_norm: float | None = None
    """The norm of a step's gradient not long ago, before clipping."""
    wire_s: float | None = None
    """The shortest `wait_s` of all members, which is what the exchange itself takes."""
    wire_bytes: int | None = None
    """The gradients that this member sends in a step, as they travel."""


class Observer(Protocol):
    """Hears of the training. `logs` are the metrics over all members, equal on each of them."""

    def on_fit_began(
        self, epochs: int, steps: int | None, global_batch: int | None, first_epoch: int = 0, done: int = 0
    ) -> None:
        """`first_epoch`: that of the fit as the script calls it, wherever it resumes. `done`: steps of the
        training before it."""

    def step_due(self) -> bool:
        """Whether a step's report would be passed on now. Asked before metrics are read from the device,
        which holds the training up; a report that comes anyway is good for counting."""

    def on_step(self, report: StepReport) -> None: ...

    def on_measured(self, expectation: Expectation) -> None:
        """Before a model's first step in a fit of several members: what they measured. The same on each."""

    def on_shares(self, shares: tuple[int, ...]) -> None:
        """The shares of the steps to come."""

    def on_epoch_ended(self, epoch: int, logs: Mapping[str, float], steps: int, whole: bool) -> None:
        """`steps` of it are done; `whole` False: it was broken off there."""

    def on_evaluated(self, logs: Mapping[str, float]) -> None: ...

    def on_fit_ended(self) -> None: ...

    def on_said(self, words: str, difference: bool = False) -> None:
        """Something about the training that the user should read, a fallback say. `difference`: by it the
        result may differ from one machine's."""

    def should_stop(self) -> bool:
        """True once this member has been asked to stop. The members agree, end after the same step, run
        their callbacks' on_train_end, and then StopRequested leaves `fit`."""


class StopRequested(BaseException):
    """Training ended early because a member was asked to stop.

    Not an Exception, so that a script's `except Exception` lets it pass.
    """
