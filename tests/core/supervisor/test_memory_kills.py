from __future__ import annotations

from pathlib import Path

from core.supervisor.memory_kills import MemoryKills, counted


def test_the_kernels_counts_are_read_from_the_second_control_groups(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text("0::/user.slice/me\n")
    (proc / "vmstat").write_text("nr_free_pages 5\noom_kill 3\n")
    group = cgroups / "user.slice/me"
    group.mkdir(parents=True)
    (group / "memory.events").write_text("low 0\noom 2\noom_kill 2\n")
    assert counted(proc, cgroups) == MemoryKills(group=2, machine=3)


def test_the_kernels_counts_are_read_from_the_first_control_groups(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text("4:cpu,memory:/a/b\n0::/\n")
    group = cgroups / "memory/a/b"
    group.mkdir(parents=True)
    (group / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    assert counted(proc, cgroups) == MemoryKills(group=1, machine=None)


def test_a_system_without_counts_has_none(tmp_path: Path) -> None:
    assert counted(tmp_path, tmp_path) == MemoryKills(group=None, machine=None)


def test_only_a_count_that_grew_is_a_kill() -> None:
    before = MemoryKills(group=2, machine=3)
    assert not before.more_than(before)
    assert MemoryKills(group=3, machine=3).more_than(before)
    assert MemoryKills(group=2, machine=4).more_than(before)
    assert MemoryKills(group=None, machine=4).more_than(MemoryKills(group=None, machine=3))
    assert not MemoryKills(group=1, machine=None).more_than(before)
    assert not MemoryKills(group=9, machine=9).more_than(MemoryKills(group=None, machine=None))


def test_a_group_without_a_count_leaves_it_to_the_next(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text("9:cpu:/x\n4:memory:/missing\n0::/me\n")
    (cgroups / "me").mkdir(parents=True)
    (cgroups / "me" / "memory.events").write_text("low 0\noom_kill 5\n")
    assert counted(proc, cgroups).group == 5
    (cgroups / "me" / "memory.events").write_text("oom_kill many\n")
    assert counted(proc, cgroups).group is None
