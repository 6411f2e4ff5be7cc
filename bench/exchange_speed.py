"""The time of a sum between two members: by the exchange, by plain sockets, by TensorFlow's collectives.

All are measured in one run, in turns round by round, so that other load on the machine affects all of them.
Even so, seconds compare badly on busy machines, since more threads get more of a core: a core's time is
reported, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.engine.pair import Pair
from bench.processes import own_cpu_s
from bench.result import Row, median, ratios, spread
from bench.wire.link import Link
from core.home.identity import load_or_create

ROUNDS = 9
KINDS = {
    "ops": "the exchange within TensorFlow",
    "ring": "TensorFlow's collectives",
    "mwms": "MultiWorkerMirroredStrategy as it is",
    "tls": "the exchange without TensorFlow",
    "tcp": "plain TCP",
}
COMPARED = (("ops", "ring"), ("ops", "mwms"), ("tls", "tcp"))
WORKS = {"38000/1": "38,000 floats", "5000000/4": "5 million floats"}
"""Titles by floats and packs."""


@dataclass(frozen=True, slots=True)
class Case:
    """``mbit``: rate of the cable between the two; None: this machine's loopback. ``limits``: of the
    exchange's seconds, relative to those of the other way."""

    work: str
    steps: int
    kinds: tuple[str, ...] = tuple(KINDS)
    mbit: int | None = None
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def words(self) -> str:
        return WORKS[self.work] + (f", {self.mbit} Mbit/s" if self.mbit else "")


_OVER_CABLES = ("ops", "mwms", "tls", "tcp")
CASES = (
    Case("38000/1", 100, limits={"ring": 1.0, "mwms": 0.45}),
    Case("5000000/4", 8, limits={"mwms": 0.75}),
    Case("5000000/4", 4, _OVER_CABLES, 936, {"mwms": 0.9, "tcp": 1 / 0.9}),
    Case("5000000/4", 2, _OVER_CABLES, 240, {"mwms": 1.0, "tcp": 1 / 0.95}),
)


def measure() -> list[Row]:
    return [row for case in CASES for row in _measure(case)]


def _measure(case: Case) -> list[Row]:
    took_s: dict[str, list[float]] = {kind: [] for kind in case.kinds}
    used_s = dict.fromkeys(case.kinds, 0.0)
    with ExitStack() as stack:
        link = stack.enter_context(Link(case.mbit)) if case.mbit else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tandem-bench-")))
        for rank in range(2):
            load_or_create(folder / str(rank))
        pairs = [
            stack.enter_context(Pair(kind, case.work, link=link, module="bench.meeting.member", keys=folder))
            for kind in case.kinds
        ]
        for pair in pairs:
            pair.train(2)
        for _ in range(ROUNDS):
            for pair in pairs:
                before_s = sum(map(own_cpu_s, pair.pids))
                count, seconds = pair.train(case.steps)
                took_s[pair.kind].append(seconds / count)
                # One step more than those timed, by which both began together.
                used_s[pair.kind] += (
                    (sum(map(own_cpu_s, pair.pids)) - before_s) / (count + 1) / len(pair.pids)
                )
    return rows(case.words, took_s, used_s, case.limits)


def rows(
    words: str, took_s: dict[str, list[float]], used_s: dict[str, float], limits: Mapping[str, float]
) -> list[Row]:
    """A row for each kind, and one for each ratio of two of them.

    ``took_s``: seconds of a step, by round. ``used_s``: a core's seconds per step and member, summed over all
    rounds. ``limits``: of the exchange's seconds, relative to those of another kind.
    """
    found = [
        Row(
            what=f"{words}: {KINDS[kind]}",
            value=1000 * median(seconds),
            unit="ms",
            note=f"{spread([1000 * each for each in seconds], 1)}; "
            f"of a core's time {1000 * used_s[kind] / len(seconds):.2f} ms",
        )
        for kind, seconds in took_s.items()
    ]
    for ours, other in COMPARED:
        if other not in took_s:
            continue
        over = ratios(took_s[ours], took_s[other])
        found.append(
            Row(
                what=f"{words}: {KINDS[ours]} ÷ {KINDS[other]}",
                value=median(over),
                limit=limits.get(other),
                note=f"{spread(over)}; of a core's time {used_s[ours] / max(used_s[other], 1e-9):.2f}",
            )
        )
    return found
