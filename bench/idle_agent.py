"""An idle agent: how soon it is ready, and its cost beside a linked peer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import processes
from bench.laptops import two_paired
from bench.result import Row, median, spread
from core.home import settings_file
from core.home.home import Home, prepare
from core.supervisor.spawn import program
from core.vocabulary.settings import Settings

STARTS = 7
IDLE_S = 30.0
READY_LIMIT_S = 1.5
MEMORY_LIMIT_MB = 120.0
CPU_LIMIT_PCT = 1.0


def measure() -> list[Row]:
    return [*_ready(), *asyncio.run(_idle())]


def _ready() -> list[Row]:
    walls, cpus = [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
            wall_s, cpu_s = time_to_ready(Path(folder))
        walls.append(wall_s)
        cpus.append(cpu_s)
    return [
        Row(
            what="ready: from process start to the first JSON line, new home",
            value=median(walls),
            unit="s",
            limit=READY_LIMIT_S,
            note=spread(walls),
        ),
        Row(what="CPU time until then", value=median(cpus), unit="s", note=spread(cpus)),
    ]


def time_to_ready(folder: Path) -> tuple[float, float]:
    """Wall-clock and CPU seconds until an agent in an empty home reports that it listens."""
    home = Home(folder / "home")
    prepare(home)
    settings_file.write(home.settings, Settings(name="bench", port=0))
    command = [*program(), "agent", "--jsonl", "--home", str(home.folder)]
    began_s = time.monotonic()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as agent:
        assert agent.stdout is not None and agent.stdin is not None
        line = agent.stdout.readline()
        wall_s = time.monotonic() - began_s
        cpu_s = processes.cpu_s(agent.pid)
        agent.stdin.close()
        agent.stdout.read()
    if b'"vocabulary"' not in line:
        raise RuntimeError(f"{' '.join(map(str, command))} did not greet, but said {line[:200]!r}")
    return wall_s, cpu_s


async def _idle() -> list[Row]:
    async with two_paired() as nodes:
        for node in nodes:
            await processes.wait_at_rest(node.pid)
        pids = [node.pid for node in nodes]
        before = [processes.cpu_s(pid) for pid in pids]
        began_s = time.monotonic()
        await asyncio.sleep(IDLE_S)
        took_s = time.monotonic() - began_s
        parts = [100 * (processes.cpu_s(pid) - s) / took_s for pid, s in zip(pids, before, strict=True)]
        memory = [processes.memory_mb(pid) for pid in pids]
        loaded = [processes.has_loaded(pid, processes.TENSORFLOW) for pid in pids]
    if sys.platform != "linux":
        raise RuntimeError("whether TensorFlow is loaded can be seen on Linux only")
    return [
        Row(
            what="resident memory, a peer linked",
            value=max(rss for rss, _ in memory),
            unit="MB",
            limit=MEMORY_LIMIT_MB,
            note="the larger of two agents",
        ),
        Row(what="proportional memory (PSS)", value=max(pss for _, pss in memory), unit="MB"),
        Row(
            what=f"CPU over {IDLE_S:g} s idle, a peer linked",
            value=max(parts),
            unit="% of a core",
            limit=CPU_LIMIT_PCT,
            note="the busier of two agents",
        ),
        Row(what="agents that have TensorFlow loaded", value=float(sum(loaded)), limit=0.0),
    ]
