"""The cost of walls for a trainer's steps with another member, and its start. With and without, in turns."""

from __future__ import annotations

import asyncio
import os
import select
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import processes
from bench.engine.pair import Pair
from bench.result import Row, interval, median, ratios, spread
from core.supervisor import spawn
from core.vocabulary.trainer_messages import Enclosure
from core.vocabulary.wire import to_json
from core.walls import levels

PAIRS, STEP_ROUNDS, START_ROUNDS = 5, 16, 15
"""Rounds are many and short: other load on the machine then slows both sides of a ratio. Pairs are several:
one of two equal ones may be some percent faster for as long as it lives."""
EPOCHS = 1
WORK = "5m"
STEP_LIMIT, START_LIMIT = 1.02, 1.05
ADDED_MS = 60.0
"""5 % of the time from pressing Train to the first step with a trainer that was kept ready (`first_step`)."""
LOAD_S = 120.0
"""Longest time for TensorFlow to load."""


def measure() -> list[Row]:
    if levels.found().walls == "none":
        raise RuntimeError("this system has no walls")
    return [*rows("a step of 5 million parameters", "ms", _steps(), STEP_LIMIT), *_start_rows()]


def rows(what: str, unit: str, took: tuple[list[float], list[float]], limit: float) -> list[Row]:
    """``took``: within walls, and without, round by round."""
    over = ratios(*took)
    return [
        *(
            Row(what=f"{what}, {how}", value=median(each), unit=unit, note=spread(each))
            for how, each in zip(("within walls", "without"), took, strict=True)
        ),
        Row(what=f"{what}: within ÷ without", value=median(over), limit=limit, note=interval(over)),
    ]


def _steps() -> tuple[list[float], list[float]]:
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(PAIRS):
        with ExitStack() as stack:
            # Without audits, which are at random steps.
            pairs = [
                stack.enter_context(Pair("tandem", WORK, walled=each, audits=False)) for each in (True, False)
            ]
            for pair in pairs:
                pair.train(2)
            for turn in range(number, number + STEP_ROUNDS):
                # Each comes first in every other round.
                for place in (0, 1) if turn % 2 else (1, 0):
                    steps, seconds = pairs[place].train(EPOCHS)
                    took[place].append(1000 * seconds / steps)
    return took


def _start_rows() -> Sequence[Row]:
    new, kept = (_starts(warm=warm) for warm in (False, True))
    return [*rows("a start, until TensorFlow is loaded", "s", new, START_LIMIT), *added(kept)]


def added(took: tuple[list[float], list[float]]) -> list[Row]:
    """Rows for a trainer that was kept ready. ``took``: as for ``rows``, in seconds."""
    within, without = ([1000 * each for each in side] for side in took)
    more = [one - other for one, other in zip(within, without, strict=True)]
    what = "one kept ready, until it takes its order"
    return [
        Row(what=f"{what}, within walls", value=median(within), unit="ms", note=spread(within)),
        Row(what=f"{what}, without", value=median(without), unit="ms", note=spread(without)),
        Row(what=f"{what}: walls add", value=median(more), unit="ms", limit=ADDED_MS, note=spread(more)),
    ]


def _starts(*, warm: bool) -> tuple[list[float], list[float]]:
    took: tuple[list[float], list[float]] = ([], [])
    for turn in range(START_ROUNDS):
        for place in (0, 1) if turn % 2 else (1, 0):
            took[place].append(_start_s(walled=place == 0, warm=warm))
    return took


def _start_s(*, walled: bool, warm: bool) -> float:
    """Seconds from the decision to start a trainer to its first report."""
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
        own = (str(Path(folder, "work")), str(Path(folder, "home")))
        walls = Enclosure(folders=own, home=own[1], user=str(Path.home()), port=20_000, calls=(20_001,))
        began_s = time.monotonic()
        child = spawn.spawn_warm() if warm else spawn.spawn(walls=walls if walled else None)
        try:
            if warm:
                asyncio.run(processes.wait_at_rest(child.pid))
                began_s = time.monotonic()
                begin = spawn.beginning(walls=walls if walled else None)
                os.write(child.orders, to_json(begin) + b"\n")
            heard, _, _ = select.select([child.reports], [], [], LOAD_S)
            took_s = time.monotonic() - began_s
            if not heard or b"booted" not in os.read(child.reports, 65536).lower():
                raise RuntimeError("a trainer did not load TensorFlow")
        finally:
            child.end()
    return took_s
