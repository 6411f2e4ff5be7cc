"""Keras' fit through Tandem's engine against a hand-written MultiWorkerMirroredStrategy loop.

Each has two processes, pinned to a core each; the kinds take turns round by round, so that other load on the
machine affects all of them.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.engine.pair import Pair
from bench.result import Row, median, ratios, spread

ROUNDS = 7
ROUND_S = 4.0
MOST_EPOCHS = 40
HAND_WRITTEN = {"guide": "loop as in TensorFlow's guide", "tuned": "loop with an epoch in one call"}
WORKS = {"digits": "digits CNN", "5m": "5 million parameters"}


def measure() -> list[Row]:
    return [row for work in WORKS for row in _measure(work)]


def _measure(work: str) -> list[Row]:
    speeds: dict[str, list[float]] = {kind: [] for kind in (*HAND_WRITTEN, "tandem")}
    with ExitStack() as stack:
        pairs = [stack.enter_context(Pair(kind, work)) for kind in speeds]
        for pair in pairs:
            pair.train(1)
        epochs = epochs_in_a_round([pair.train(1)[1] for pair in pairs])
        for _ in range(ROUNDS):
            for pair in pairs:
                steps, seconds = pair.train(epochs)
                speeds[pair.kind].append(steps / seconds)
    return rows(WORKS[work], speeds)


def epochs_in_a_round(epoch_s: list[float]) -> int:
    """Epochs for a round of about ``ROUND_S``; on a busy machine some kinds are many times slower."""
    return max(1, min(MOST_EPOCHS, round(ROUND_S / median(epoch_s))))


def rows(work: str, speeds: dict[str, list[float]]) -> list[Row]:
    """``speeds``: by kind, in steps per second, round by round."""
    tandem = speeds["tandem"]
    found = [Row(what=f"{work}: Tandem's fit", value=median(tandem), unit="steps/s", note=spread(tandem, 1))]
    for kind, words in HAND_WRITTEN.items():
        own, over = speeds[kind], ratios(tandem, speeds[kind])
        found += [
            Row(what=f"{work}: {words}", value=median(own), unit="steps/s", note=spread(own, 1)),
            Row(
                what=f"{work}: Tandem ÷ {words}",
                value=median(over),
                limit=1.0,
                at="least",
                note=spread(over),
            ),
        ]
    return found
