"""What a second laptop gains on a slow network, exactly and with rare meetings: alone ÷ pair, in turns.

Beside it: what the machine and the network allow, and what was expected before the first step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from bench.engine.pair import Pair
from bench.engine.slowed import slowed
from bench.result import Row, median, ratios, spread
from bench.wire.link import Link

ROUNDS = 3
MBIT = (240, 100)
Kind = Literal["exact", "rare"]
KINDS: tuple[Kind, ...] = ("exact", "rare")


@dataclass(frozen=True, slots=True)
class Script:
    title: str
    alone: int
    """Epochs of a round alone; half a batch alone and together: as many."""
    rare: int
    """Epochs of a round with rare meetings: enough steps for several meetings."""
    exact: int = 1
    gradients: int = 0
    """Numbers that an exact step moves; 0: so few that the network does not matter."""
    heavy: bool = False
    """One of the four with the longest steps."""


SCRIPTS: Mapping[str, Script] = {
    "digits": Script("digits CNN, 36 thousand parameters", 20, 20, 10),
    "convnet": Script("convnet for 32 × 32, 0.5 million", 1, 1, gradients=517_348),
    "resnet20": Script("ResNet-20, 0.3 million", 1, 2, heavy=True, gradients=272_378),
    "gpt": Script("GPT, 1.3 million", 1, 2, heavy=True, gradients=1_268_256),
    "mobilenetv2": Script("MobileNetV2 at 96 × 96, 2.2 million", 1, 2, heavy=True, gradients=2_236_682),
    "5m-long-epochs": Script("dense layers, 5 million", 1, 4, gradients=4_989_010),
    "resnet50": Script("ResNet-50 at 96 × 96, 23.6 million", 1, 4, heavy=True, gradients=23_555_082),
}
"""The measured scripts, by the name of their work."""
UNEQUAL, SLOW = "resnet20", 1 / 3
OF_ALLOWED, HEAVY, OF_SUM, WITHIN = 0.9, 1.7, 0.92, 0.2


@dataclass(slots=True)
class Measured:
    """Seconds of a step of the whole batch, round by round; for ``half_s``, of half of it by each of two."""

    alone_s: list[float]
    half_s: list[float]
    together_s: dict[tuple[Kind, int], list[float]]
    """Seconds by kind and Mbit/s."""
    expected_s: dict[tuple[Kind, int], float]


def measure() -> list[Row]:
    return [row for work in SCRIPTS for row in rows(work, _measured(work))] + _unequal()


def _measured(work: str) -> Measured:
    script = SCRIPTS[work]
    epochs = {"exact": script.exact, "rare": script.rare}
    with ExitStack() as stack:
        alone, *halves = (
            stack.enter_context(Pair("tandem", name, shares=(1,), cores=(core,)))
            for name, core in ((work, 0), (f"{work}/2", 0), (f"{work}/2", 1))
        )
        pairs = {}
        for mbit in MBIT:
            link = stack.enter_context(Link(mbit))
            for kind in KINDS:
                pairs[kind, mbit] = stack.enter_context(Pair("tandem", work, link=link, sync=kind))
        found = Measured([], [], {key: [] for key in pairs}, {})
        _step_s(script.alone, alone)
        _step_s(script.alone, *halves)
        for key, pair in pairs.items():
            pair.order("train 1")
            told = pair.answered()
            found.expected_s[key] = told.expectation.step_s if told.expectation else math.nan
        for _ in range(ROUNDS):
            found.alone_s.append(_step_s(script.alone, alone))
            found.half_s.append(_step_s(script.alone, *halves))
            for (kind, mbit), pair in pairs.items():
                found.together_s[kind, mbit].append(_step_s(epochs[kind], pair))
    return found


def _step_s(epochs: int, *pairs: Pair) -> float:
    """Seconds of a step, with its part of the meetings; of several side by side, the slowest one's."""
    for pair in pairs:
        pair.order(f"train {epochs}")
    told = [pair.answered() for pair in pairs]
    return max(each.step_s or math.nan for each in told)


def _unequal() -> list[Row]:
    """Rare meetings of two of which one has a third of a core, beside what each reaches alone."""
    script, over = SCRIPTS[UNEQUAL], []
    with (
        Link(MBIT[0]) as link,
        Pair("tandem", UNEQUAL, link=link, sync="rare", balance=True) as pair,
        Pair("tandem", UNEQUAL, shares=(1,), cores=(0,)) as fast,
        Pair("tandem", UNEQUAL, shares=(1,), cores=(1,)) as slow,
        slowed([pair.pids[1]], SLOW),
        slowed(slow.pids, SLOW),
    ):
        for side in (pair, fast, slow):
            _step_s(1, side)
        for _ in range(ROUNDS):
            together_s = _step_s(script.rare, pair)
            for each in (fast, slow):
                each.order("train 1")
            fast_s, slow_s = (each.answered().step_s or math.nan for each in (fast, slow))
            over.append(1 / together_s / (1 / fast_s + 1 / slow_s))
    what = f"{script.title}: rare, one with a third of a core ÷ the sum of both alone"
    return [Row(what=what, value=median(over), limit=OF_SUM, at="least", note=spread(over))]


def rows(work: str, measured: Measured) -> list[Row]:
    script, alone_s = SCRIPTS[work], measured.alone_s
    title = script.title
    allowed = ratios(alone_s, measured.half_s)
    found = [
        Row(what=f"{title}: a step alone", value=1000 * median(alone_s), unit="ms"),
        Row(
            what=f"{title}: the whole batch ÷ half of it",
            value=median(allowed),
            note=f"what the machine allows; {spread(allowed)}",
        ),
    ]
    for (kind, mbit), together_s in measured.together_s.items():
        gains, what = ratios(alone_s, together_s), f"{title}: {kind} at {mbit} Mbit"
        least = HEAVY if kind == "rare" and script.heavy and mbit == MBIT[0] else None
        found.append(
            Row(what=f"{what}, times alone", value=median(gains), limit=least, at="least", note=spread(gains))
        )
        if kind == "rare" and mbit == MBIT[0]:
            part = ratios(gains, allowed)
            found.append(
                Row(
                    what=f"{what} ÷ what the machine allows",
                    value=median(part),
                    limit=OF_ALLOWED,
                    at="least",
                    note=spread(part),
                )
            )
        elif kind == "exact" and script.gradients:
            wire_s = script.gradients * 4 * 8 / (mbit * 1e6)
            most = median([a / max(h, wire_s) for a, h in zip(alone_s, measured.half_s, strict=True)])
            found.append(
                Row(what=f"{what}: the most that the network allows", value=most, note="if all were hidden")
            )
        expected_s = measured.expected_s[kind, mbit]
        off = abs(expected_s / median(together_s) - 1)
        found.append(Row(what=f"{what}: expected, off by", value=off, limit=WITHIN))
    return found
