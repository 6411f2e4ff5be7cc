"""The cost of audits: how much later the first step is reported, and what the steps of trainings and
evaluations after the first seconds lose, by two pairs in turn, one of which audits none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.engine.pair import Pair
from bench.result import Row, median, ratios, spread
from core.trainer.exact.steps.course import WARM_UP

ROUNDS = 21
WORKS = {"digits": ("digits CNN", 8), "pictures": ("convolutions", 1), "5m": ("5 million parameters", 2)}
"""Title of each, and the epochs of a round: short ones in turn, as a machine's speed drifts."""
EVALUATED = {"learn-digits": ("digits CNN evaluated", 20), "learn-characters": ("transformer evaluated", 1)}
"""Likewise: title, and the evaluations of a round."""
WARM_UP_S = 10.0
"""Time in which audits spend their initial budget; ``WARM_UP`` steps have theirs whatever the cost."""
OF_WITHOUT = 0.97
STARTS = 8
LATER = 1.05
"""Limit of the first step's time with audits, relative to that without."""


def measure() -> list[Row]:
    _start_s(audits=True)  # reads files that later starts have in memory
    starts = []
    for number in range(STARTS):
        # Each goes first equally often.
        audited_first = number % 2 == 0
        seconds = {audits: _start_s(audits=audits) for audits in (audited_first, not audited_first)}
        starts.append((seconds[True], seconds[False]))
    found = start_rows(starts)
    for work, (words, epochs) in WORKS.items():
        found += rows(words, _speeds(work, partial(Pair.train, epochs=epochs)))
    for work, (words, times) in EVALUATED.items():
        found += rows(words, _speeds(work, partial(_evaluate, times=times)))
    return found


def _start_s(*, audits: bool) -> float:
    """Seconds from starting two processes until the first step of digits is reported."""
    began_s = time.time()
    with Pair("tandem", "digits", audits=audits) as pair:
        pair.order("train 1")
        first_at_s = pair.answered().first_at_s
    assert first_at_s is not None
    return first_at_s - began_s


def start_rows(starts: Sequence[tuple[float, float]]) -> list[Row]:
    """``starts``: seconds with audits, and without."""
    audited, plain = zip(*starts, strict=True)
    over = ratios(audited, plain)
    return [
        Row(what="first step, with audits", value=median(audited), unit="s", note=spread(audited, 1)),
        Row(what="first step, without audits", value=median(plain), unit="s", note=spread(plain, 1)),
        Row(what="first step: with ÷ without", value=median(over), limit=LATER, note=spread(over, 3)),
    ]


def _evaluate(pair: Pair, times: int) -> tuple[int, float]:
    """Steps, and the slower member's seconds."""
    steps, seconds = 0, 0.0
    for _ in range(times):
        pair.order("evaluate")
        answer = pair.answered()
        steps, seconds = steps + answer.steps, seconds + answer.seconds
    return steps, seconds


def _speeds(work: str, once: Callable[[Pair], tuple[int, float]]) -> dict[str, list[float]]:
    """Steps per second, round by round; ``once`` does a round."""
    speeds: dict[str, list[float]] = {"with": [], "without": []}
    with Pair("tandem", work) as auditing, Pair("tandem", work, audits=False) as plain:
        pairs = {"with": auditing, "without": plain}
        for pair in pairs.values():
            warm_s, warm_steps = 0.0, 0
            while warm_s < WARM_UP_S or warm_steps < WARM_UP:
                steps, seconds = once(pair)
                warm_s, warm_steps = warm_s + seconds, warm_steps + steps
        for number in range(ROUNDS):
            # Each goes first equally often.
            for kind in sorted(pairs, reverse=number % 2 == 1):
                steps, seconds = once(pairs[kind])
                speeds[kind].append(steps / seconds)
    return speeds


def rows(what: str, speeds: Mapping[str, Sequence[float]]) -> list[Row]:
    """``speeds`` in steps per second."""
    over = ratios(speeds["with"], speeds["without"])
    return [
        *(
            Row(what=f"{what}, {kind} audits", value=median(each), unit="steps/s", note=spread(each, 1))
            for kind, each in speeds.items()
        ),
        Row(
            what=f"{what}: with ÷ without",
            value=median(over),
            limit=OF_WITHOUT,
            at="least",
            note=spread(over, 3),
        ),
    ]
