"""Whether this laptop's trainers can be sealed, and why not. Blocks for some tens of milliseconds."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from core.supervisor import spawn
from core.vocabulary.versions import ROOT, is_frozen

Seal = Literal["namespace", ""]
"""How TensorFlow's port is reserved for a run's members: a network namespace of the trainer's own; ``""``:
not at all."""
_PROC = Path("/proc/sys")
_APPARMOR, _DEBIAN, _MOST = (
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/unprivileged_userns_clone",
    "user/max_user_namespaces",
)
_LINUX = sys.platform == "linux"
TRIAL_S = 5.0


def find() -> Seal:
    """The available seal. A trainer checks again, and never runs unsealed."""
    return "" if why_none() else "namespace"


def can_enter(limit_s: float = TRIAL_S) -> bool:
    """Whether a process of this program gets a network of its own, with the same calls as a trainer.

    AppArmor allows namespaces by program, so this exact program is tried.
    """
    try:
        done = subprocess.run(trial(), capture_output=True, stdin=subprocess.DEVNULL, timeout=limit_s)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def trial() -> list[str]:
    """The command that tries it, and exits with 0 on success. A Python without packages starts in some 20
    ms."""
    if is_frozen():
        return [*spawn.program(), spawn.SEAL_ARGUMENT]
    calls = "from core.trainer.sealed import namespace; namespace.enter()"
    return [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {calls}"]


def why_none(proc: Path = _PROC, can_enter: Callable[[], bool] = can_enter) -> str:
    """The reason as a clause; ``""`` if a trainer gets a network of its own, whatever the settings say."""
    if not _LINUX:
        return "this system has no network namespaces"
    if can_enter():
        return ""
    if _value(proc / _APPARMOR) == "1":
        return "AppArmor restricts user namespaces here"
    if any(_value(proc / switch) == "0" for switch in (_DEBIAN, _MOST)):
        return "user namespaces are switched off here"
    return "user namespaces are not allowed here"


def how_to_allow(proc: Path = _PROC) -> str:
    """Sentences for this laptop's administrator. Tandem need not be restarted afterwards."""
    if not _LINUX:
        return "Train such scripts between Linux laptops."
    if command := command_to_allow(proc):
        whom = " to programs of Tandem's Python" if _value(proc / _APPARMOR) == "1" else ""
        return f"Allow them{whom}, then check again: {command}"
    return "In a container, allow the system call unshare; elsewhere ask this laptop's administrator."


def command_to_allow(proc: Path = _PROC) -> str:
    """The command for a shell in ``how_to_allow``; ``""``: none is known."""
    if not _LINUX:
        return ""
    if _value(proc / _APPARMOR) == "1":
        return (
            f"printf {_quoted(profile())} | sudo tee /etc/apparmor.d/tandem && "
            "sudo apparmor_parser -r /etc/apparmor.d/tandem"
        )
    if _value(proc / _DEBIAN) == "0":
        return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if _value(proc / _MOST) == "0":
        return "sudo sysctl -w user.max_user_namespaces=10000"
    return ""


def profile(program: str = sys.executable) -> str:
    """An AppArmor profile that lets ``program`` make namespaces, without other restrictions."""
    # AppArmor identifies a program by its file, and a virtual environment's Python is a link to one.
    path = re.sub(r'["*?\[\]{}^\\]', r"\\\g<0>", str(Path(program).resolve()))  # it reads patterns there
    return (
        "abi <abi/4.0>,\n"
        "include <tunables/global>\n\n"
        f'profile tandem "{path}" flags=(unconfined) {{\n'
        "  userns,\n"
        "}\n"
    )


def _quoted(text: str) -> str:
    """Quote ``text`` for a shell's printf."""
    return (
        "'" + text.replace("\\", "\\\\").replace("%", "%%").replace("\n", "\\n").replace("'", "'\\''") + "'"
    )


def _value(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
