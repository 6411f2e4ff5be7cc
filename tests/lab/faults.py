"""Faults of a laptop during training. Each proves that it really happened.

Unless stated otherwise, a fault is undone at the end of the ``with``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.lab.agent import Agent
from tests.lab.network import Network

NODE_PORT, MDNS_PORT = 27600, 5353
SETTLE_S = 60.0
"""For changes that an idle system makes immediately."""


def eth0(network: Network, host: int) -> dict[str, Any]:
    """The system's data on a host's cable: ``operstate``, ``stats64`` and more."""
    (found,) = json.loads(network.do(host, "ip", "-json", "-details", "-s", "link", "show", "dev", "eth0"))
    assert isinstance(found, dict)
    return found


def received_bytes(network: Network, host: int) -> int:
    return int(eth0(network, host)["stats64"]["rx"]["bytes"])


@contextmanager
def cable_out(network: Network, host: int) -> Iterator[None]:
    """Not one byte reaches the host, nor leaves it."""
    network.cable(host, plugged=False)
    try:
        _until(lambda: eth0(network, host)["operstate"] == "DOWN")
        before = received_bytes(network, host)
        yield
        assert eth0(network, host)["operstate"] == "DOWN"
        assert received_bytes(network, host) == before
    finally:
        network.cable(host, plugged=True)
    _until(lambda: eth0(network, host)["operstate"] == "UP")


@contextmanager
def stopped(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """By SIGSTOP: they exist, and compute nothing."""
    assert processes
    try:
        for process in processes:
            process.suspend()
        _until(lambda: all(map(_stands_still, processes)))
        before = [process.cpu_times() for process in processes]
        yield
        assert all(map(_stands_still, processes))
        assert [process.cpu_times() for process in processes] == before
    finally:
        for process in processes:
            process.resume()
    _until(lambda: not any(map(_stands_still, processes)))


@contextmanager
def lid_closed(network: Network, host: int, agent: Agent) -> Iterator[None]:
    """Node and trainer stand still, and the network is gone."""
    with ExitStack() as undone:
        undone.enter_context(cable_out(network, host))
        undone.enter_context(stopped([agent.process, *agent.trainers()]))
        yield


@contextmanager
def little_memory(agent: Agent, limit_bytes: int) -> Iterator[None]:
    """A control group for the node and its trainers. The kernel kills one of them once they take more from
    now on."""
    groups = memory_groups()
    assert groups is not None
    group = groups / f"lab-{agent.process.pid}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
        for process in (agent.process, *agent.trainers()):
            (group / "cgroup.procs").write_text(str(process.pid))
        yield
        kills = dict(line.split() for line in (group / "memory.oom_control").read_text().splitlines())
        assert int(kills["oom_kill"]) > 0
    finally:
        _until(lambda: _is_removed(group))


def _is_removed(group: Path) -> bool:
    """After what is still in it was moved out."""
    for process in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (group.parent / "cgroup.procs").write_text(process)
    try:
        group.rmdir()
    except OSError:  # a process that was killed is still in it
        return False
    return True


def memory_groups() -> Path | None:
    """Where this process may make control groups of memory (version 1); None: nowhere."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        folder = Path("/sys/fs/cgroup/memory" + path)
        if controllers == "memory" and os.access(folder, os.W_OK):
            return folder
    return None


def small_disk(network: Network, host: int, folder: Path, size_mb: int) -> None:
    """A disk of its own at this folder, as that host sees it. Not undone."""
    network.do(host, "mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "small", str(folder))


def listens(network: Network, host: int, kind: str = "tcp") -> set[int]:
    """The ports at which somebody listens there; ``kind``: ``tcp`` or ``udp``."""
    lines = network.do(host, "ss", "--no-header", "--numeric", f"--{kind}", "--listening").splitlines()
    return {int(line.split()[3].rpartition(":")[2]) for line in lines}


def listens_alone(network: Network, host: int) -> None:
    """Waits until its node is the only one that listens there, with mDNS."""
    _until(lambda: listens(network, host) == {NODE_PORT} and listens(network, host, "udp") <= {MDNS_PORT})


def move(network: Network, host: int, address: str) -> None:
    """Another address in the same network, as after another Wi-Fi; the former one is gone. Not undone."""
    network.do(host, "ip", "-4", "address", "flush", "dev", "eth0")
    network.do(host, "ip", "address", "add", f"{address}/24", "dev", "eth0")
    assert _addresses(network, host) == [address]


def calls_from(network: Network, host: int, address: str) -> int:
    """The number of a host's established connections with that other end."""
    return len(
        network.do(host, "ss", "--no-header", "--tcp", "state", "established", "dst", address).splitlines()
    )


def _addresses(network: Network, host: int) -> list[str]:
    found = json.loads(network.do(host, "ip", "-json", "-4", "address", "show", "dev", "eth0"))
    return [address["local"] for link in found for address in link["addr_info"]]


def _stands_still(process: psutil.Process) -> bool:
    """Each of its threads: one in a system call stops later than the process is reported as stopped."""
    return all(psutil.Process(thread.id).status() == psutil.STATUS_STOPPED for thread in process.threads())


def _until(happened: Any) -> None:
    until_s = time.monotonic() + SETTLE_S
    while not happened():
        assert time.monotonic() < until_s
        time.sleep(0.02)
