"""The cost of checkpoints as often as a run keeps them: two pairs in turn, one of which keeps them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from bench.engine.pair import Pair
from bench.result import Row, median, ratios, spread
from core.project import checkpoint_store

ROUNDS = 3
WORK = "5m-adam"
STATE_MB = 60
OF_WITHOUT = 0.98


def measure() -> list[Row]:
    speeds: dict[str, list[float]] = {"with": [], "without": []}
    kept = []
    with TemporaryDirectory(prefix="tandem-bench-") as base:
        folder = Path(base)
        with Pair("tandem", WORK, keep=folder) as keeping, Pair("tandem", WORK) as plain:
            pairs = {"with": keeping, "without": plain}
            for pair in pairs.values():
                pair.train(1)
            for number in range(ROUNDS):
                before = _written(folder)
                # Each goes first equally often.
                for kind in sorted(pairs, reverse=number % 2 == 1):
                    steps, seconds = pairs[kind].train(1)
                    speeds[kind].append(steps / seconds)
                kept.append(_written(folder) - before)
    return rows(speeds, kept)


def _written(folder: Path) -> int:
    """How many the chief has written so far: they are numbered."""
    newest = checkpoint_store.newest_by_size(folder / "0")
    return int(Path(newest.folder).name) if newest is not None else 0


def rows(speeds: dict[str, list[float]], kept: list[int]) -> list[Row]:
    """``speeds`` in steps per second and ``kept`` checkpoints, round by round."""
    over = ratios(speeds["with"], speeds["without"])
    with_, without = speeds["with"], speeds["without"]
    return [
        Row(what="with checkpoints", value=median(with_), unit="steps/s", note=spread(with_)),
        Row(what="without", value=median(without), unit="steps/s", note=spread(without)),
        Row(
            what="checkpoints in a round, on each member",
            value=median(kept),
            limit=2,
            at="least",
            note=f"{STATE_MB} MB each",
        ),
        Row(what="with ÷ without", value=median(over), limit=OF_WITHOUT, at="least", note=spread(over, 3)),
    ]
