"""The cost of being able to leave and to come back: pairs of processes take turns, all without audits.
One can undo the step in which a member leaves, and notes what checkpoints need; the other does neither.

No checkpoint is written: a short round would contain more of them than a run does in that time. Their share
of a run's time is limited, and that limit is subtracted instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.engine.pair import Pair
from bench.result import Row, interval, median, ratios

PAIRS, ROUNDS = 5, 2
"""Pairs are several: one of two equal ones may be some percent faster for as long as it lives."""
WARM_UP = 4
"""Each process first trains this part of a round, untimed: it traces, and calls grow to their length."""
CHECKPOINTS = 0.01
"""The share of a run's time that checkpoints may take: ``COST`` in ``core.trainer.exact.resume.keeper``."""
WORKS = {"digits": ("digits CNN", 100, 0.94), "5m": ("5 million parameters", 16, 0.97)}
"""Title of each, the epochs of a round (about 8 s), and the least speed with ÷ without."""


def measure() -> Iterator[Row]:
    for work, (words, epochs, limit) in WORKS.items():
        yield from rows(words, _speeds(work, epochs), limit)


def _speeds(work: str, epochs: int) -> dict[str, list[float]]:
    """Steps per second, round by round."""
    speeds: dict[str, list[float]] = {"with": [], "without": []}
    for number in range(PAIRS):
        _train_in_turns(work, epochs, number, speeds)
    return speeds


def _train_in_turns(work: str, epochs: int, first: int, speeds: dict[str, list[float]]) -> None:
    with (
        TemporaryDirectory(prefix="tandem-bench-") as folder,
        Pair("tandem", work, audits=False, keep=Path(folder), writes=False) as able,
        Pair("tandem", work, audits=False, undoes=False) as plain,
    ):
        pairs = {"with": able, "without": plain}
        for pair in pairs.values():
            pair.train(epochs // WARM_UP)
        for number in range(first, first + ROUNDS):
            # Each goes first equally often.
            for kind in sorted(pairs, reverse=number % 2 == 1):
                steps, seconds = pairs[kind].train(epochs)
                speeds[kind].append(steps / seconds)


def rows(what: str, speeds: Mapping[str, Sequence[float]], limit: float) -> list[Row]:
    """``speeds`` in steps per second."""
    steps = ratios(speeds["with"], speeds["without"])
    over = [each * (1 - CHECKPOINTS) for each in steps]
    return [
        Row(
            what=f"{what}: with ÷ without",
            value=median(over),
            limit=limit,
            at="least",
            note=interval(over),
        )
    ]
