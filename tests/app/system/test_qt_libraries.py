"""System libraries that Qt lacks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from app.system import qt_libraries


def plugin(folder: Path, *libraries: str) -> Path:
    """A library that needs others, none of which exists any more."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler")
    (folder / "empty.c").write_text("")
    made = list[Path]()
    for name in (*libraries, "plugin.so"):
        path = folder / name
        needs = ("-Wl,--no-as-needed", *map(str, made)) if name == "plugin.so" else (f"-Wl,-soname,{name}",)
        subprocess.run((compiler, "-shared", "-o", path, folder / "empty.c", *needs), check=True, timeout=60)
        made.append(path)
    for name in libraries:
        (folder / name).unlink()
    return folder / "plugin.so"


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    lacks = ["libgone-a.so.1", "libgone-b.so.2"]
    assert qt_libraries.missing({"DISPLAY": ":0"}, "linux", plugin(tmp_path, *lacks)) == lacks
    said = qt_libraries.words(["libxcb-cursor.so.0", "libxcb-icccm.so.4"])
    assert "the libraries libxcb-cursor.so.0, libxcb-icccm.so.4" in said
    assert "sudo apt install libxcb-cursor0 libxcb-icccm4)" in said


@pytest.mark.parametrize(
    ("environment", "platform", "looked"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "xcb"}, "linux", True),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, "linux", False),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", False),
        ({}, "darwin", False),
    ],
)
def test_it_is_looked_for_where_x11_is_the_way(
    environment: dict[str, str], platform: str, looked: bool
) -> None:
    def load(path: str) -> object:
        raise OSError("libxcb-cursor.so.0: cannot open shared object file: No such file or directory")

    found = qt_libraries.missing(environment, platform, Path("/nowhere/libqxcb.so"), load)
    assert found == (["libxcb-cursor.so.0"] if looked else [])


def test_what_names_no_library_is_left_to_qt(tmp_path: Path) -> None:
    (tmp_path / "libqxcb.so").write_bytes(b"no library")
    assert qt_libraries.missing({"DISPLAY": ":0"}, "linux", tmp_path / "libqxcb.so") == []


@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("libxcb-cursor.so.0", "libxcb-cursor0"),
        ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
        ("libEGL.so.1", "libegl1"),
        ("libX11-xcb.so.1", "libx11-xcb1"),
        ("libdbus-1.so.3", "libdbus-1-3"),
        ("libglib-2.0.so.0", "libglib2.0-0"),
    ],
)
def test_the_package_of_a_library(library: str, package: str) -> None:
    assert qt_libraries.package(library) == package
