"""The cost of drawing by number of points: four curves of a million against four of a thousand; and a page of
many metrics under somebody's hand."""

from __future__ import annotations

import json
import subprocess
import sys

from bench.result import Row, median, ratios, spread
from bench.window import screen
from bench.window.frames import METRICS, STEPS

FRAMES = 100
FEW, MANY = 1_000, 1_000_000
LIMIT = 1.5
SMOOTH_MS = 1000 / 30
"""A frame at 30 frames a second."""
ENDS_S = 300.0


def measure() -> list[Row]:
    with screen.screen() as environment:
        where = screen.words(environment)
        ended = subprocess.run(
            [sys.executable, "-m", "bench.window.frames", str(FRAMES), str(FEW), str(MANY)],
            env=environment,
            stdout=subprocess.PIPE,
            timeout=ENDS_S,
            check=False,
        )
    if ended.returncode:
        raise RuntimeError(f"the plots' process ended with {ended.returncode}")
    told = json.loads(ended.stdout)
    few, many, page = told["frames"]
    over = ratios(many, few)
    return [
        Row(what=f"frame, 4 curves × {FEW:,} points", value=1000 * median(few), unit="ms", note=where),
        Row(what=f"frame, 4 curves × {MANY:,} points", value=1000 * median(many), unit="ms"),
        Row(what="many ÷ few", value=median(over), limit=LIMIT, note=spread(over)),
        Row(
            what=f"frame, a page of {METRICS} metrics × {STEPS:,} steps, dragged",
            value=1000 * median(page),
            unit="ms",
            limit=SMOOTH_MS,
            note=f"{told['in_view']} plots in view, {spread([1000 * each for each in page], 1)}",
        ),
    ]
