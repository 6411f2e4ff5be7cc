"""The engine's interface to the process around it: a Cluster, and an Observer to call back. Data only.

Usage, on the main thread of the trainer process, with `install` from `patch.install`:

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from core.vocabulary.errors import Problem
from core.vocabulary.progress import Expectation


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Checkpoints: where this member writes them, and which one its training resumes from."""

    folder: Path
    every_s: float | None = None
    """Seconds of training between two checkpoints; None: follows what one costs, see ``keeper``."""
    resume: Path | None = None
    """A single checkpoint's folder; every member must have the same one."""
    on_kept: Callable[[], None] = lambda: None
    """Called after each checkpoint, on the thread that writes it."""
    goes_back: bool = True
    """Whether the training may end by ``WentBack``: whoever started it then resumes it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """This member's place among the members. The first member present is the chief."""

    strategy: Any
    """A tf.distribute.Strategy: that of ``collectives``, or any for one member alone."""
    rank: int
    shares: tuple[int, ...]
    """One whole number per member; only their proportions matter."""
    seed: int | None
    """None: the installer has already set every seed, the same on all members."""
    wire: str = "f32"
    """How gradients travel: ``f32`` (exact), ``bf16``, ``fp16``, ``int8``, or ``auto`` (see gradients.py)."""
    balance: bool = False
    """Let shares follow the members' speeds, starting from `shares`."""
    checkpointing: Checkpointing | None = None
    """None: no checkpoints. Set on every member or on none."""
    collectives: Any = None
    """The ``Collectives`` that connect the members; None for one member alone."""
    names: tuple[str, ...] = ()
    """Names of the members' laptops, by rank, for messages."""
    folders: tuple[Path, ...] = ()
    """This member's own folders: its script's and its temporary one. Callbacks that write files run on every
    member there, and on the chief alone elsewhere."""
    sync: str = "exact"
    """When members meet: in every step (``exact``), or rarely (``RunOptions.sync``)."""

    def __post_init__(self) -> None:
        if not 0 <= self.rank < len(self.shares):
            raise ValueError(f"rank {self.rank} is not one of {len(self.shares)} members")

    @property
    def members(self) -> int:
        return len(self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """The position of a training after a step, and measurements of the steps since the last report."""

    step: int
    """Steps done in this process, over all fits."""
    epoch: int
    batch: int
    """Steps done in this epoch."""
    steps_in_epoch: int | None
    rows: float
    """Rows of a global batch, the mean over the steps of `step_s`: an epoch's last batch may be smaller."""
    logs: Mapping[str, float]
    """The metrics over all members, equal on each of them."""
    step_s: float
    """Mean time of a step since the last report."""
    recent: Mapping[str, float] | None = None
    """`logs` over only the steps since the last report, where that can be computed."""
    wait_s: float | None = None
    """The part of `step_s` between this member's gradients being ready and all members' being ready; None if
    not measured."""
    grad_norm: float | None = None
    """The norm of a recent step's gradient, before clipping."""
    wire_s: float | None = None
    """The shortest `wait_s` of all members: the time of the exchange itself."""
    wire_bytes: int | None = None
    """Bytes of gradients that this member sends in a step, in wire format."""
    met_every: int = 0
    """Steps between two meetings; 0: members meet in every step."""
    sent_bits: int = 0
    """Bits of each number of gradients, where they travel in fewer than they have; 0: in all."""


class Observer(Protocol):
    """Receives training events. `logs` are the metrics over all members, equal on each of them."""

    def on_fit_began(
        self,
        epochs: int,
        steps: int | None,
        global_batch: int | None,
        first_epoch: int = 0,
        done: int = 0,
        monitored: str = "",
    ) -> None:
        """`first_epoch`: the fit's first epoch as the script calls it, wherever it resumes. `done`: steps
        trained before it. `monitored`: the metric to report first."""

    def step_due(self) -> bool:
        """Whether a step's report would be passed on now. Asked before metrics are read from the device, as
        that stalls training. A report that comes all the same keeps the counts right."""

    def on_step(self, report: StepReport) -> None: ...

    def on_measured(self, expectation: Expectation) -> None:
        """The members' measurements before a model's first step in a fit of several; the same on each."""

    def on_shares(self, shares: tuple[int, ...]) -> None:
        """The shares of the coming steps."""

    def on_epoch_ended(self, epoch: int, logs: Mapping[str, float], steps: int, whole: bool) -> None:
        """`steps` of the epoch are done; `whole` False: it was cut short there."""

    def on_evaluated(self, logs: Mapping[str, float]) -> None: ...

    def on_fit_ended(self) -> None: ...

    def on_said(self, words: str, difference: bool = False) -> None:
        """A message about the training that the user should read, such as a fallback. `difference`: the
        result may differ from one machine's because of it."""

    def should_stop(self) -> bool:
        """True once this member has been asked to stop. The members agree, end after the same step, run
        their callbacks' on_train_end, and then StopRequested leaves `fit`. Raises StopRequested itself where
        only this member ends."""


class StopRequested(BaseException):
    """Training ended early because a member was asked to stop.

    Not an Exception, so that a script's `except Exception` lets it pass.
    """

    why: Problem | None = None
    """The reason to show, if no user asked."""


class WentBack(StopRequested):
    """Training ended on every member, to be resumed from an earlier checkpoint."""

    why: Problem

    def __init__(self, why: Problem) -> None:
        super().__init__()
        self.why = why
