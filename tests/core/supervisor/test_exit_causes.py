from __future__ import annotations

import signal
from pathlib import Path

import pytest

from core.supervisor import exit_causes
from core.supervisor.exit_causes import MemoryKills
from core.vocabulary.phases import Exit


def died(status: int, *, booted: bool = True, cluster: bool = False, tail: str = "") -> Exit:
    exit = exit_causes.died(status, booted=booted, cluster=cluster, memory=False, tail=tail)
    assert exit.problem is not None and exit.problem.what and exit.problem.fix
    return exit


def test_the_kernels_counts_are_read_from_the_second_control_groups(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text("0::/user.slice/me\n")
    (proc / "vmstat").write_text("nr_free_pages 5\noom_kill 3\n")
    group = cgroups / "user.slice/me"
    group.mkdir(parents=True)
    (group / "memory.events").write_text("low 0\noom 2\noom_kill 2\n")
    assert exit_causes.memory_kills(proc, cgroups) == MemoryKills(group=2, machine=3)


def test_the_kernels_counts_are_read_from_the_first_control_groups(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text("4:cpu,memory:/a/b\n0::/\n")
    group = cgroups / "memory/a/b"
    group.mkdir(parents=True)
    (group / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    assert exit_causes.memory_kills(proc, cgroups) == MemoryKills(group=1, machine=None)


def test_a_system_without_counts_has_none(tmp_path: Path) -> None:
    assert exit_causes.memory_kills(tmp_path, tmp_path) == MemoryKills(group=None, machine=None)


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [
        (MemoryKills(1, 1), MemoryKills(1, 1), False),
        (MemoryKills(1, 1), MemoryKills(2, 1), True),
        (MemoryKills(None, 1), MemoryKills(None, 2), True),
        (MemoryKills(None, None), MemoryKills(None, None), False),
    ],
)
def test_one_more_kill_is_seen_in_either_count(before: MemoryKills, after: MemoryKills, more: bool) -> None:
    assert after.more_than(before) is more


def test_an_abort_in_a_cluster_with_talk_of_peers_is_a_lost_peer() -> None:
    tail = "F0000 coordination_service_agent.cc: UNAVAILABLE: failed to connect to all addresses"
    assert died(-signal.SIGABRT, cluster=True, tail=tail).reason == "lost-peer"
    assert died(-signal.SIGABRT, cluster=False, tail=tail).reason == "killed"
    assert died(-signal.SIGABRT, cluster=True, tail="double free").reason == "killed"


def test_a_crash_names_its_signal() -> None:
    assert "SIGSEGV" in str(died(-signal.SIGSEGV).problem)
    assert "SIGRTMIN" in str(died(-signal.SIGRTMIN).problem) or "signal" in str(died(-40).problem)


def test_before_the_boot_it_is_tensorflows_fault() -> None:
    assert died(1, booted=False).problem.code == "tensorflow-broken"  # type: ignore[union-attr]
    assert "SIGILL" in str(died(-signal.SIGILL, booted=False).problem)
