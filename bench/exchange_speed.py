"""What a sum between two members takes: by the exchange, by plain sockets, by TensorFlow's collectives.

All of them in one run, in turns round by round, so that what else the machine does meets all of them. On busy
machines seconds compare badly even so, since more threads get more of a core: a core's time is told, too.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.engine.pair import Pair
from bench.processes import own_cpu_s
from bench.result import Row, median, ratios, spread
from core.home.identity import load_or_create

ROUNDS = 9
KINDS = {
    "ops": "the exchange within TensorFlow",
    "ring": "TensorFlow's collectives",
    "tls": "the exchange without TensorFlow",
    "tcp": "plain TCP",
}
COMPARED = (("ops", "ring"), ("tls", "tcp"))
WORKS = {"38000/1": ("38,000 floats", 100), "5000000/4": ("5 million floats", 8)}
"""Floats and packs: what it is called, and how many steps a round has."""
OF_COLLECTIVES = {"38000/1": 1.0}


def measure() -> list[Row]:
    return [row for work in WORKS for row in _measure(work)]


def _measure(work: str) -> list[Row]:
    took_s: dict[str, list[float]] = {kind: [] for kind in KINDS}
    used_s = dict.fromkeys(KINDS, 0.0)
    words, steps = WORKS[work]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tandem-bench-")))
        for rank in range(2):
            load_or_create(folder / str(rank))
        pairs = [
            stack.enter_context(Pair(kind, work, module="bench.meeting.member", keys=folder))
            for kind in KINDS
        ]
        for pair in pairs:
            pair.train(2)
        for _ in range(ROUNDS):
            for pair in pairs:
                before_s = sum(map(own_cpu_s, pair.pids))
                count, seconds = pair.train(steps)
                took_s[pair.kind].append(seconds / count)
                # A step more than those timed, by which both began together.
                used_s[pair.kind] += (
                    (sum(map(own_cpu_s, pair.pids)) - before_s) / (count + 1) / len(pair.pids)
                )
    return rows(words, took_s, used_s, OF_COLLECTIVES.get(work))


def rows(
    words: str, took_s: dict[str, list[float]], used_s: dict[str, float], limit: float | None
) -> list[Row]:
    """By kind: seconds of a step by round, and a core's seconds for a step and member, all rounds' sum.

    ``limit``: of the exchange's seconds, as a part of those of TensorFlow's collectives.
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
        over = ratios(took_s[ours], took_s[other])
        found.append(
            Row(
                what=f"{words}: {KINDS[ours]} ÷ {KINDS[other]}",
                value=median(over),
                limit=limit if other == "ring" else None,
                note=f"{spread(over)}; of a core's time {used_s[ours] / max(used_s[other], 1e-9):.2f}",
            )
        )
    return found
