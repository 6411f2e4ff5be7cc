"""A project transferred between two agents behind a cable, compared with one bare TCP connection through it.

The files are kept in memory if the system allows it: a disk's time to create a file is not the network's.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Self

import psutil

from bench.processes import MB
from bench.result import Row, median, spread
from bench.wire import raw_tcp
from core.vocabulary import events as ev
from core.vocabulary.commands import SetCodePolicy, StopRun
from core.vocabulary.plan import RunSpec
from tests.lab.agent import Agent, Told
from tests.lab.lab import Lab, pair
from tests.lab.network import NoLab

ROUNDS = 3
SECONDS_BETWEEN_READINGS = 1.0
LATE_S, MEMORY_MB = 0.3, 200.0
LIMIT_S = 120.0
IN_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Load:
    """``limits``: the least fraction of bare TCP's speed, by the cable's Mbit/s."""

    words: str
    files: int
    file_bytes: int
    limits: dict[int, float]

    def write(self, folder: Path, seed: int) -> None:
        """Writes new files, none of which was transferred before."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "train.py").write_text("print('never gets here')\n")
        random_of = random.Random(seed)
        for number in range(self.files):
            inside = folder / f"data-{seed}" / f"{number // 500}"
            inside.mkdir(parents=True, exist_ok=True)
            with (inside / f"{number}.bin").open("wb") as file:
                for at in range(0, self.file_bytes, MB):
                    file.write(random_of.randbytes(min(MB, self.file_bytes - at)))


LOADS = (
    Load("one file of 500 MB", 1, 500_000_000, {936: 0.90, 240: 0.95}),
    Load("7,000 files, 100 MB in all", 7_000, 14_286, {936: 0.85}),
)


@dataclass(frozen=True, slots=True)
class Transferred:
    """``late_s``: the largest delay of the other laptop's readings, which are due once a second."""

    bytes_s: float
    late_s: float
    memory_mb: float


def measure() -> list[Row]:
    kinds = [(load, mbit, limit) for load in LOADS for mbit, limit in load.limits.items()]
    return [row for kind in kinds for row in _measure(*kind)]


def _measure(load: Load, mbit: int, limit: float) -> list[Row]:
    parts, found = list[float](), list[Transferred]()
    with laptops(mbit) as (lab, (anna, ben)):
        for number in range(ROUNDS):
            bare = raw_tcp.bytes_s(
                lab.enter(0), lab.enter(1), lab.network.address(1), load.files * load.file_bytes
            )
            load.write(lab.folder / "project", number)
            found.append(transferred(anna, ben, lab.folder / "project" / "train.py"))
            parts.append(found[-1].bytes_s / bare)
    return rows(f"{load.words} at {mbit} Mbit/s", parts, found, limit)


@contextmanager
def laptops(mbit: int, hosts: int = 2) -> Iterator[tuple[Lab, list[Agent]]]:
    """Each paired with each; the first may run its projects everywhere."""
    try:
        with (
            tempfile.TemporaryDirectory(
                prefix="tandem-bench-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None
            ) as base,
            Lab(Path(base), hosts=hosts, rate=f"{mbit}mbit") as lab,
        ):
            agents = [lab.agent(host) for host in range(hosts)]
            for one, other in combinations(agents, 2):
                assert other.state.me is not None
                pair(one, other, other.state.me.addresses[0])
            for other in agents[1:]:
                other.do(SetCodePolicy(device=agents[0].device, policy="always"))
            yield lab, agents
    except NoLab as refusal:
        raise RuntimeError(str(refusal)) from refusal


def transferred(anna: Agent, ben: Agent, script: Path) -> Transferred:
    """Transfers one project from anna to ben. The run is stopped once it has arrived."""
    seen = (len(anna.told), len(ben.told))
    with Peak([anna.process, ben.process]) as memory:
        ((first, last),) = received(anna, [ben], script)
    assert isinstance(first.event, ev.MemberPhaseChanged)
    pairs = ((anna, ben, seen[0]), (ben, anna, seen[1]))
    return Transferred(
        bytes_s=first.event.total / (last.at_s - first.at_s),
        late_s=max(lateness_s(here.told[at:], there, first.at_s, last.at_s) for here, there, at in pairs),
        memory_mb=memory.most / MB,
    )


def received(anna: Agent, others: list[Agent], script: Path) -> list[tuple[Told, Told]]:
    """When each of the others began to receive a project, and when its last byte had come. The run is stopped
    then."""
    seen = [len(other.told) for other in others]
    run = anna.train(RunSpec(script=str(script), devices=tuple(other.device for other in others)))
    found = []
    for other, since in zip(others, seen, strict=True):
        first = other.hears(ev.MemberPhaseChanged, _receives(other), since=since, limit_s=LIMIT_S)
        last = other.hears(ev.MemberPhaseChanged, _receives(other, all=True), since=since, limit_s=LIMIT_S)
        found.append((first, last))
    for _ in range(3):
        anna.ask(StopRun())
    for agent in (anna, *others):
        agent.ends(run)
    return found


def _receives(agent: Agent, *, all: bool = False) -> Callable[[ev.MemberPhaseChanged], bool]:
    def receives(told: ev.MemberPhaseChanged) -> bool:
        is_due = not all or 0 < told.total == told.done
        return told.device == agent.device and told.phase == "receiving" and is_due

    return receives


def lateness_s(told: list[Told], other: Agent, begin_s: float, end_s: float) -> float:
    """The largest delay of the other laptop's readings, beyond a second after the one before."""
    at_s = [
        each.at_s
        for each in told
        if isinstance(each.event, ev.TelemetryReported) and each.event.device == other.device
    ]
    near = [(a, b) for a, b in pairwise(at_s) if b > begin_s and a < end_s]
    return max((b - a - SECONDS_BETWEEN_READINGS for a, b in near), default=0.0)


class Peak:
    """The peak memory (resident, bytes) of any of these processes, sampled every 50 ms."""

    def __init__(self, processes: list[psutil.Process]) -> None:
        self._processes, self.most = processes, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.most = max(self.most, *(process.memory_info().rss for process in self._processes))


def rows(what: str, parts: list[float], found: list[Transferred], limit: float) -> list[Row]:
    """``parts``: fractions of what bare TCP carried in the same round."""
    return [
        Row(
            what=f"{what}: ÷ bare TCP",
            value=median(parts),
            limit=limit,
            at="least",
            note=f"{spread(parts)}; {statistics.median(each.bytes_s for each in found) / MB:.1f} MB/s",
        ),
        Row(
            what=f"{what}: a reading of the other laptop comes late by",
            value=max(each.late_s for each in found),
            unit="s",
            limit=LATE_S,
        ),
        Row(
            what=f"{what}: memory of a node",
            value=max(each.memory_mb for each in found),
            unit="MB",
            limit=MEMORY_MB,
        ),
    ]
