"""The system programs that the tour needs, and the Debian package of each."""

from __future__ import annotations

import ctypes.util
import shutil

PROGRAMS = {
    "Xvfb": "xvfb",
    "xdotool": "xdotool",
    "import": "imagemagick",
    "convert": "imagemagick",
    "dbus-daemon": "dbus",
    "dbus-send": "dbus",
    "taskset": "util-linux",
}
LIBRARIES = {
    "X11": "libx11-6",
    "dbus-1": "libdbus-1-3",
    "EGL": "libegl1",
    "xkbcommon-x11": "libxkbcommon-x11-0",
    "xcb-cursor": "libxcb-cursor0",
    "xcb-icccm": "libxcb-icccm4",
    "xcb-image": "libxcb-image0",
    "xcb-keysyms": "libxcb-keysyms1",
    "xcb-render-util": "libxcb-render-util0",
    "xcb-shape": "libxcb-shape0",
    "xcb-xinerama": "libxcb-xinerama0",
}


def missing_packages() -> list[str]:
    """Packages to install before a tour."""
    packages = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    packages += [package for name, package in LIBRARIES.items() if ctypes.util.find_library(name) is None]
    return sorted(set(packages))
