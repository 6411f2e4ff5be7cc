"""The kernel's counts of out-of-memory kills, to tell these from other kills."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """Counts of processes killed for lack of memory: in our control group, and on the machine."""

    group: int | None
    machine: int | None

    def more_than(self, before: MemoryKills) -> bool:
        return _grew(before.group, self.group) or _grew(before.machine, self.machine)


def _grew(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before


def counted(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> MemoryKills:
    """None where the system has no such count."""
    return MemoryKills(group=_group_kills(proc, cgroups), machine=_count(proc / "vmstat"))


def _group_kills(proc: Path, cgroups: Path) -> int | None:
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            found = _count(cgroups / path.lstrip("/") / "memory.events")
        elif "memory" in controllers.split(","):
            found = _count(cgroups / "memory" / path.lstrip("/") / "memory.oom_control")
        else:
            continue
        if found is not None:
            return found
    return None


def _count(path: Path) -> int | None:
    try:
        for line in path.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    except (OSError, ValueError):
        pass
    return None
