"""What goes between a benchmark and its members: who each is, and what it answers."""

from __future__ import annotations

import msgspec

from core.vocabulary.plan import Wire
from core.vocabulary.progress import Expectation
from core.vocabulary.trainer_messages import ExchangeKeys, Seal


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The one argument of ``python -m bench.engine.member``.

    ``kind``: ``tandem``, or a loop by hand (``guide``, ``tuned``, and ``sealed``, which is ``tuned`` in a
    seal). ``shares``: one a member, by rank, where they begin if the engine is to ``balance`` them. ``keep``:
    the folder of its checkpoints, ``""`` for none. ``exchange``: with what Tandem's members meet; ``seal``:
    with what relays do. ``keys``: the folder of those of members that only exchange, by rank.
    """

    kind: str
    work: str
    rank: int = 0
    core: int = 0
    shares: tuple[int, ...] = (1, 1)
    balance: bool = False
    wire: Wire = "f32"
    keep: str = ""
    keep_every_s: float = 10.0
    exchange: ExchangeKeys | None = None
    seal: Seal | None = None
    keys: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """After an order. Where it was to train by Tandem: what an observer heard, too."""

    steps: int = 0
    seconds: float = 0.0
    step_s: float | None = None
    """The median of what was told of steps of whole batches in the fit's later half."""
    expectation: Expectation | None = None
    """The last that was measured, in this fit or before."""
    shares: tuple[int, ...] = ()
    """The newest."""
