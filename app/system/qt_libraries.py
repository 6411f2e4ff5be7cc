"""Finds system libraries that Qt's window needs and lacks. Imports no Qt, which may not load without them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from ctypes import CDLL
from importlib.util import find_spec
from pathlib import Path

_LISTED_S = 10.0
_PACKAGES = {"libglib-2.0": "libglib2.0-0", "libgthread-2.0": "libglib2.0-0", "libGLdispatch": "libglvnd0"}
"""Libraries whose package name does not follow from their own."""


def missing(
    environment: Mapping[str, str],
    platform: str,
    plugin: Path | None = None,
    load: Callable[[str], object] = CDLL,
) -> list[str]:
    """The missing libraries without which Qt ends the whole process if it uses X11.

    Debian and Ubuntu do not install libxcb-cursor by default. ``plugin``: by default Qt's for X11. ``load``
    raises ``OSError`` as dlopen fails.
    """
    chosen = environment.get("QT_QPA_PLATFORM", "")
    by_x11 = chosen.startswith("xcb") if chosen else not environment.get("WAYLAND_DISPLAY")
    if platform != "linux" or not by_x11:
        return []
    plugin = plugin or _plugin()
    try:
        load(str(plugin))  # Qt loads it next, from the same place
    except OSError as error:
        first = re.match(r"(lib[\w.+-]+): cannot open", str(error))
        return _not_found(plugin) or ([first[1]] if first else [])
    return []


def words(libraries: Sequence[str]) -> str:
    """The missing libraries, and one command that installs them."""
    packages = sorted({package(library) for library in libraries})
    return (
        f"Tandem's window needs {listed(libraries)}, which this system lacks.\n"
        f"Install the missing packages (Debian, Ubuntu: sudo apt install {' '.join(packages)}), or train "
        "without a window: see tandem --help.\n"
    )


def listed(libraries: Sequence[str]) -> str:
    return f"the {'library' if len(libraries) == 1 else 'libraries'} {', '.join(libraries)}"


def package(library: str) -> str:
    """Debian's name for a library package: name and version, with a dash after a digit."""
    name, _, version = library.partition(".so.")
    return _PACKAGES.get(name) or f"{name}{'-' if name[-1].isdigit() else ''}{version}".lower()


def _plugin() -> Path:
    found = find_spec("PySide6")
    folders = found.submodule_search_locations if found is not None else None
    return Path(next(iter(folders or ()), "PySide6"), "Qt", "plugins", "platforms", "libqxcb.so")


def _not_found(library: Path) -> list[str]:
    """As listed by the system's loader: its error names only the first."""
    try:
        listing = subprocess.run(("ldd", str(library)), capture_output=True, text=True, timeout=_LISTED_S)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return sorted(set(re.findall(r"^\s*(\S+) => not found", listing.stdout, re.MULTILINE)))
