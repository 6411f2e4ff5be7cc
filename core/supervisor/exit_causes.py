"""How a trainer that died without a last word ended: its exit status made into a typed ``Exit``.

Reads the kernel's counters of memory kills; no other I/O.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from core.vocabulary.errors import Problem
from core.vocabulary.phases import Exit

_LOST = re.compile(
    r"UNAVAILABLE|Connection reset|Socket closed|heartbeat|Coordination|coordination service|"
    r"failed to connect to all addresses|Collective ops is aborted",
)


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """The kernel's counts of processes ended for want of memory: of our control group, and of the machine."""

    group: int | None
    machine: int | None

    def more_than(self, before: MemoryKills) -> bool:
        return _grew(before.group, self.group) or _grew(before.machine, self.machine)


def _grew(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before


def memory_kills(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> MemoryKills:
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


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def died(status: int, *, booted: bool, cluster: bool, memory: bool, tail: str) -> Exit:
    """A process that ended by itself. ``status`` as Popen gives it; ``tail`` the last lines of its stderr.

    ``memory``: the kernel ended a process for want of memory while this one ran.
    """
    if status == -signal.SIGKILL:
        return out_of_memory(tail) if memory else _killed_from_outside(tail)
    if not booted:
        return Exit(
            reason="killed",
            problem=Problem(
                code="tensorflow-broken",
                what=f"The trainer ended while TensorFlow was loading ({_status(status)}).",
                fix="`tandem doctor` tries TensorFlow and says what is wrong with it.",
                detail=tail,
            ),
        )
    if status < 0 and cluster and _LOST.search(tail):
        return Exit(
            reason="lost-peer",
            problem=Problem(
                code="lost-peer",
                what="Another member of the run went away, and TensorFlow ended the trainer here.",
                fix="The log of the laptop that went away first says why. Press Train to go again.",
                detail=tail,
            ),
        )
    if status < 0:
        return Exit(
            reason="killed",
            problem=Problem(
                code="crashed",
                what=f"The trainer ended by {signal_name(-status)}: {_SIGNALS.get(-status, 'sent to it')}.",
                fix="Run it again; if it comes again, the log's end shows what it did last.",
                detail=tail,
            ),
        )
    return Exit(
        reason="script-error",
        problem=Problem(
            code="script-left",
            what=f"The script ended its own process with exit code {status}, without an error.",
            fix="Let the script run to its end, or raise an error instead of os._exit.",
            detail=tail,
        ),
    )


_SIGNALS: dict[int, str] = {
    signal.SIGSEGV: "a crash in native code",
    signal.SIGABRT: "a native library gave up",
    signal.SIGBUS: "a crash in native code, or a full disk",
    signal.SIGILL: "this processor lacks an instruction that the program uses",
    signal.SIGFPE: "a crash in native arithmetic",
}


def _status(status: int) -> str:
    return signal_name(-status) if status < 0 else f"exit code {status}"


def out_of_memory(tail: str) -> Exit:
    return Exit(
        reason="out-of-memory",
        problem=Problem(
            code="out-of-memory",
            what="The laptop ran out of memory, and the system ended the trainer.",
            fix="Close other programs, use a smaller batch or model, or give this laptop a smaller share.",
            detail=tail,
        ),
    )


def _killed_from_outside(tail: str) -> Exit:
    return Exit(
        reason="killed",
        problem=Problem(
            code="killed",
            what="The trainer was killed from outside (SIGKILL), mostly by the system for want of memory.",
            fix="Look whether memory was full; if so, use a smaller batch or close other programs.",
            detail=tail,
        ),
    )


def slow_boot(limit_s: float) -> Exit:
    return Exit(
        reason="killed",
        problem=Problem(
            code="tensorflow-slow",
            what=f"TensorFlow was not loaded after {limit_s:.0f} s.",
            fix="The laptop may be very busy: try again. `tandem doctor` tries TensorFlow alone.",
        ),
    )


def forced(words: str, tail: str = "") -> Exit:
    """Ended by Tandem after Stop. ``words`` say why it took force."""
    return Exit(
        reason="killed",
        problem=Problem(
            code="stop-forced",
            what=words,
            fix="Files that the script was writing may be incomplete.",
            detail=tail,
        ),
    )
