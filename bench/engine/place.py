"""Messages between a benchmark and its members: who each is, and what it answers."""

from __future__ import annotations

import msgspec

from core.vocabulary.options import Sync, Wire
from core.vocabulary.progress import Expectation
from core.vocabulary.trainer_messages import Enclosure, ExchangeKeys, Seal


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The one argument of ``python -m bench.engine.member``.

    ``kind``: ``tandem``, or a hand-written loop (``guide``, ``tuned``, and ``sealed``, which is ``tuned`` in
    a seal). ``shares``: one per member, by rank; initial ones if the engine is to ``balance`` them. ``keep``:
    the folder of its checkpoints, ``""`` for none. ``exchange``: keys by which Tandem's members meet;
    ``seal``: those for relays. ``keys``: the folder of those of members that only exchange, by rank.
    ``walls``: around it. ``audits``: whether steps are audited; ``undoes``: whether they can be
    undone, for a member that leaves; ``writes``: whether a checkpoint is written when it is due.
    """

    kind: str
    work: str
    rank: int = 0
    core: int = 0
    shares: tuple[int, ...] = (1, 1)
    balance: bool = False
    wire: Wire = "f32"
    sync: Sync = "exact"
    keep: str = ""
    keep_every_s: float | None = None
    exchange: ExchangeKeys | None = None
    seal: Seal | None = None
    keys: str = ""
    walls: Enclosure | None = None
    audits: bool = True
    undoes: bool = True
    writes: bool = True


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an order. If it was to train by Tandem, also what an observer recorded."""

    steps: int = 0
    seconds: float = 0.0
    step_s: float | None = None
    """The median over reports on steps of whole batches in the fit's later half."""
    expectation: Expectation | None = None
    """The last one measured, in this fit or before."""
    shares: tuple[int, ...] = ()
    """The newest shares."""
    loss: float | None = None
    """Of the rows held out."""
    losses: tuple[tuple[float, float], ...] = ()
    """Seconds since the first step of all, and the loss of the newest steps then, in the newest fit."""
    first_at_s: float | None = None
    """When the first step of all was done, in seconds of the system's clock."""
