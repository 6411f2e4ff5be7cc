"""Reports of a running training: from trainer to node, node to node, and to screens."""

from __future__ import annotations

from math import inf, nan
from typing import Annotated, Literal

import msgspec

from core.vocabulary.bounds import (
    LOG,
    MOST_LOGS,
    Few,
    FewBy,
    FilePath,
    Logs,
    LogText,
    Many,
    MetEvery,
    Name,
    SentBits,
    Some,
    Word,
    Words,
    fit,
)

MOST_ROWS = 1e12


NotFinite = Annotated[dict[Name, Literal["NaN", "infinite", "-infinite"]], msgspec.Meta(max_length=MOST_LOGS)]
"""Metrics that are no finite numbers, by name: JSON has none of these."""
_FLOATS = {"NaN": nan, "infinite": inf, "-infinite": -inf}


def not_finite(value: float) -> Literal["NaN", "infinite", "-infinite"]:
    """What a value is that is no finite number."""
    if value != value:
        return "NaN"
    return "infinite" if value > 0 else "-infinite"


def floats(metrics: NotFinite) -> dict[str, float]:
    return {name: _FLOATS[what] for name, what in metrics.items()}


class Diverged(msgspec.Struct, frozen=True, kw_only=True):
    """The point at which a ``fit``'s loss became NaN or infinite, and has stayed so. Counts from 0."""

    value: Literal["NaN", "infinite"]
    epoch: int
    step: int

    @property
    def words(self) -> str:
        return f"Loss became {self.value} in epoch {self.epoch + 1:,}"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The newest step, at most ten a second. Epochs and steps count from 0; totals are None where unknown.

    ``step`` counts over the whole of one ``fit``. ``samples_s`` counts the global batch's rows. ``fit`` tells
    several ``fit`` calls of one script apart.
    """

    at_s: float
    fit: int = 0
    epoch: int
    epochs: int
    """0: the step is a single batch (``train_on_batch``), for which no checkpoint is kept."""
    step: int
    batch: int
    steps_in_epoch: int | None = None
    logs: Logs = {}
    samples_s: float | None = None
    steps_s: float | None = None
    """As the clock shows: with the callbacks, data and validation between steps."""
    step_s: float | None = None
    wait_s: float | None = None
    """Seconds in the last step from having its own gradients to having all members': the wait for slower
    members, and the part of the exchange that was not hidden."""
    grad_norm: float | None = None
    """The global norm of the gradient of all rows, before clipping; measured about twice a second."""
    share: int | None = None
    """This member's rows of the batch."""
    wire_s: float | None = None
    """Seconds of a step for exchanging gradients, without waits for slower members: the shortest ``wait_s``
    of all members."""
    wire_bytes: int | None = None
    """Bytes of gradients that this member sends in a step, as they travel (after ``--wire``)."""
    done: int | None = None
    """Steps done in the whole training, over all fits and before it was resumed, including this one."""
    diverged: Diverged | None = None
    met_every: MetEvery = 0
    """Members meet after so many steps: not the result of one machine. 0: in every step."""
    sent_bits: SentBits = 0
    """Gradients are sent in so many bits a number, fewer than they have: not the result of one machine. 0: in
    all."""
    recent: Logs | None = None
    """Means since the previous report, for values that Keras averages over the epoch so far. Other metrics
    are left out; values of no metric are as in ``logs``. None: unknown."""
    not_finite: NotFinite = {}
    """Those of ``recent`` if it is known, else of ``logs``."""

    @property
    def rows(self) -> int:
        """Rows of the global batch in this step; 0 where it is not known."""
        rows = (self.samples_s or 0.0) * (self.step_s or 0.0)
        return round(rows) if 0 < rows < MOST_ROWS else 0

    def whole_after(self, before: Progress | None) -> Progress:
        """The later report with a whole batch: an epoch's last batch may be smaller."""
        if before is None or before.fit != self.fit or before.share is None:
            return self
        return self if self.rows >= before.rows else before


class Audits(msgspec.Struct, frozen=True, kw_only=True):
    """The number of a training's shared steps, and how many of them were also computed whole for
    comparison; those of the runs that it resumes included."""

    steps: Annotated[int, msgspec.Meta(ge=0)]
    audited: Annotated[int, msgspec.Meta(ge=0)]
    why: Words = ""
    """Why none of a model's steps was audited, for the first such model."""


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The members' measurements before a ``fit``'s first step, and what follows from them. Plurals are by
    rank.

    Times are seconds of one step of the whole global batch.
    """

    alone_s: Few[float]
    """If that member trained alone."""
    step_s: float
    """Together, with ``shares``."""
    step_range_s: Few[float] = ()
    """Between which times that is expected, since measurements differ; empty: an older Tandem measured."""
    wire_s: float
    """The part of ``step_s`` that exchanging gradients takes."""
    wire_bytes: int
    """Bytes that each member sends in a step."""
    shares: Few[int]
    """Rows of the global batch."""
    audit_bytes: int = 0
    """The most additional memory for an audited step on one laptop, in bytes; 0 if none is audited."""
    computing_s: Few[float] = ()
    """The longest time that a member computes its rows without any exchange; and twice its rows. Empty: an
    older Tandem measured."""


Blamed = Literal["unlike", "steps", "wire", "shares", "load"]


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Advice if several laptops are hardly faster than one of them alone.

    ``cause``: ``unlike``: the slowest adds little; ``steps``: they are too short for an exchange in each;
    ``wire``: it is too slow; ``shares``: the fixed ones do not fit the laptops' speeds; ``load``: other
    programs, or a small batch.
    """

    cause: Blamed
    alone: str
    """The laptop to train on alone."""
    here: bool
    """Whether that is the laptop that starts the run."""
    fastest: str
    slowest: str
    """Members: of a laptop with several graphics cards, one card."""
    fast_s: float
    slow_s: float
    """Time of a step of the whole batch by each of these two alone."""
    together: float = 1.0
    """Speed of all together ÷ speed of the fastest alone. The fields below estimate this ratio for other
    choices; None: already chosen, or no faster than alone."""
    spread: Few[float] = ()
    """The least and the most that comes out of such an estimate ÷ the estimate."""
    narrow: float | None = None
    """If gradients travelled as bfloat16."""
    narrowest: float | None = None
    """If they travelled in 8 bits."""
    rarely: float | None = None
    """If members met rarely."""
    larger: float | None = None
    """With batches of twice the rows, exact."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Results: medians over a training's steps, without its first seconds and epochs' last batches."""

    step_s: float
    samples_s: float | None = None
    """Rows of the global batch."""
    wire_s: float | None = None
    """The part of ``step_s`` that exchanging gradients took."""
    wire_bytes: int | None = None
    shares: FewBy[Word, int] = {}
    """Rows of the batch at the end, by device id."""


class EpochEnd(msgspec.Struct, frozen=True, kw_only=True):
    """An epoch's logs as Keras gives them to callbacks, ``val_*`` included."""

    at_s: float
    fit: int = 0
    epoch: int
    epochs: int
    step: int
    logs: Logs = {}
    seconds: float
    whole: bool = True
    """False: it was interrupted after ``steps`` of ``steps_in_epoch``; these are its logs."""
    steps: int | None = None
    steps_in_epoch: int | None = None
    diverged: Diverged | None = None
    not_finite: NotFinite = {}

    @property
    def values(self) -> dict[str, float]:
        """Its logs, NaN and infinities included."""
        return {**self.logs, **floats(self.not_finite)}


class Best(msgspec.Struct, frozen=True, kw_only=True):
    """A metric's best value at the end of an epoch, which counts from 0."""

    value: float
    epoch: int


class LogLines(msgspec.Struct, frozen=True, kw_only=True):
    """Output of a trainer's process. ``stream``: ``stdout``, ``stderr``, or ``tandem`` for Tandem's own
    messages about the training (such as a fallback). ``text`` may hold many lines."""

    task: Name
    stream: Word
    text: LogText
    dropped: int = 0
    """Lines dropped before these because there were too many; the log file has all of them."""
    difference: bool = False
    """Tandem's own message about a way in which the result may differ from one machine's."""

    def __post_init__(self) -> None:
        fit(self, text=LOG)


class EpochPart(msgspec.Struct, frozen=True, kw_only=True):
    """How many steps of an interrupted epoch were done."""

    steps: int
    steps_in_epoch: int | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a run. Times in seconds, ``total_s`` including the runs that it resumed; None if it did not
    get that far."""

    strategy: Name = ""
    """The chief's, by its name in ``tf.distribute``."""
    exchange: Word = ""
    """The ``Exchange`` of its members; empty for a single process."""
    first_step_s: float | None = None
    """Time from pressing Train or Resume."""
    train_s: float | None = None
    """Time from that step to the last."""
    total_s: float | None = None
    """Time from pressing Train to the end, plus ``Resumption.took_s``."""
    started_s: float | None = None
    """Unix time of pressing Train, by the clock of the laptop where it was pressed."""
    epochs: int = 0
    """Complete epochs."""
    steps: int = 0
    """Including those of the run that this one resumed."""
    part: EpochPart | None = None
    """The last epoch, if it was interrupted."""
    steps_s: float | None = None
    samples_s: float | None = None
    last_logs: Logs = {}
    """Logs of the last complete epoch; without one, of the interrupted epoch."""
    weights_sha256: FewBy[Word, Word] = {}
    """Digests by device id."""
    outputs: Many[FilePath] = ()
    """Relative paths in the run folder's ``outputs``; ``trained/model.keras`` is the model that Tandem
    saved."""
    expectation: Expectation | None = None
    """The members' last measurement before a ``fit``'s first step."""
    settled: Settled | None = None
    """Results since that measurement; without one, of the newest ``fit``. None before any step."""
    told: Some[Words] = ()
    """Ways in which the result may differ from one machine's, in sentences."""
    accepted: bool = False
    """The user had accepted such differences before."""
    diverged: Diverged | None = None
    """The loss was NaN or infinite at the end."""

    audits: Audits | None = None
    """The chief's evidence that sharing changed nothing; None if nothing was shared."""
    met_every: int = 0
    """The most steps of a model's training between two meetings; 0: members met in every step."""
    sent_bits: int = 0
    """The fewest bits a number in which a model's gradients were sent; 0: in all that they have."""
    left: FewBy[Word, int] = {}
    """The number of steps after which the others went on without a laptop, by device id."""

    @property
    def differs(self) -> bool:
        """Whether it may differ from one machine's result, and nobody has accepted that."""
        return bool(self.told) and not self.accepted

    @property
    def flaw(self) -> str:
        """Why a finished run is not simply finished; ``""``: it is."""
        if self.diverged is not None:
            return f"the {self.diverged.words[:1].lower()}{self.diverged.words[1:]}"
        return "not with the result of one machine" if self.differs else ""

    @property
    def speed_samples_s(self) -> float | None:
        """Rows per second, without the first seconds if known: the usual meaning of speed."""
        settled = self.settled.samples_s if self.settled is not None else None
        return self.samples_s if settled is None else settled
