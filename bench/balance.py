"""Two members of unequal speed: an even split against shares by speed, and against what each reaches alone.

Each has its own core; one gets a third of it (``bench.engine.slowed``). Their speeds alone are measured side
by side, as they also share a machine when they train together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from bench.engine.pair import Pair
from bench.engine.place import Answer
from bench.engine.slowed import slowed
from bench.result import Row, median, ratios, spread

ROUNDS = 5
WORK = "pictures"
PART = 1 / 3
EPOCHS = {"even": 1, "balanced": 2, "fast": 3, "slow": 1}
"""Epochs of one round, 16 steps each: chosen so that each kind takes about as long."""
WORDS = {
    "even": "even split",
    "balanced": "shares by speed",
    "fast": "the faster one alone",
    "slow": "the slower one alone",
}
OF_EVEN = 1.7
OF_SUM = 0.9
EXACT = 2e-6
EXACT_EPOCHS = 1
LEARN_EPOCHS = 2
"""Leaves enough steps for the members to be measured before the first of them."""


def measure() -> list[Row]:
    speeds: dict[str, list[float]] = {kind: [] for kind in EPOCHS}
    shares: dict[str, list[tuple[int, ...]]] = {kind: [] for kind in EPOCHS}
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        pairs = {
            "even": Pair("tandem", WORK),
            "balanced": Pair("tandem", WORK, balance=True),
            "fast": Pair("tandem", WORK, shares=(1,), cores=cores[:1]),
            "slow": Pair("tandem", WORK, shares=(1,), cores=cores[-1:]),
        }
        for pair in pairs.values():
            stack.enter_context(pair)
        together = [[pairs[kind] for kind in kinds] for kinds in (["even"], ["balanced"], ["fast", "slow"])]
        for side in together:
            _train(side, [EXACT_EPOCHS] * len(side))
        one = pairs["fast"].weights()[0]
        apart = {kind: difference(pairs[kind].weights(), one) for kind in ("even", "balanced")}
        _train([pairs["balanced"]], [LEARN_EPOCHS])
        for _ in range(ROUNDS):
            for kinds in (["even"], ["balanced"], ["fast", "slow"]):
                told = _train([pairs[kind] for kind in kinds], [EPOCHS[kind] for kind in kinds])
                for kind, answer in zip(kinds, told, strict=True):
                    speeds[kind].append(answer.steps / answer.seconds)
                    shares[kind].append(answer.shares)
    return rows(speeds, apart, shares["balanced"])


def _train(pairs: Sequence[Pair], epochs: Sequence[int]) -> list[Answer]:
    """Trains members of a pair, or two separate ones: the second process of all is slowed."""
    _, slow = [pid for pair in pairs for pid in pair.pids]
    with slowed([slow], PART):
        for pair, count in zip(pairs, epochs, strict=True):
            pair.order(f"train {count}")
        return [pair.answered() for pair in pairs]


def difference(members: Sequence[Sequence[Any]], one: Sequence[Any]) -> float:
    """The largest difference of any weight of any member."""
    return max(
        float(np.max(np.abs(ours - theirs), initial=0.0))
        for weights in members
        for ours, theirs in zip(weights, one, strict=True)
    )


def rows(
    speeds: dict[str, list[float]], apart: dict[str, float], shares: Sequence[Sequence[int]]
) -> list[Row]:
    """``speeds``: by kind, steps per second, round by round; ``apart``: by kind, difference from one process.

    ``shares``: those that the engine found, round by round.
    """
    found = [
        Row(what=WORDS[kind], value=median(each), unit="steps/s", note=spread(each))
        for kind, each in speeds.items()
    ]
    sums = [fast + slow for fast, slow in zip(speeds["fast"], speeds["slow"], strict=True)]
    for words, under, limit in (
        ("shares by speed ÷ even split", speeds["even"], OF_EVEN),
        ("shares by speed ÷ the sum of both alone", sums, OF_SUM),
    ):
        over = ratios(speeds["balanced"], under)
        found.append(Row(what=words, value=median(over), limit=limit, at="least", note=spread(over)))
    parts = [each[0] / sum(each) for each in shares]
    found += [
        Row(what="the faster one's part of a batch", value=median(parts), note=spread(parts)),
        *(
            Row(
                what=f"{WORDS[kind]}: largest difference of a weight from one process's",
                value=value,
                limit=EXACT,
                note="after 16 steps",
            )
            for kind, value in apart.items()
        ),
    ]
    return found
