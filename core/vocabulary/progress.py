"""What a training says while it runs: from trainer to node, node to node, and to screens."""

from __future__ import annotations

import msgspec

MOST_ROWS = 1e12


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The newest step, at most ten a second. Epochs and steps count from 0; totals None where unknown.

    ``step`` counts over the whole of one ``fit``. ``samples_s`` counts the global batch's rows.
    ``fit`` tells several ``fit`` calls of one script apart.
    """

    at_s: float
    fit: int = 0
    epoch: int
    epochs: int
    step: int
    batch: int
    steps_in_epoch: int | None = None
    logs: dict[str, float] = {}
    samples_s: float | None = None
    steps_s: float | None = None
    step_s: float | None = None
    wait_s: float | None = None
    """Seconds of the last step from when this member's gradients were there until all members' had come: the
    wait for slower members, and what of the exchange itself was not hidden."""
    grad_norm: float | None = None
    """The global norm of the gradient of all rows, before clipping; taken about twice a second."""
    share: int | None = None
    """This member's rows of the batch."""
    wire_s: float | None = None
    """What of a step the exchange of gradients takes where nobody waits for a slower member: the shortest
    ``wait_s`` of all members."""
    wire_bytes: int | None = None
    """Bytes of gradients that this member sends in a step, as they travel (after ``--wire``)."""
    done: int | None = None
    """Steps done in the whole training, over all fits and before it was resumed, this one included."""

    @property
    def rows(self) -> int:
        """Of the global batch in this step; 0 where it is not known."""
        rows = (self.samples_s or 0.0) * (self.step_s or 0.0)
        return round(rows) if 0 < rows < MOST_ROWS else 0

    def whole_after(self, before: Progress | None) -> Progress:
        """The later one whose batch is whole: an epoch's last one may be smaller."""
        if before is None or before.fit != self.fit or before.share is None:
            return self
        return self if self.rows >= before.rows else before


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What the members measured before a ``fit``'s first step, and what they conclude. By rank where plural.

    Times are seconds of one step of the whole global batch.
    """

    alone_s: tuple[float, ...]
    """If that member trained alone."""
    step_s: float
    """Together, with ``shares``."""
    wire_s: float
    """What of ``step_s`` the exchange of gradients takes."""
    wire_bytes: int
    """What each member sends in a step."""
    shares: tuple[int, ...]
    """Rows of the global batch."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What came out: medians over a training's steps, without its first seconds and epochs' last batches."""

    step_s: float
    samples_s: float | None = None
    """Rows of the global batch."""
    wire_s: float | None = None
    """What of ``step_s`` the exchange of gradients took."""
    wire_bytes: int | None = None
    shares: dict[str, int] = {}
    """Rows of the batch at the end, by device id."""


class EpochEnd(msgspec.Struct, frozen=True, kw_only=True):
    """An epoch's logs as Keras gives them to callbacks, ``val_*`` included."""

    at_s: float
    fit: int = 0
    epoch: int
    epochs: int
    step: int
    logs: dict[str, float] = {}
    seconds: float
    whole: bool = True
    """False: it was broken off after ``steps`` of its ``steps_in_epoch``, of which these are the logs."""
    steps: int | None = None
    steps_in_epoch: int | None = None


class Best(msgspec.Struct, frozen=True, kw_only=True):
    """The best that a metric was at the end of an epoch, which counts from 0."""

    value: float
    epoch: int


class LogLines(msgspec.Struct, frozen=True, kw_only=True):
    """What a trainer's process wrote. ``stream``: ``stdout``, ``stderr``, or ``tandem`` for Tandem's own
    words about the training (a fallback, say). ``text`` may hold many lines."""

    task: str
    stream: str
    text: str
    dropped: int = 0
    """Lines left out before these because there were too many; all of them are in the log file."""
    difference: bool = False
    """Tandem's own words, of something by which the result may differ from one machine's."""


class EpochPart(msgspec.Struct, frozen=True, kw_only=True):
    """An epoch that was not trained to its end: how many of its steps were done."""

    steps: int
    steps_in_epoch: int | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of a run. Times in seconds from pressing Train; None where it did not come so far."""

    strategy: str = ""
    """The chief's, by its name in ``tf.distribute``."""
    exchange: str = ""
    """The ``Exchange`` by which its members met; empty for one process alone."""
    first_step_s: float | None = None
    train_s: float | None = None
    total_s: float | None = None
    started_s: float | None = None
    """Unix time of pressing Train, by the clock of the laptop where it was pressed."""
    epochs: int = 0
    """Whole ones."""
    steps: int = 0
    """With those of the run that this one resumed."""
    part: EpochPart | None = None
    """Of the last epoch, where it was broken off."""
    steps_s: float | None = None
    samples_s: float | None = None
    last_logs: dict[str, float] = {}
    """Of the last whole epoch; where there is none, of the one that was broken off."""
    weights_sha256: dict[str, str] = {}
    """By device id."""
    outputs: tuple[str, ...] = ()
    """Relative paths in the run folder's ``outputs``; ``trained/model.keras`` is what Tandem kept."""
    expectation: Expectation | None = None
    """What the members measured last, before a ``fit``'s first step."""
    settled: Settled | None = None
    """What came out from there on; without a measurement, of the newest ``fit``. None before any step."""
    told: tuple[str, ...] = ()
    """By what the result may differ from one machine's, in sentences."""
    accepted: bool = False
    """The user had accepted such differences before."""

    @property
    def differs(self) -> bool:
        """It may not be the result of one machine, and nobody has accepted that."""
        return bool(self.told) and not self.accepted
