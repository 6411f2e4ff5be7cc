"""Two processes that train together, or one alone; each on its core, round by round on request."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec
import numpy as np
from msgspec.structs import replace

from bench.engine.place import Answer, Place
from bench.wire.link import Link
from core.exchange.keys import make
from core.supervisor.ports import hold_ports
from core.vocabulary.ids import DeviceId
from core.vocabulary.options import Sync, Wire
from core.vocabulary.plan import Role, Task
from core.vocabulary.trainer_messages import Enclosure, ExchangeKeys, Seal
from core.walls import enclosure

LIMIT_S = 300.0
LAST_WORDS = 1500


class Pair:
    """``train`` trains and measures. Ends its processes on leaving.

    ``link``: joins the two, else this machine's loopback. ``wire``: how Tandem's gradients travel. ``sync``:
    when its members meet. ``shares`` in rank order; a single share means one process alone. ``balance``: they
    follow the members' speeds. ``keep``: the folder of checkpoints, with one in it for each member. ``cores``
    by rank, else the machine's. Two of kind ``tandem`` meet like those of a managed run. ``module``: what
    each member runs; ``keys``: where one that only exchanges finds them, by rank. ``walled``: each is within
    walls. ``audits``: whether they audit steps. ``undoes``: whether they can undo one, for a member that
    leaves. ``writes``: whether they write the checkpoints that are due.
    """

    def __init__(
        self,
        kind: str,
        work: str,
        *,
        link: Link | None = None,
        wire: Wire = "f32",
        sync: Sync = "exact",
        keep: Path | None = None,
        shares: tuple[int, ...] = (1, 1),
        balance: bool = False,
        cores: Sequence[int] = (),
        module: str = "bench.engine.member",
        keys: Path | None = None,
        walled: bool = False,
        audits: bool = True,
        undoes: bool = True,
        writes: bool = True,
    ) -> None:
        self.kind = kind
        self._ranks = range(len(shares))
        self._stack = ExitStack()
        workers = [link.place(rank) for rank in self._ranks] if link else _on_loopback(len(shares))
        cores = cores or sorted(os.sched_getaffinity(0))
        keyed = kind in ("tandem", "sealed") and len(shares) > 1
        found = _keys(len(shares)) if keyed else {}
        seals = _seals(found, workers) if kind == "sealed" else {}
        exchange = found if kind == "tandem" else {}
        if seals:
            workers = list(seals[0].inside)
        self._said: list[queue.Queue[str]] = []
        self._members: list[subprocess.Popen[str]] = []
        self._logs: list[IO[bytes]] = []
        for rank in self._ranks:
            core = cores[rank % len(cores)]
            place = Place(
                kind=kind,
                work=work,
                rank=rank,
                core=core,
                shares=shares,
                balance=balance,
                wire=wire,
                sync=sync,
                keep=str(keep / str(rank)) if keep else "",
                exchange=exchange.get(rank),
                keys=str(keys or ""),
                seal=seals.get(rank),
                walls=self._walls(workers, rank) if walled else None,
                audits=audits,
                undoes=undoes,
                writes=writes,
            )
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
            if len(shares) > 1:
                task = {"type": "worker", "index": rank}
                environment["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
            if place.walls is not None:
                environment = enclosure.environment(place.walls, environment)
            log = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack is one)
            member = subprocess.Popen(
                [
                    *(link.enter(rank) if link else ()),
                    *(sys.executable, "-m", module, msgspec.json.encode(place).decode()),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
            said: queue.Queue[str] = queue.Queue()
            threading.Thread(target=_listen, args=(member, said), daemon=True).start()
            self._logs.append(log)
            self._members.append(member)
            self._said.append(said)

    def _walls(self, workers: Sequence[str], rank: int) -> Enclosure:
        home = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="tandem-bench-"))
        ports = tuple(int(place.rpartition(":")[2]) for place in workers)
        reads = (str(Path(__file__).parent.parent),)
        return Enclosure(
            folders=(home,), home=home, user=str(Path.home()), reads=reads, port=ports[rank], calls=ports
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members:
            member.kill()
            member.wait()
            assert member.stdin is not None
            member.stdin.close()
        self._stack.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids by rank."""
        return tuple(member.pid for member in self._members)

    def train(self, epochs: int) -> tuple[int, float]:
        """Steps, and the slower member's seconds: the pair is done only then. The first call traces."""
        self.order(f"train {epochs}")
        answer = self.answered()
        return answer.steps, answer.seconds

    def weights(self) -> list[list[Any]]:
        """Each member's weights, by rank: arrays in Keras' order."""
        found = []
        with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
            for rank in self._ranks:
                file = Path(folder) / f"{rank}.npz"
                self._tell(rank, f"save {file}")
                self._one(rank)
                with np.load(file) as saved:
                    found.append([saved[name] for name in saved.files])
        return found

    def order(self, words: str) -> None:
        """Sends an order to every member, without waiting."""
        for rank in self._ranks:
            self._tell(rank, words)

    def answered(self) -> Answer:
        """Waits for every member's answer to an order: the chief's, with the longest seconds."""
        told = [self._one(rank) for rank in self._ranks]
        return replace(told[0], seconds=max(answer.seconds for answer in told))

    def _tell(self, rank: int, words: str) -> None:
        stdin = self._members[rank].stdin
        assert stdin is not None
        stdin.write(f"{words}\n")
        stdin.flush()

    def _one(self, rank: int) -> Answer:
        try:
            line = self._said[rank].get(timeout=LIMIT_S)
        except queue.Empty:
            raise TimeoutError(f"{self.kind} member {rank} took longer than {LIMIT_S:g} s") from None
        if not line:
            raise RuntimeError(f"{self.kind} member {rank} ended: {self._last_words(rank)}")
        return msgspec.json.decode(line, type=Answer)

    def _last_words(self, rank: int) -> str:
        log = self._logs[rank]
        log.seek(0)
        return log.read().decode("utf-8", "replace")[-LAST_WORDS:]


def _on_loopback(members: int) -> list[str]:
    tasks = [Task(device=DeviceId(""), role=Role.WORKER, index=rank) for rank in range(members)]
    held = hold_ports(tasks)
    places = [f"127.0.0.1:{held.ports[task.name]}" for task in tasks]
    held.release()
    return places


def _keys(members: int) -> dict[int, ExchangeKeys]:
    """Keys by rank."""
    pairs = [make() for _ in range(members)]
    certificates = tuple(pair.cert_der for pair in pairs)
    return {
        rank: ExchangeKeys(generation=0, certificates=certificates, private_key=pair.private_key)
        for rank, pair in enumerate(pairs)
    }


def _seals(keys: dict[int, ExchangeKeys], workers: Sequence[str]) -> dict[int, Seal]:
    """Seals by rank. ``workers``: where the relays are to listen."""
    inside = tuple(f"127.77.0.{rank + 1}:{place.rpartition(':')[2]}" for rank, place in enumerate(workers))
    return {
        rank: Seal(keys=own, outside=tuple(workers), inside=inside, downloads=False)
        for rank, own in keys.items()
    }


def _listen(member: subprocess.Popen[str], said: queue.Queue[str]) -> None:
    assert member.stdout is not None
    with member.stdout as lines:
        for line in lines:
            said.put(line)
    said.put("")
