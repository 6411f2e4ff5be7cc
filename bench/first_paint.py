"""How soon the window is painted, compared with a bare QMainWindow. They take turns."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from bench.result import Row, median, ratios, spread
from bench.window import screen

ROUNDS = 11
LIMIT = 1.5
ENDS_S = 120.0


def measure() -> list[Row]:
    bare: list[float] = []
    bare_cpu: list[float] = []
    own: list[float] = []
    own_cpu: list[float] = []
    heavy: set[str] = set()
    with screen.screen() as environment, tempfile.TemporaryDirectory(prefix="tandem-bench-") as home:
        where = screen.words(environment)
        # The first run of each also reads the files from disk.
        for count in range(ROUNDS + 1):
            bare_s, bare_cpu_s, _ = painted("bench.window.paint_bare", [], environment)
            own_s, own_cpu_s, loaded = painted("bench.window.paint_tandem", [home], environment)
            heavy.update(loaded)
            if count:
                bare.append(bare_s)
                bare_cpu.append(bare_cpu_s)
                own.append(own_s)
                own_cpu.append(own_cpu_s)
    over, over_cpu = ratios(own, bare), ratios(own_cpu, bare_cpu)
    return [
        Row(what="bare QMainWindow, process start to first paint", value=median(bare), unit="s", note=where),
        Row(what="Tandem's window", value=median(own), unit="s", note=spread(own)),
        Row(what="Tandem ÷ bare", value=median(over), limit=LIMIT, note=spread(over)),
        Row(what="Tandem ÷ bare, CPU time", value=median(over_cpu), note=spread(over_cpu)),
        Row(
            what="of TensorFlow, Keras and pyqtgraph, loaded before it",
            value=float(len(heavy)),
            limit=0.0,
            note=", ".join(sorted(heavy)),
        ),
    ]


def painted(
    module: str, arguments: Sequence[str], environment: dict[str, str]
) -> tuple[float, float, list[str]]:
    """Wall-clock and CPU seconds until ``module`` reports its first paint, and what else it reports."""
    began_s = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments], env=environment, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        words = child.stdout.readline().split()
        took_s = time.monotonic() - began_s
        child.wait(ENDS_S)
    if not words:
        raise RuntimeError(f"{module} ended with {child.returncode} before its first paint")
    return took_s, float(words[0]), words[1:]
