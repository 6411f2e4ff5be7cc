"""The gain from fewer bits on the wire: two members behind a slow cable, each kind in turn."""

from __future__ import annotations

from bench.engine.pair import Pair
from bench.result import Row, median, ratios, spread
from bench.wire.link import Link
from core.vocabulary.options import Wire

ROUNDS = 7
MBIT = 240
WORK = "5m-few-rows"
WIRES: dict[Wire, str] = {"f32": "float32, exact", "bf16": "bfloat16 on the wire", "int8": "8 bits"}
OF_EXACT: dict[Wire, float] = {"bf16": 0.55, "int8": 0.35}


def measure() -> list[Row]:
    took_s: dict[Wire, list[float]] = {wire: [] for wire in WIRES}
    with (
        Link(MBIT) as link,
        Pair("tandem", WORK, link=link, wire="f32") as exact,
        Pair("tandem", WORK, link=link, wire="bf16") as narrowed,
        Pair("tandem", WORK, link=link, wire="int8") as coded,
    ):
        pairs: dict[Wire, Pair] = {"f32": exact, "bf16": narrowed, "int8": coded}
        for pair in pairs.values():
            pair.train(2)
        for _ in range(ROUNDS):
            for wire, pair in pairs.items():
                steps, seconds = pair.train(1)
                took_s[wire].append(seconds / steps)
    return rows(took_s)


def rows(took_s: dict[Wire, list[float]]) -> list[Row]:
    """``took_s``: seconds of a step, round by round."""
    found = [
        Row(
            what=f"a step at {MBIT} Mbit/s, {words}",
            value=1000 * median(took_s[wire]),
            unit="ms",
            note=spread([1000 * each for each in took_s[wire]], 0),
        )
        for wire, words in WIRES.items()
    ]
    for wire, limit in OF_EXACT.items():
        over = ratios(took_s[wire], took_s["f32"])
        found.append(Row(what=f"{wire} ÷ f32", value=median(over), limit=limit, note=spread(over)))
    return found
