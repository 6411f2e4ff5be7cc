"""The cost of drawing by number of points: four curves of a million against four of a thousand."""

from __future__ import annotations

import json
import subprocess
import sys

from bench.result import Row, median, ratios, spread
from bench.window import screen

FRAMES = 100
FEW, MANY = 1_000, 1_000_000
LIMIT = 1.5
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
    few, many = json.loads(ended.stdout)
    over = ratios(many, few)
    return [
        Row(what=f"frame, 4 curves × {FEW:,} points", value=1000 * median(few), unit="ms", note=where),
        Row(what=f"frame, 4 curves × {MANY:,} points", value=1000 * median(many), unit="ms"),
        Row(what="many ÷ few", value=median(over), limit=LIMIT, note=spread(over)),
    ]
