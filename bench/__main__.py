"""``python -m bench``: measures what Tandem promises, prints a table, or JSON with ``--json``.

Exit code 1: a promise is broken, or something could not be measured.
"""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import msgspec
from rich.console import Console

from bench import machine, tables
from bench.result import Result, Row
from core.vocabulary.errors import TandemError

MEASUREMENTS = {
    "idle-agent": ("An idle agent", "bench.idle_agent"),
    "flood": ("A paired laptop that floods an agent", "bench.flood"),
    "flood-whole": ("A whole flood, held back by nothing", "bench.flood_whole"),
    "first-step": ("From pressing Train to the first step", "bench.first_step"),
    "first-paint": ("The first paint of the window", "bench.first_paint"),
    "frame-time": ("Drawing very many points", "bench.frame_time"),
    "window": ("The open window", "bench.window_life"),
    "engine": ("The engine against a hand-written loop", "bench.engine_speed"),
    "exchange": ("Sums between two members", "bench.exchange_speed"),
    "sealed": ("What the seal costs", "bench.sealed_speed"),
    "walls": ("What walls cost", "bench.walls"),
    "scan": ("A project of many files before its next run", "bench.project_scan"),
    "transfer": ("A project on its way", "bench.transfer_speed"),
    "chain": ("A project on its way to two laptops", "bench.transfer_chain"),
    "beside": ("A training beside a project on its way", "bench.transfer_beside"),
    "audits": ("What audits cost", "bench.audits"),
    "wire": ("Fewer bits on a slow wire", "bench.wire_speed"),
    "rare": ("Two laptops on a slow network, exactly and rarely", "bench.rare"),
    "rare-quality": ("How well models learn with rare meetings", "bench.rare_quality"),
    "sweep": ("Trials shared out", "bench.sweep"),
    "balance": ("Two members, one three times as fast", "bench.balance"),
    "leaving": ("A laptop leaves and is back", "bench.leaving"),
    "returning": ("A laptop whose network, lid or Tandem was away is back", "bench.returning"),
    "undoing": ("Being able to leave and come back", "bench.undoing"),
    "prediction": ("What is expected before training", "bench.prediction"),
    "checkpoint": ("Keeping checkpoints", "bench.checkpoint_cost"),
}
"""Title and module of each benchmark, by name; the module's ``measure`` returns its rows, or yields them,
which shows each as soon as it is measured."""

DOCUMENT = Path(__file__).parent.parent / "docs" / "benchmarks.md"
README = Path(__file__).parent.parent / "README.md"


def main(
    argv: Sequence[str] | None = None,
    measurements: Mapping[str, tuple[str, str]] = MEASUREMENTS,
    document: Path = DOCUMENT,
    readme: Path = README,
) -> int:
    options = parser(measurements).parse_args(argv)
    # All members run on one machine: they cannot share its GPU in a collective.
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    # Like Ctrl-C: terminating this process ends the processes that it has started, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(stderr=options.json, width=options.width)
    results = []
    for name in options.only or measurements:
        title, module = measurements[name]
        console.print(f"[dim]{title} …[/]", highlight=False)
        result = measured(name, title, module)
        results.append(result)
        tables.say(result, console)
        if options.write_docs:
            write_docs(result, document, readme)
    if options.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    return 0 if all(result.ok for result in results) else 1


def write_docs(result: Result, document: Path, readme: Path) -> None:
    """Writes the whole result into the page, and the comparisons, with earlier ones, into the README; the
    gains on slow networks also into the page about these."""
    text = tables.rewritten(document.read_text(encoding="utf-8"), [result])
    document.write_text(text, encoding="utf-8")
    short = tables.placed(readme.read_text(encoding="utf-8"), "ratios", tables.ratios(text))
    readme.write_text(short, encoding="utf-8")
    for page in (readme, document.with_name("slow-networks.md")):
        found = tables.placed(page.read_text(encoding="utf-8"), "gains", tables.gains(text))
        page.write_text(found, encoding="utf-8")


def parser(names: Iterable[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=list(names),
        metavar="NAME",
        help="may be repeated; names: " + ", ".join(names),
    )
    parser.add_argument("--json", action="store_true", help="the results as JSON on stdout")
    parser.add_argument(
        "--write-docs", action="store_true", help="put the tables into docs/benchmarks.md and the README"
    )
    parser.add_argument("--width", type=int, help="of the tables, in columns")
    return parser


def measured(name: str, title: str, module: str) -> Result:
    """Runs one measurement; a failure is a result, too."""
    before, began_s = machine.load(), time.monotonic()
    rows: list[Row] = []
    failure = ""
    try:
        found = import_module(module).measure()
        for row in found:
            rows.append(row)
            if isinstance(found, Iterator):
                what, value, *rest = tables.cells(row)
                print(f"  {what}: {value}", *filter(None, rest), file=sys.stderr, flush=True)
    except (TandemError, OSError, RuntimeError, TimeoutError) as error:
        failure = f"{type(error).__name__}: {error}"
    return Result(
        name=name,
        title=title,
        rows=tuple(rows),
        at=datetime.date.today().isoformat(),
        machine=machine.words(),
        seconds=time.monotonic() - began_s,
        load=(before, machine.load()),
        failure=failure,
    )


if __name__ == "__main__":
    sys.exit(main())
