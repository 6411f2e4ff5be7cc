"""Files of this laptop that a script from another one may ask for, and their real paths. Blocks.

Security invariant: keys, passwords, Tandem's own files and programs' code are never opened, whatever this
user says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from core.vocabulary.access import Access, Grant, is_within
from core.vocabulary.errors import TandemError
from core.vocabulary.text import spelled

_HOMES = ("/home", "/root")
_DISKS = "/run/media"
"""The folder where some systems mount removable disks."""
_NEVER = ("/proc", "/sys", "/dev", "/run", "/var/run", "/boot")
_SYSTEM = (
    "/usr",
    "/etc",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/var",
    "/nix",
    "/gnu",
    "/snap",
)
_IDENTITY = Path("identity", "key.pem")


def find(asked: Sequence[Access], own: Path) -> tuple[Grant, ...]:
    """The requested paths with their real paths here. ``own``: this Tandem's home. Raises ``TandemError`` for
    paths that are never opened.

    Missing paths are treated like existing ones, so that a request reveals nothing about this disk.
    """
    return tuple(_find(each, own) for each in asked)


def _find(access: Access, own: Path) -> Grant:
    if not access.is_whole:
        raise _never(access, "the path must start with / or ~/")
    home = os.path.realpath(Path.home())
    # Not `expanduser`: only "~/" means this user's home.
    said = str(Path(home, access.path[2:])) if access.path.startswith("~/") else access.path
    real = os.path.realpath(said)
    kept = (home, os.path.realpath(own))
    if ".." in Path(said).parts or any(is_within(each, [path]) for each in kept for path in (said, real)):
        raise _never(access, "it holds more than a script's data")
    for path in (said, real):
        if path in _HOMES:
            raise _never(access, "it holds more than a script's data")
        if _is_hidden(path, home) or is_within(path, [f"{home}/snap"]):
            raise _never(access, "hidden folders hold keys, passwords and programs' data")
        if is_within(path, [kept[1]]) or _is_a_tandems(Path(path)):
            raise _never(access, "it is Tandem's own")
        if is_within(path, _NEVER) and (path == _DISKS or not is_within(path, [_DISKS])):
            raise _never(access, "it belongs to the system")
        if access.write and any(is_within(path, [each]) or is_within(each, [path]) for each in _programs()):
            raise _never(access, "programs are started from there", "change")
    return Grant(asked=access.path, path=real, write=access.write)


def _is_hidden(path: str, home: str) -> bool:
    below = os.path.relpath(path, home) if is_within(path, [home]) else path
    return any(part.startswith(".") for part in Path(below).parts)


def _is_a_tandems(path: Path) -> bool:
    return any((folder / _IDENTITY).exists() for folder in (path, *path.parents))


def _programs() -> tuple[str, ...]:
    """Folders that hold programs and Python's modules."""
    found = (*os.environ.get("PATH", "").split(os.pathsep), *sys.path, sys.prefix, sys.base_prefix)
    return (*_SYSTEM, *(os.path.realpath(each) for each in found if Path(each).is_absolute()))


def _never(access: Access, why: str, act: str = "open") -> TandemError:
    return TandemError(
        code="never-opened",
        what=f"Scripts of other laptops never {act} {spelled(access.path)} here: {why}.",
        fix="Ask for a folder that contains only the data.",
    )
