"""Installs Tandem into the desktop's menu: entry, AppStream metainfo and icons of all sizes. Blocks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from app.system.autostart import FILE, RESOURCES, entry, window_command
from core.vocabulary.errors import TandemError

METAINFO = "app.tandem.Tandem.metainfo.xml"
SIZES = (16, 22, 24, 32, 48, 64, 96, 128, 256, 512)
REFRESH_LIMIT_S = 10.0


def data_folder() -> Path:
    """The folder of a user's own applications (XDG Base Directory Specification)."""
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    return data if data.is_absolute() else Path.home() / ".local" / "share"


def install(data: Path, platform: str = sys.platform) -> tuple[Path, ...]:
    """Returns the files written. Raises ``TandemError`` if the folder is not writable."""
    _check_platform(platform)
    try:
        write(data, window_command())
    except OSError as error:
        raise TandemError(
            code="desktop-unwritable",
            what=f"Tandem can't be put into the menu: {error}.",
            fix=f"Make {data} writable for you and free some space, then try again.",
        ) from error
    _refresh(data)
    return files(data)


def write(data: Path, command: list[str]) -> None:
    """``command``: opens the window. Raises ``OSError``."""
    from app.widgets.icons import APPLICATION, image

    svg = APPLICATION.read_bytes()
    words = entry(command)
    for path in files(data):
        path.parent.mkdir(parents=True, exist_ok=True)
    entry_file(data).write_text(words, encoding="utf-8")
    _metainfo(data).write_bytes((RESOURCES / "desktop" / METAINFO).read_bytes())
    _scalable(data).write_bytes(svg)
    for size in SIZES:
        if not image(svg, size).save(str(_icon(data, size)), "PNG"):  # type: ignore[call-overload]
            raise OSError(f"{_icon(data, size)} was not written")


def remove(data: Path, platform: str = sys.platform) -> tuple[Path, ...]:
    """Removes exactly what ``install`` wrote. Returns the files that existed."""
    _check_platform(platform)
    there = tuple(path for path in files(data) if path.exists())
    try:
        for path in there:
            path.unlink()
    except OSError as error:
        raise TandemError(
            code="desktop-unwritable",
            what=f"Tandem can't be removed from the menu: {error}.",
            fix=f"Make {data} writable for you, then try again.",
        ) from error
    _refresh(data)
    return there


def files(data: Path) -> tuple[Path, ...]:
    return (entry_file(data), _metainfo(data), _scalable(data), *(_icon(data, size) for size in SIZES))


def entry_file(data: Path) -> Path:
    """The menu's entry."""
    return data / "applications" / FILE


def _metainfo(data: Path) -> Path:
    return data / "metainfo" / METAINFO


def _scalable(data: Path) -> Path:
    return data / "icons" / "hicolor" / "scalable" / "apps" / "tandem.svg"


def _icon(data: Path, size: int) -> Path:
    return data / "icons" / "hicolor" / f"{size}x{size}" / "apps" / "tandem.png"


def _check_platform(platform: str) -> None:
    if platform in ("win32", "darwin"):
        name = "Tandem.bat" if platform == "win32" else "Tandem.command"
        raise TandemError(
            code="no-desktop-entries",
            what="Desktop entries belong to Linux desktops.",
            fix=f"Double-click {RESOURCES / 'launchers' / name} instead, or make a shortcut to it.",
        )


def _refresh(data: Path) -> None:
    """Desktops notice changes on their own; these commands, if installed, make it faster."""
    for command in (
        ("update-desktop-database", "-q", str(data / "applications")),
        ("gtk-update-icon-cache", "-q", "-t", "-f", str(data / "icons" / "hicolor")),
    ):
        program = shutil.which(command[0])
        if program is None:
            continue
        try:
            subprocess.run(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=REFRESH_LIMIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
