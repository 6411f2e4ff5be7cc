"""What a second laptop gains on a slow network, exactly and with rare meetings: alone ÷ pair, in turns.

Beside it: what the machine and the network allow, and what was expected before the first step.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from bench.engine.pair import Pair
from bench.engine.slowed import slowed
from bench.result import Row, foreseen, median, ratios, spread
from bench.wire.link import Link
from core.speed.choices import ideal_s
from core.vocabulary.plausible import step_range
from core.vocabulary.progress import Expectation

ROUNDS = 3
MOST_S = 1380.0
"""No round begins that would end later, except a script's first: the whole takes 25 to 50 minutes."""
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
    exact_steps: int = 0
    """Steps in an epoch of exact steps, which take long; 0: like all others."""
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
    "5m-long-epochs": Script("dense layers, 5 million", 1, 4, exact_steps=10, gradients=4_989_010),
    "resnet50": Script(
        "ResNet-50 at 96 × 96, 23.6 million", 1, 4, exact_steps=4, heavy=True, gradients=23_555_082
    ),
}
"""The measured scripts, by the name of their work."""
UNEQUAL = "resnet20"
PARTS: Mapping[tuple[float, ...], str] = {
    (1, 1 / 3): "one with a third of a core",
    (1, 1 / 2, 1 / 3): "three, of which two with a half and a third of one core",
}
"""Unequal members: the part of a core that each has, by rank. All after the first are on one core."""
OF_ALLOWED, HEAVY, OF_SUM = 0.9, 1.7, 0.92
_NOTHING = Expectation(alone_s=(), step_s=math.nan, wire_s=0.0, wire_bytes=0, shares=())


@dataclass(slots=True)
class Measured:
    """Seconds of a step of the whole batch, round by round; for ``half_s``, of half of it by each of two."""

    alone_s: dict[int, list[float]]
    half_s: dict[int, list[float]]
    """Seconds by the Mbit/s of the pairs that took turns with these; at the slower rate there is a single
    round."""
    together_s: dict[tuple[Kind, int], list[float]]
    """Seconds by kind and Mbit/s."""
    expected: dict[tuple[Kind, int], Expectation]


def measure() -> Iterator[Row]:
    ends_s = time.monotonic() + MOST_S
    for number, work in enumerate(SCRIPTS):
        left, now_s = len(SCRIPTS) - number + len(PARTS), time.monotonic()
        yield from rows(work, _measured(work, until_s=now_s + (ends_s - now_s) / left))
    for parts in PARTS:
        yield _unequal(parts)


def rounds(until_s: float) -> Iterator[int]:
    """Numbers of rounds: as many as end by then, going by the one before, but at least one."""
    took_s = 0.0
    for number in range(ROUNDS):
        began_s = time.monotonic()
        if number and began_s + took_s > until_s:
            return
        yield number
        took_s = time.monotonic() - began_s


def _measured(work: str, until_s: float) -> Measured:
    script, cores = SCRIPTS[work], sorted(os.sched_getaffinity(0))
    epochs = {"exact": script.exact, "rare": script.rare}
    works = {"exact": f"{work}:{script.exact_steps}" if script.exact_steps else work, "rare": work}
    with ExitStack() as stack:
        alone, *halves = (
            stack.enter_context(Pair("tandem", name, shares=(1,), cores=(core,)))
            for name, core in ((work, cores[0]), (f"{work}/2", cores[0]), (f"{work}/2", cores[-1]))
        )
        found = Measured({}, {}, {}, {})
        _step_s("train 1", alone)
        _step_s("train 1", *halves)
        # One network after the other: four pairs of the largest model would not fit in memory.
        for mbit in MBIT:
            with Link(mbit) as link, ExitStack() as on_link:
                # Most steps of so short a fit would be audited; bench/audits.py measures what audits cost.
                pairs = {
                    kind: on_link.enter_context(
                        Pair("tandem", works[kind], link=link, sync=kind, audits=False)
                    )
                    for kind in KINDS
                }
                for kind, pair in pairs.items():
                    pair.order(f"expect {epochs[kind]}")
                    if expectation := pair.answered().expectation:
                        found.expected[kind, mbit] = expectation
                for _ in rounds(until_s if mbit == MBIT[0] else 0.0):
                    found.alone_s.setdefault(mbit, []).append(_step_s(f"train {script.alone}", alone))
                    found.half_s.setdefault(mbit, []).append(_step_s(f"train {script.alone}", *halves))
                    for kind, pair in pairs.items():
                        step_s = _step_s(f"train {epochs[kind]}", pair)
                        found.together_s.setdefault((kind, mbit), []).append(step_s)
    return found


def _step_s(words: str, *pairs: Pair) -> float:
    """Seconds of a step of a fit so ordered, with its part of the meetings; of several side by side, the
    slowest one's."""
    for pair in pairs:
        pair.order(words)
    told = [pair.answered() for pair in pairs]
    return max(each.step_s or math.nan for each in told)


def _unequal(parts: tuple[float, ...]) -> Row:
    """Rare meetings of members with these parts of a core, beside what each reaches alone."""
    script, over = SCRIPTS[UNEQUAL], []
    first, *_, last = sorted(os.sched_getaffinity(0))
    cores = [first, *[last] * (len(parts) - 1)]
    with ExitStack() as stack:
        link = stack.enter_context(Link(MBIT[0], len(parts)))
        pair = stack.enter_context(
            Pair(
                "tandem", UNEQUAL, link=link, sync="rare", shares=(1,) * len(parts), balance=True, cores=cores
            )
        )
        apart = [stack.enter_context(Pair("tandem", UNEQUAL, shares=(1,), cores=(core,))) for core in cores]
        for each in (pair, *apart):
            each.weights()  # all have loaded TensorFlow and met before any is slowed
        for rank, part in enumerate(parts):
            if part < 1:
                for pid in (pair.pids[rank], *apart[rank].pids):
                    stack.enter_context(slowed([pid], part))
        _step_s(f"expect {script.rare}", pair)
        _step_s("train 1", *apart)
        for _ in range(ROUNDS):
            pair.order(f"train {script.rare}")
            told = pair.answered()
            for each in apart:
                each.order("train 1")
            each_s = [each.answered().step_s or math.nan for each in apart]
            over.append(1 / (told.step_s or math.nan) / sum(1 / step_s for step_s in each_s))
    rows = ", ".join(map(str, told.shares))
    note = f"{spread(over)}; rows of a batch: {rows}"
    if (expected := told.expectation) and expected.computing_s:
        # Each computes what a step takes besides its rows, which together is done several times.
        note += (
            f"; {ideal_s(expected) / expected.computing_s[0]:.2f} at most, by each one's time for its rows"
        )
    return Row(
        what=f"{script.title}: rare, {PARTS[parts]} ÷ the sum of all alone",
        value=median(over),
        limit=OF_SUM,
        at="least",
        note=note,
    )


def rows(work: str, measured: Measured) -> list[Row]:
    script = SCRIPTS[work]
    title = script.title
    alone_s = [each for mbit in measured.alone_s for each in measured.alone_s[mbit]]
    half_s = [each for mbit in measured.half_s for each in measured.half_s[mbit]]
    allowed = ratios(alone_s, half_s)
    found = [
        Row(what=f"{title}: a step alone", value=1000 * median(alone_s), unit="ms"),
        Row(
            what=f"{title}: the whole batch ÷ half of it",
            value=median(allowed),
            note=f"by one process a core; {spread(allowed)}",
        ),
    ]
    for (kind, mbit), together_s in measured.together_s.items():
        alone_s, half_s = measured.alone_s[mbit], measured.half_s[mbit]
        gains, what = ratios(alone_s, together_s), f"{title}: {kind} at {mbit} Mbit"
        least = HEAVY if kind == "rare" and script.heavy and mbit == MBIT[0] else None
        found.append(
            Row(what=f"{what}, times alone", value=median(gains), limit=least, at="least", note=spread(gains))
        )
        if kind == "rare" and mbit == MBIT[0]:
            part = ratios(gains, ratios(alone_s, half_s))
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
            most = median([a / max(h, wire_s) for a, h in zip(alone_s, half_s, strict=True)])
            found.append(
                Row(what=f"{what}: the most that the network allows", value=most, note="if all were hidden")
            )
        expected = measured.expected.get((kind, mbit), _NOTHING)
        found.append(foreseen(f"{what}: expected", expected.step_s, step_range(expected), median(together_s)))
    return found
