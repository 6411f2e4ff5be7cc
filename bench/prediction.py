"""The members' expectation before the first step, compared with the result: on links of three rates."""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.pair import Pair
from bench.result import Row, median, spread
from bench.wire.link import FREE_MBIT, Link

ROUNDS = 3
LINKS = {FREE_MBIT: "free", 936: "936 Mbit", 240: "240 Mbit"}
WORKS = {"digits": ("digits CNN", 120), "5m": ("5 million parameters", 6)}
"""Title of each, and its epochs: enough steps to be measured before, and for small ones twice the time in
which every step is audited."""
WITHIN = 0.2


def measure() -> list[Row]:
    found = []
    for mbit, link_words in LINKS.items():
        with Link(mbit) as link:
            for work, (words, epochs) in WORKS.items():
                told = [_once(link, work, epochs) for _ in range(ROUNDS)]
                found += rows(f"{link_words}, {words}", told)
    return found


def _once(link: Link, work: str, epochs: int) -> tuple[float, float]:
    """Seconds of a step: expected, measured. Uses a new pair each time, as a model is calibrated once."""
    with Pair("tandem", work, link=link, balance=True) as pair:
        pair.order(f"train {epochs}")
        told = pair.answered()
    if told.expectation is None or told.step_s is None:
        raise RuntimeError(f"{work}: {'nothing was expected' if told.step_s else 'no step was timed'}")
    return told.expectation.step_s, told.step_s


def rows(what: str, told: Sequence[tuple[float, float]]) -> list[Row]:
    """``told``: seconds of a step, expected and measured, round by round."""
    after = [1000 * came_out for _, came_out in told]
    off = [abs(expected / came_out - 1) for expected, came_out in told]
    return [
        Row(what=f"{what}: a step", value=median(after), unit="ms", note=spread(after, 1)),
        Row(what=f"{what}: expected, off by", value=median(off), limit=WITHIN, note=spread(off)),
    ]
