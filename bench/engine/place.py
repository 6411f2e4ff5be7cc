"""Which process of a benchmark this is: the one argument of ``python -m bench.engine.member``."""

from __future__ import annotations

import msgspec

from core.cluster.plan import Wire


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """``kind``: ``tandem``, or a loop by hand (``guide``, ``tuned``). ``shares``: one a member, by rank."""

    kind: str
    work: str
    rank: int = 0
    core: int = 0
    shares: tuple[int, ...] = (1, 1)
    wire: Wire = "f32"
