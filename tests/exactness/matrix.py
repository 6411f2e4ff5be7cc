"""Which scenario runs at which shares, and its result. Few processes run them all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from core.walls import levels
from tests.exactness import processes
from tests.exactness.names import AUDITED, CORE, EVERY, NOT_FOR_ONE_ROW, ONCE, SCENARIOS
from tests.exactness.plain_results import PlainResults


class Members(NamedTuple):
    """The members that run scenarios: one plain process if there are no shares."""

    shares: tuple[int, ...]
    walled: bool = False
    """Like the trainers of another laptop's script."""

    def __str__(self) -> str:
        return "/".join(map(str, self.shares)) + ("-walls" if self.walled else "")


Cell = tuple[str, Members]
Arrays = dict[str, np.ndarray]
V = TypeVar("V")

ALONE = Members(())
EVEN, UNEVEN, THREE, EXTREME = Members((32, 32)), Members((48, 16)), Members((40, 16, 8)), Members((63, 1))
WALLED = UNEVEN._replace(walled=True)
NAMES: dict[Members, Sequence[str]] = {
    UNEVEN: (*EVERY, *ONCE),
    THREE: (*EVERY, *AUDITED),
    EVEN: CORE,
    EXTREME: tuple(name for name in EVERY if name not in NOT_FOR_ONE_ROW),
    # Only Linux has walls.
    **({WALLED: (*EVERY, *ONCE)} if levels.found().walls == "default" else {}),
}
WALLED_ALWAYS = ("saving_and_loading", "model_checkpoint", "backup_and_restore", "tensorboard", "generator")
"""Also within walls in `make test`: they read, write, and start threads and processes."""


def left_out(cell: Cell) -> bool:
    """`make test` omits all shares but (48, 16), and runs only the core of the scenarios that run once."""
    name, members = cell
    if name in ONCE and not SCENARIOS[name].core:
        return True
    return members != UNEVEN and not (members.walled and name in WALLED_ALWAYS)


def named(cell: Cell) -> str:
    name, members = cell
    return f"{name}-{members}"


DEVICES: dict[Members, tuple[int, ...]] = {EVEN: (0, 1)}
"""These members compute on different devices: logical ones, in place of a graphics card."""
NO_PROGRESS_S = 240.0
"""A set of processes that finishes no scenario for this long is stuck; an idle machine needs 3 s for one."""
MOST_TOGETHER = 70
"""Scenarios per set of processes: TensorFlow never frees about 20 MiB per scenario."""
MOST_BROKEN = 3
"""Scenarios that may break their set of processes; after that many, no more are run."""
AT_ONCE = 2
"""Sets of processes: while the members of one wait for each other, the other uses the time."""

CELLS: list[Cell] = [(name, members) for members, names in NAMES.items() for name in names]


class Told(NamedTuple):
    """The messages to the chief's user during a scenario, and those reported to nobody."""

    words: list[str]
    differences: list[str]
    """Those that the result may differ: the run does not end green."""
    gathers: bool
    """Whether losses had the predictions of all rows."""
    sent_bits: list[int]
    """Bits of each number of gradients, as reported with steps; 0: all."""


@dataclass
class Ran:
    """Results of scenarios in one or several consecutive sets of processes."""

    folders: dict[str, Sequence[Path]] = field(default_factory=dict)
    """By scenario, each process's folder."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a scenario has no result."""
    last: Sequence[Path] = ()
    """The folders of the set that ran to its end."""
    broken_after: str = ""
    """Why a set broke although all its scenarios had results."""

    def arrays(self, name: str) -> list[Arrays]:
        """Each process's arrays of a scenario. If one is missing: AssertionError with all known details."""
        for folder in self.folders.get(name, ()):
            error = folder / f"{name}.error"
            assert not error.exists(), f"{name} at {folder.name}: {error.read_text()}"
        assert name not in self.failures, self.failures[name]
        return [dict(np.load(folder / f"{name}.npz")) for folder in self.folders[name]]

    def told(self, name: str) -> Told:
        assert name not in self.failures, self.failures[name]
        return Told(**json.loads((self.folders[name][0] / f"{name}.told.json").read_text()))


def go_through(
    members: Members, names: Sequence[str], out: Path, run: Callable[..., Sequence[Path]] = processes.run
) -> Ran:
    """Runs scenarios in sets of processes. One that breaks its set is named, and a new set runs the rest."""
    ran, left = Ran(), list(names)
    for number in count():
        together, folder, failure = left[:MOST_TOGETHER], out / f"set{number}", ""
        folders = processes.folders_in(folder, members.shares)
        try:
            devices = DEVICES.get(members, ())
            run(
                members.shares,
                together,
                folder,
                NO_PROGRESS_S,
                devices=devices,
                walled=members.walled,
                calibrated=CORE if members == UNEVEN else together,
            )
            ran.last = folders
        except AssertionError as error:
            failure = str(error)
        finished = [name for name in together if all(processes.finished(each, name) for each in folders)]
        ran.folders |= dict.fromkeys(finished, folders)
        left = [name for name in left if name not in finished]
        if not failure or len(finished) == len(together):
            ran.broken_after = ran.broken_after or failure
            if not left:
                break
            continue
        broken = left.pop(0)
        ran.folders[broken] = folders
        ran.failures[broken] = f"{broken} broke the processes at {members}: {failure}"
        if len(ran.failures) == MOST_BROKEN:
            why = f"not run: {', '.join(ran.failures)} broke the processes at {members} before"
            ran.failures |= dict.fromkeys(left, why)
            break
    return ran


class Matrix:
    """Runs the scenarios of cells, each once; in one plain process only those without earlier results."""

    def __init__(self, cells: Collection[Cell], out: Path, plain_results: PlainResults) -> None:
        self._out = out
        self._plain_results = plain_results
        self._places = threading.Semaphore(AT_ONCE)
        self._runs: dict[Members, Future[Ran]] = {}
        self._plain_runs: dict[str, Future[Ran]] = {}
        # Several tests may ask for a cell, which runs once.
        self.names = {
            members: list(dict.fromkeys(name for name, m in cells if m == members)) for _, members in cells
        }

    def begin(self) -> None:
        """Starts the cells' processes as soon as there is a slot."""
        self._begin_plain(list(dict.fromkeys(name for names in self.names.values() for name in names)))
        for members in self.names:
            self.ran(members)

    def ran(self, members: Members) -> Future[Ran]:
        if members not in self._runs:
            out = self._out / str(members).replace("/", "-")
            names = self.names.get(members, [])
            self._runs[members] = self._beside(lambda: go_through(members, names, out))
        return self._runs[members]

    def plain(self, name: str) -> Arrays:
        """A scenario's result in one plain process."""
        known = self._plain_results.get(name)
        if known is None:
            self._begin_plain([name])
            ran = self._plain_runs[name].result()
            (known,) = ran.arrays(name)
            self._plain_results.put(name, ran.folders[name][0] / f"{name}.npz")
        return known

    def _begin_plain(self, names: Sequence[str]) -> None:
        missing = [n for n in names if n not in self._plain_runs and self._plain_results.get(n) is None]
        if missing:
            out = self._out / f"plain{len(self._plain_runs)}"
            run = self._beside(lambda: go_through(ALONE, missing, out))
            self._plain_runs |= dict.fromkeys(missing, run)

    def _beside(self, work: Callable[[], V]) -> Future[V]:
        """In a thread that ends with this process; so do the processes that it waits for."""
        future: Future[V] = Future()

        def run() -> None:
            with self._places:
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)

        threading.Thread(target=run, name="matrix", daemon=True).start()
        return future


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """The largest absolute difference; infinite for different shapes or one NaN."""
    if one.shape != other.shape:
        return float("inf")
    if one.size == 0 or np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        return 0.0
    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return float("inf") if np.isnan(apart).any() else float(apart.max())
