"""What rare meetings do to the result: the loss of rows held out, rare ÷ exact, after as many epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bench.engine.pair import Pair
from bench.result import Row, median
from core.vocabulary.options import Sync

SEEDS = (1, 2, 3)
EVERY = (16, 64)
"""Steps between two meetings; an epoch at most."""
MEDIAN, WORST = 1.03, 1.15


@dataclass(frozen=True, slots=True)
class Script:
    title: str
    epochs: int


SCRIPTS: Mapping[str, Script] = {
    "learn-digits": Script("digits CNN", 8),
    "learn-characters": Script("character transformer", 8),
    "learn-wine": Script("table of wines, dense layers", 30),
    "learn-resnet": Script("residual network for digits", 6),
    # So large that meetings overlap steps, and with more than 64 steps in an epoch.
    "learn-gpt": Script("GPT, 1.3 million", 3),
}
"""By the name of their work."""


def measure() -> list[Row]:
    over: dict[str, list[float]] = {}
    found = []
    for work, script in SCRIPTS.items():
        losses = {sync: [_loss(work, seed, sync) for seed in SEEDS] for sync in _kinds()}
        for every in EVERY:
            rare = [a / b for a, b in zip(losses[f"rare={every}"], losses["exact"], strict=True)]
            over.setdefault(f"every {every} steps", []).extend(rare)
            found.append(row(f"{script.title}: rare ÷ exact, every {every} steps", rare, losses["exact"]))
    return found + summary(over)


def _kinds() -> tuple[Sync, ...]:
    return ("exact", *(f"rare={every}" for every in EVERY))


def _loss(work: str, seed: int, sync: Sync) -> float:
    with Pair("tandem", f"{work}:{seed}", sync=sync, shares=(20, 12)) as pair:
        pair.train(SCRIPTS[work].epochs)
        pair.order("evaluate")
        loss = pair.answered().loss
    return math.nan if loss is None else loss


def row(what: str, rare: list[float], exact: list[float]) -> Row:
    """One script's; ``exact``: the exact losses."""
    each = ", ".join(f"{ratio:.3f}" for ratio in rare)
    return Row(what=what, value=median(rare), note=f"{each}; exact loss {median(exact):.3g}")


def summary(over: Mapping[str, list[float]]) -> list[Row]:
    """Over all scripts and seeds; ``over`` by how often they meet."""
    rows = []
    for every, ratios in over.items():
        rows += [
            Row(what=f"all, {every}: median", value=median(ratios), limit=MEDIAN, note=f"{len(ratios)} runs"),
            Row(what=f"all, {every}: the worst", value=max(ratios, default=math.nan), limit=WORST),
        ]
    return rows
