"""The cost of audits after the first seconds: two pairs in turn, one of which audits no step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.engine.pair import Pair
from bench.result import Row, median, ratios, spread

ROUNDS = 5
WORKS = {"digits": ("digits CNN", 20), "pictures": ("convolutions", 2), "5m": ("5 million parameters", 6)}
"""Title of each, and the epochs of a round, which take some seconds."""
WARM_UP_S = 10.0
"""Time in which audits spend their initial budget."""
OF_WITHOUT = 0.97


def measure() -> list[Row]:
    found = []
    for work, (words, epochs) in WORKS.items():
        found += rows(words, _speeds(work, epochs))
    return found


def _speeds(work: str, epochs: int) -> dict[str, list[float]]:
    """Steps per second, round by round."""
    speeds: dict[str, list[float]] = {"with": [], "without": []}
    with Pair("tandem", work) as auditing, Pair("tandem", work, audits=False) as plain:
        pairs = {"with": auditing, "without": plain}
        for pair in pairs.values():
            warm_s = 0.0
            while warm_s < WARM_UP_S:
                warm_s += pair.train(epochs)[1]
        for number in range(ROUNDS):
            # Each goes first equally often.
            for kind in sorted(pairs, reverse=number % 2 == 1):
                steps, seconds = pairs[kind].train(epochs)
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
