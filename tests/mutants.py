"""``make mutants``: plants faults in ``core/`` and counts those that the fast tests beside them find.

    python -m tests.mutants [--seed N] [--count N] [--room core.pairing ...]

Draws faults at random among all that the operators below can plant: a comparison turned, ``and`` for ``or``,
a sign, a number off by one, ``not`` dropped, another branch taken, nothing returned, a call left out. A
process for each imports the module with the fault from memory, so that no file is ever changed, and runs the
fast tests that mirror the module, then those of its whole room. The trainer is left out: its tests need
TensorFlow. POSIX.

The operators are mutmut's. Its own runner draws no sample, does not know which test mirrors which module and
plants nothing in properties; Cosmic Ray's writes into the working tree and knows one test command for all.
Neither has an operator for what is returned or for a call that is left out: these two are here.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import islice, zip_longest
from pathlib import Path
from types import CodeType
from typing import Any

import libcst as cst
import pytest
from mutmut.mutation import mutators
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for path in ROOT.glob("core/*/**/*.py") if ROOT / "core/trainer" not in path.parents)
IMPORTED_ONCE = (
    *("cryptography.x509", "hypothesis.strategies", "msgspec", "psutil", "zeroconf"),
    *("pytest_asyncio.plugin", "pytest_timeout", "pytestqt.plugin", "PySide6.QtTest", "PySide6.QtWidgets"),
)
"""Slow to import and the same for every fault: each process inherits them. None imports the project."""
FAST = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-m",
    "not real and not cluster and not lab",
    "-o",
    "timeout=20",
)
NO_REWRITE = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # modules already imported
BASELINE_LIMIT_S, LIMIT_S, LIMIT_FACTOR = 120.0, 10.0, 4.0
"""The time limits of a room's tests: without a fault; with one, a minimum, and a factor of the time
without. A fault that makes them hang counts as found."""
MEMORY_BYTES = 8 << 30
NOT_IMPORTABLE = 99  # no exit status of pytest


def code(node: cst.CSTNode) -> str:
    return node.code if isinstance(node, cst.Module) else cst.Module([]).code_for_node(node)


def returns_nothing(node: cst.Return) -> Iterator[cst.CSTNode]:
    if node.value and code(node.value) != "None":
        yield cst.Return(cst.Name("None"))


def leaves_call_out(node: cst.Expr) -> Iterator[cst.CSTNode]:
    """Except one that only logs: nobody relies on it."""
    call = node.value.expression if isinstance(node.value, cst.Await) else node.value
    if isinstance(call, cst.Call) and not code(call).lstrip("_").startswith("log."):
        yield cst.Pass()


OPERATORS: list[tuple[Any, Callable[[Any], Iterable[cst.CSTNode]]]] = [
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.BaseNumber, mutators.operator_number),
    (cst.Name, mutators.operator_name),
    (cst.IfExp, mutators.operator_if_exp),
    (cst.Match, mutators.operator_match),
    (cst.Return, returns_nothing),
    (cst.Expr, leaves_call_out),
]
"""mutmut has more, which say little here: another wording is no fault; ``None`` in place of an argument or of
what a name is set to fails on the next line, whatever a test looks at."""


@dataclass(frozen=True)
class Fault:
    path: Path
    line: int
    before: str
    after: str
    source: str
    """The whole module, with the fault."""

    @property
    def module(self) -> str:
        return dotted(self.path)

    @property
    def room(self) -> str:
        return ".".join(self.module.split(".")[:2])


class _Places(cst.CSTVisitor):
    """Collects possible faults: (a node, its replacement)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.CSTNode, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation | cst.Decorator):
            return False
        if isinstance(node, cst.ClassDef):
            node.body.visit(self)  # not its bases and options: they say what it is, not what it does
            return False
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                self.found += ((node, other) for other in operator(node))
        return True


def places(path: Path) -> tuple[cst.Module, list[tuple[cst.CSTNode, cst.CSTNode]]]:
    module, visitor = cst.parse_module(path.read_text(encoding="utf-8")), _Places()
    module.visit(visitor)
    return module, visitor.found


def planted(path: Path, number: int) -> Fault:
    module, found = places(path)
    changed = module.deep_replace(*found[number])
    assert isinstance(changed, cst.Module)
    lines = zip_longest(module.code.splitlines(), changed.code.splitlines(), fillvalue="")
    line, before, after = next((n, old, new) for n, (old, new) in enumerate(lines, 1) if old != new)
    return Fault(path, line, before.strip(), after.strip(), changed.code)


def drawn(rooms: Sequence[str], seed: int) -> list[tuple[Path, int]]:
    """Every fault of ``rooms`` as a module and a number, in an order determined by sources and seed alone."""
    wanted = [path for path in SOURCES if not rooms or f"{dotted(path)}.".startswith(tuple(rooms))]
    faults = [(path, number) for path in wanted for number in range(len(places(path)[1]))]
    random.Random(seed).shuffle(faults)
    return faults


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def mirror(path: Path) -> tuple[str, ...]:
    file = ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.name}")
    return (str(file),) if file.exists() else ()


def of_room(path: Path) -> tuple[str, ...]:
    room = ROOT / "tests" / "core" / path.relative_to(ROOT).parts[1]
    return tuple(str(each) for each in (room, room.with_name(f"test_{room.name}.py")) if each.exists())


class _WithFault(SourceFileLoader):
    """Finds and loads the one module with the fault, before its file is found."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.module, str(fault.path))
        self._source = fault.source

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


def run(tests: Sequence[str], fault: Fault | None, limit_s: float) -> int | None:
    """pytest's exit status, from a separate process; NOT_IMPORTABLE; or None for one that was killed."""
    if not (pid := os.fork()):
        _run_here(tests, fault)
    until_s = time.monotonic() + limit_s
    while time.monotonic() < until_s:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _said() -> Path:
    """Output of the last test run."""
    return Path(tempfile.gettempdir(), "said.txt")


def _run_here(tests: Sequence[str], fault: Fault | None) -> None:
    status = NOT_IMPORTABLE
    try:
        os.setsid()  # a fault that kills its group kills this one
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        said = os.open(_said(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(said, stream)
        if fault:
            sys.meta_path.insert(0, _WithFault(fault))
            importlib.import_module(fault.module)
        status = int(pytest.main([*FAST, *NO_REWRITE, *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def limits(rooms: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], float]:
    """How long each room's tests may take with a fault. Exits if they fail without one."""
    limit_s = {}
    for tests in rooms:
        began_s = time.monotonic()
        if run(tests, None, BASELINE_LIMIT_S) != pytest.ExitCode.OK:
            sys.exit(f"{_said().read_text()}\nThese fail without any fault: {' '.join(tests)}")
        limit_s[tests] = LIMIT_S + LIMIT_FACTOR * (time.monotonic() - began_s)
    return limit_s


def found_by(fault: Fault, limit_s: float) -> str | None:
    """*mirror* or *room*, or nothing. None for a non-fault, whose module nothing can import."""
    for name, tests in (("mirror", mirror(fault.path)), ("room", of_room(fault.path))):
        if tests and (status := run(tests, fault, limit_s)) != pytest.ExitCode.OK:
            return None if status == NOT_IMPORTABLE else name
    return ""


def tried(faults: Sequence[tuple[Path, int]]) -> Iterator[tuple[Fault, str]]:
    limit_s = limits(sorted({of_room(path) for path, _ in faults}))
    for path, number in faults:
        fault = planted(path, number)
        if (finder := found_by(fault, limit_s[of_room(path)])) is not None:
            yield fault, finder


def report(results: Sequence[tuple[Fault, str]]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 240)
    rooms = Table("room", "planted", "found", "", "by the mirror", box=None)
    for room in (*sorted({fault.room for fault, _ in results}), "all"):
        finders = [finder for fault, finder in results if room in (fault.room, "all")]
        found = sum(map(bool, finders))
        rooms.add_row(
            room, *map(str, (len(finders), found, f"{found / len(finders):.0%}", finders.count("mirror")))
        )
    console.print(rooms)
    if survivors := [fault for fault, finder in results if not finder]:
        table = Table("not found", "", "with the fault", box=None)
        for fault in sorted(survivors, key=lambda fault: (fault.path, fault.line)):
            where = f"{fault.path.relative_to(ROOT)}:{fault.line}"
            table.add_row(where, Text(fault.before), Text(fault.after))
        console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Plants faults in core/.")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other faults")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--room", nargs="+", default=[], help="core.pairing core.run.resume ...")
    wish = parser.parse_args()
    for name in IMPORTED_ONCE:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="m-") as folder:
        os.environ |= {"HOME": folder, "TMPDIR": folder, "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        tempfile.tempdir = None
        some = islice(tried(drawn([f"{room}." for room in wish.room], wish.seed)), wish.count)
        results = list(track(some, "Planting faults", total=wish.count, console=Console(stderr=True)))
    report(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
