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


def test_only_a_count_that_grew_is_a_kill() -> None:
    before = MemoryKills(group=2, machine=3)
    assert not before.more_than(before)
    assert MemoryKills(group=3, machine=3).more_than(before)
    assert MemoryKills(group=2, machine=4).more_than(before)
    assert not MemoryKills(group=1, machine=None).more_than(before)
    assert not MemoryKills(group=9, machine=9).more_than(MemoryKills(group=None, machine=None))


def test_a_group_without_a_count_leaves_it_to_the_next(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text("9:cpu:/x\n4:memory:/missing\n0::/me\n")
    (cgroups / "me").mkdir(parents=True)
    (cgroups / "me" / "memory.events").write_text("low 0\noom_kill 5\n")
    assert exit_causes.memory_kills(proc, cgroups).group == 5
    (cgroups / "me" / "memory.events").write_text("oom_kill many\n")
    assert exit_causes.memory_kills(proc, cgroups).group is None


def test_an_end_while_loading_names_the_signal_or_the_code() -> None:
    for status, words in (
        (-11, "(SIGSEGV)"),
        (-200, "(signal 200)"),
        (0, "(exit code 0)"),
        (3, "(exit code 3)"),
    ):
        end = died(status, booted=False)
        assert end.problem is not None and end.problem.code == "tensorflow-broken"
        assert words in end.problem.what


def test_a_kill_for_want_of_memory_is_told_from_one_by_somebody() -> None:
    for memory, code in ((True, "out-of-memory"), (False, "killed")):
        end = exit_causes.died(-9, booted=False, cluster=False, memory=memory, tail="last")
        assert end.problem is not None and (end.problem.code, end.problem.detail) == (code, "last")
        assert end.reason == code


def test_limits_are_said_in_seconds() -> None:
    slow = exit_causes.slow_boot(119.6)
    assert slow.problem is not None and "after 120 s" in slow.problem.what and slow.reason == "killed"
    forced = exit_causes.forced("It took too long.", "last")
    assert forced.problem is not None
    assert (forced.problem.what, forced.problem.detail) == ("It took too long.", "last")
