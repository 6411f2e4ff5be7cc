"""Whether trainers of this laptop can be sealed, and why not. Blocks for some milliseconds."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

Seal = Literal["namespace", "loopback", ""]
"""By what TensorFlow's port is kept from others than the members of a run: a network of the trainer's own;
listening on the loopback alone, which other users of the laptop reach; ``""``: nothing."""
_PROC = Path("/proc/sys")
_TRIAL_S = 5.0


def find() -> Seal:
    """What is there. A trainer looks for itself again, and never goes on unsealed."""
    if not why_none():
        return "namespace"
    return "loopback" if sys.platform == "linux" and platform.machine() == "x86_64" else ""


def why_none(proc: Path = _PROC) -> str:
    """A clause; ``""`` where user namespaces can be used."""
    if sys.platform != "linux":
        return "this system has no network namespaces"
    if _value(proc / "kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "user namespaces are restricted by AppArmor here"
    switches = ("kernel/unprivileged_userns_clone", "user/max_user_namespaces")
    if any(_value(proc / switch) == "0" for switch in switches):
        return "user namespaces are switched off here"
    return "" if _can_unshare() else "user namespaces are not allowed here"


def how_to_allow(proc: Path = _PROC) -> str:
    """A sentence for who administers this laptop."""
    if sys.platform != "linux":
        return "Train such scripts between Linux laptops."
    if _value(proc / "kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "Allow them with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or with a "
            "profile of AppArmor for Tandem's Python that has `userns,`."
        )
    if _value(proc / "kernel/unprivileged_userns_clone") == "0":
        return "Allow them with `sudo sysctl -w kernel.unprivileged_userns_clone=1`."
    if _value(proc / "user/max_user_namespaces") == "0":
        return "Allow them with `sudo sysctl -w user.max_user_namespaces=10000`."
    return "In a container, allow the system call unshare; elsewhere ask who administers this laptop."


def _can_unshare() -> bool:
    program = shutil.which("unshare")
    if program is None:
        return False
    asked = [program, "--user", "--map-root-user", "--net", "true"]
    try:
        done = subprocess.run(asked, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TRIAL_S)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _value(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
