"""Checks the home on disk: private, writable, complete, with enough space? And fixes what Tandem can.

Blocks: run in a thread.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from core.doctor.view import Examined, error, note, ok, warning
from core.home import socket_path
from core.home.home import Home, prepare
from core.home.private_file import user_id
from core.vocabulary import units
from core.vocabulary.answers import Finding
from core.vocabulary.errors import TandemError

TOPIC = "files"
LITTLE_BYTES = 2 << 30
TOO_LITTLE_BYTES = 200 << 20


def check_home(view: Examined) -> Finding:
    try:
        prepare(view.home)
    except TandemError as failure:
        return error(failure.code, TOPIC, failure.what, failure.fix)
    return ok("home", TOPIC, f"Only you can read the home {view.home.folder}, and Tandem can write to it.")


def check_disk(view: Examined, usage: Callable[[Path], object] = shutil.disk_usage) -> Finding:
    folder = next(place for place in (view.home.folder, *view.home.folder.parents) if place.exists())
    free = int(getattr(usage(folder), "free", 0))
    said = f"{units.size(free)} is free on the disk of {view.home.folder}"
    fix = "Delete what you no longer need: old runs in the history, or other files on this disk."
    if free < TOO_LITTLE_BYTES:
        return error("disk-full", TOPIC, f"Only {said}: a run would fail.", fix)
    if free < LITTLE_BYTES:
        return warning("disk-low", TOPIC, f"Only {said}.", fix)
    return ok("disk", TOPIC, f"{said}.")


def check_key(view: Examined) -> Finding:
    """The key's file modes. Wrong ones keep the next node from starting, so report them early."""
    folder = view.home.identity
    if not (folder / "key.pem").exists():
        return note("key", TOPIC, "This device has no key yet; one is made when Tandem starts.")
    if os.name != "posix":
        return ok("key", TOPIC, "This device's key is in your own profile folder.")
    for path, limit in ((folder, 0o700), (folder / "key.pem", 0o600), (folder / "cert.pem", 0o600)):
        try:
            found = path.lstat()
        except OSError:
            continue
        if found.st_uid != user_id():
            command = f"sudo chown -R {user_id()} {shlex.quote(str(folder))}"
            return error(
                "key-owner",
                TOPIC,
                f"{path} belongs to user {found.st_uid}, and you are user {user_id()}.",
                f"Give it back to yourself: {command}",
                command=command,
            )
        if stat.S_IMODE(found.st_mode) & ~limit:
            return error(
                "key-mode",
                TOPIC,
                f"Other users of this computer can reach {path} (mode {stat.S_IMODE(found.st_mode):04o}).",
                "Close it (Tandem can). If others may have read the key, delete it and pair again.",
                mend=True,
            )
    return ok("key", TOPIC, "Only you can read this device's key.")


def check_socket(view: Examined) -> Finding:
    """Whether a second command on this home would find this node."""
    path = view.home.loopback if sys.platform == "win32" else socket_path.find(view.home)
    there = path.exists()
    if view.running and not there:
        return warning(
            "socket-gone",
            TOPIC,
            "The socket that connects other commands to this Tandem was deleted.",
            "Make it again (Tandem can), or restart Tandem.",
            mend=True,
        )
    if not view.running and there:
        return note(
            "socket-left", TOPIC, f"{path} was left by a Tandem that crashed; the next start replaces it."
        )
    return ok(
        "socket",
        TOPIC,
        "Other commands that use this home find this Tandem." if there else "No Tandem runs here.",
    )


def close_key(home: Home) -> None:
    """Remove everybody else's permissions on the key. Links are not followed."""
    home.identity.chmod(0o700)
    for name in ("key.pem", "cert.pem"):
        path = home.identity / name
        if path.is_file() and not path.is_symlink():
            path.chmod(0o600)


MENDS: dict[str, Callable[[Home], None]] = {"key-mode": close_key}
"""The node adds ``socket-gone``, which only it can fix."""


def mend(home: Home, code: str) -> None:
    """Fix the finding with this code.

    Raises ``TandemError``: there is no such fix, or the system does not allow it.
    """
    work = MENDS.get(code)
    if work is None:
        raise TandemError(
            code="no-such-mend",
            what=f"Tandem can't fix {code[:60]!r} by itself.",
            fix="Follow the doctor's advice.",
        )
    try:
        work(home)
    except OSError as error:
        raise TandemError(
            code="mend-failed",
            what=f"Fixing {code} failed ({error.strerror or error}).",
            fix="Follow the doctor's advice by hand.",
        ) from error
