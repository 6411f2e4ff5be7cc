"""The cost of the seal for a hand-written MultiWorkerMirroredStrategy loop: the same loop sealed, and open.

Each has two processes, each pinned to a core with its relay, so that the relay's time is taken from training;
behind a cable, and behind one that is faster than they are. The two kinds take turns round by round.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.engine.pair import Pair
from bench.result import Row, median, ratios, spread
from bench.wire.link import FREE_MBIT, Link

ROUNDS = 9
EPOCHS = 1
WORK = "5m"
KINDS = {"sealed": "sealed", "tuned": "with an open port"}
LIMITS = {FREE_MBIT: 1.15, 936: 1.05}
"""Limits of a sealed step's seconds, relative to an open one's, by the cable's Mbit/s."""


def measure() -> list[Row]:
    return [row for mbit in LIMITS for row in _measure(mbit)]


def _measure(mbit: int) -> list[Row]:
    step_s: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with ExitStack() as stack:
        link = stack.enter_context(Link(mbit))
        pairs = [stack.enter_context(Pair(kind, WORK, link=link)) for kind in KINDS]
        for pair in pairs:
            pair.train(2)
        for _ in range(ROUNDS):
            for pair in pairs:
                steps, seconds = pair.train(EPOCHS)
                step_s[pair.kind].append(seconds / steps)
    return rows("free link" if mbit == FREE_MBIT else f"{mbit} Mbit/s", step_s, LIMITS[mbit])


def rows(cable: str, step_s: dict[str, list[float]], limit: float) -> list[Row]:
    """``step_s``: by kind, a step's seconds round by round."""
    over = ratios(step_s["sealed"], step_s["tuned"])
    return [
        *(
            Row(
                what=f"5 million parameters, {cable}: {words}",
                value=1000 * median(step_s[kind]),
                unit="ms",
                note=spread([1000 * each for each in step_s[kind]], 0),
            )
            for kind, words in KINDS.items()
        ),
        Row(
            what=f"5 million parameters, {cable}: sealed ÷ open",
            value=median(over),
            limit=limit,
            note=spread(over),
        ),
    ]
