"""A real trainer for tests: a TrainerProcess with all its messages recorded, and waits for conditions."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core.exchange.keys import make
from core.supervisor.driver import TrainerProcess
from core.supervisor.loading_times import LoadingTimes
from core.supervisor.spawn import Child
from core.supervisor.state import Force, Limits
from core.vocabulary import trainer_messages
from core.vocabulary.phases import Exit
from core.vocabulary.progress import EpochEnd, LogLines, Progress

SCRIPTS = Path(__file__).parent / "scripts"
LONG_S = 120.0
"""A limit for waits that take seconds on an idle machine."""
GENEROUS = Limits(boot_s=240.0, grace_s=120.0, terminate_s=60.0, leave_s=60.0)


class Attended:
    """Start it inside a running loop; ``await exit()`` at the end."""

    def __init__(
        self,
        log: Path,
        *,
        limits: Limits = GENEROUS,
        child: Child | None = None,
        loading: LoadingTimes | None = None,
        **train: Any,
    ) -> None:
        self.reports: list[trainer_messages.Report] = []
        self.output: list[LogLines] = []
        self.exits: list[Exit] = []
        self.log = log
        self._changed = asyncio.Event()
        order: dict[str, Any] = {
            "run": "r",
            "task": "chief:0",
            "folder": str(SCRIPTS),
            "meet_timeout_s": LONG_S,
        }
        self.process = TrainerProcess(
            trainer_messages.Train(**{**order, **train}),
            log_path=log,
            on_report=lambda report: self._keep(self.reports, report),
            on_output=lambda lines: self._keep(self.output, lines),
            on_exit=lambda exit: self._keep(self.exits, exit),
            child=child,
            limits=limits,
            loading=loading,
        )
        self.process.start()

    def _keep(self, kept: list[Any], what: Any) -> None:
        kept.append(what)
        self._changed.set()

    def stop(self, force: Force = 0) -> None:
        self.process.stop(force)

    def order(self, order: trainer_messages.Order) -> None:
        self.process.order(order)

    async def wait(self, condition: Callable[[], Any], limit_s: float = LONG_S) -> None:
        async with asyncio.timeout(limit_s):
            while not condition():
                assert not self.exits, f"ended before what was waited for: {self.exits} {self.text()}"
                self._changed.clear()
                await self._changed.wait()

    async def exit(self, limit_s: float = 2 * LONG_S) -> Exit:
        async with asyncio.timeout(limit_s):
            while not self.exits:
                self._changed.clear()
                await self._changed.wait()
        assert await asyncio.to_thread(self.process.join, LONG_S)
        await asyncio.sleep(0)
        assert len(self.exits) == 1
        return self.exits[0]

    def of(self, kind: type[Any]) -> list[Any]:
        return [report for report in self.reports if isinstance(report, kind)]

    def progress(self) -> list[Progress]:
        return [report.progress for report in self.of(trainer_messages.Progressed)]

    def epochs(self) -> list[EpochEnd]:
        return [report.epoch for report in self.of(trainer_messages.EpochEnded)]

    def text(self, stream: str = "stdout") -> str:
        return "\n".join(lines.text for lines in self.output if lines.stream == stream)


def members(
    logs: Path,
    configs: dict[str, str],
    *,
    keep: str = "",
    keep_all: Path | None = None,
    keys: Sequence[trainer_messages.ExchangeKeys] | None = None,
    **train: Any,
) -> dict[str, Attended]:
    """A trainer for each task, in rank order, with equal shares. ``keep``: where the chief saves models;
    ``keep_all``: where whoever leads at the end does, in a folder with its task's name.

    ``keys``: by rank, for connecting members over TLS. Created by default.
    """
    shares = (1,) * len(configs)
    if keys is None:
        keys = keys_for(len(configs))
    return {
        task: Attended(
            logs / f"{task}.log",
            task=task,
            tf_config=config,
            rank=rank,
            shares=shares,
            keep=str(keep_all / task) if keep_all is not None else "" if rank else keep,
            exchange=keys[rank],
            **train,
        )
        for rank, (task, config) in enumerate(configs.items())
    }


def keys_for(ranks: int) -> list[trainer_messages.ExchangeKeys]:
    """Keys for connecting the members of one run over TLS, by rank."""
    pairs = [make() for _ in range(ranks)]
    certificates = tuple(pair.cert_der for pair in pairs)
    return [
        trainer_messages.ExchangeKeys(generation=0, certificates=certificates, private_key=pair.private_key)
        for pair in pairs
    ]


_places = random.Random(os.getpid())


def free_ports(count: int) -> list[int]:
    """Free ones below the ephemeral range, where TensorFlow's servers listen. Different ones with each
    call."""
    found: list[int] = []
    for port in _places.sample(range(20000, 32000), 2000):
        with socket.socket() as trial:
            try:
                trial.bind(("0.0.0.0", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


def cluster(**counts: int) -> dict[str, str]:
    """TF_CONFIG by task name, e.g. ``cluster(chief=1, worker=1)``, on loopback."""
    ports = iter(free_ports(sum(counts.values())))
    spec = {role: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for role, count in counts.items()}
    return {
        f"{role}:{index}": json.dumps({"cluster": spec, "task": {"type": role, "index": index}})
        for role, hosts in spec.items()
        for index in range(len(hosts))
    }
