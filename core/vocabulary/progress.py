"""What a training says while it runs: from trainer to node, node to node, and to screens."""

from __future__ import annotations

import msgspec


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


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of a run. Times in seconds from pressing Train; None where it did not come so far."""

    strategy: str = ""
    """The chief's, by its name in ``tf.distribute``."""
    exchange: str = ""
    """The ``Exchange`` by which its members met; empty for one process alone."""
    first_step_s: float | None = None
    train_s: float | None = None
    total_s: float | None = None
    epochs: int = 0
    steps: int = 0
    steps_s: float | None = None
    samples_s: float | None = None
    last_logs: dict[str, float] = {}
    weights_sha256: dict[str, str] = {}
    """By device id."""
    outputs: tuple[str, ...] = ()
    """Relative paths in the run folder's ``outputs``; ``trained/model.keras`` is what Tandem kept."""
    expectation: Expectation | None = None
    """What the members measured last, before a ``fit``'s first step."""
    settled: Settled | None = None
    """What came out from there on; without a measurement, of the newest ``fit``. None before any step."""
