"""What a second laptop gains on a slow network, exactly and with rare meetings: pair ÷ alone, in turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bench.engine.pair import Pair
from bench.result import Row, median, ratios, spread
from bench.wire.link import Link

ROUNDS = 3
MBIT = 240
Kind = Literal["alone", "exact", "rare"]
EPOCHS: Mapping[str, Mapping[Kind, int]] = {
    "digits": {"alone": 30, "exact": 15, "rare": 30},
    "pictures": {"alone": 1, "exact": 1, "rare": 1},
    "5m-long-epochs": {"alone": 3, "exact": 1, "rare": 5},
}
"""Epochs of a round, by work: of the slow ones fewer. A fit's end, where optimizers meet, counts in full."""
WORDS = {
    "digits": "digits, 36 thousand parameters",
    "pictures": "convolutions, 20 thousand parameters",
    "5m-long-epochs": "dense layers, 5 million parameters",
}


def measure() -> list[Row]:
    found: list[Row] = []
    for work, epochs in EPOCHS.items():
        took_s: dict[Kind, list[float]] = {kind: [] for kind in epochs}
        with (
            Link(MBIT) as link,
            Pair("tandem", work, shares=(1,)) as alone,
            Pair("tandem", work, link=link) as exact,
            Pair("tandem", work, link=link, sync="rare") as rare,
        ):
            pairs: dict[Kind, Pair] = {"alone": alone, "exact": exact, "rare": rare}
            for kind, pair in pairs.items():
                pair.train(epochs[kind])
            for _ in range(ROUNDS):
                for kind, pair in pairs.items():
                    steps, seconds = pair.train(epochs[kind])
                    took_s[kind].append(seconds / steps)
        found += rows(work, took_s)
    return found


def rows(work: str, took_s: Mapping[Kind, list[float]]) -> list[Row]:
    """``took_s``: seconds of a step, round by round."""
    alone = took_s["alone"]
    found = [Row(what=f"{WORDS[work]}: a step alone", value=1000 * median(alone), unit="ms")]
    kinds: tuple[Kind, ...] = ("exact", "rare")
    for kind in kinds:
        gains = ratios(alone, took_s[kind])
        found.append(Row(what=f"{WORDS[work]}: {kind}, times alone", value=median(gains), note=spread(gains)))
    return found
