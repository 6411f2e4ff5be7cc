"""What goes into the frozen program in addition to its imports, and what stays out."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

STDLIB = Path(sysconfig.get_path("stdlib"))
_NOT_FOR_SCRIPTS = {
    "antigravity",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "this",
    "tkinter",
    "turtle",
}
_NOT_FOR_SCRIPTS |= {"_tkinter", "turtledemo", "venv", "test", "tests", "__main__"}

EXCLUDED = (
    # For building and testing only.
    *("PyInstaller", "_pytest", "hypothesis", "mypy", "pip", "pytest", "pytestqt", "ruff", "setuptools"),
    # Training reads no C headers.
    "clang",
    # Other GUI and machine learning frameworks, which libraries import if they are installed.
    *("IPython", "PyQt5", "PyQt6", "PySide2", "jax", "matplotlib", "_tkinter", "tkinter", "torch"),
    *("PySide6.QtDesigner", "PySide6.QtPrintSupport", "PySide6.QtQml", "PySide6.QtQuick", "PySide6.QtSql"),
    *("PySide6.QtQuickWidgets", "PySide6.QtTest", "pyqtgraph.examples", "pyqtgraph.opengl"),
)

QT_PLUGINS = {
    "iconengines": ("*qsvgicon*",),
    "imageformats": ("*qico*", "*qjpeg*", "*qsvg*"),
    "platforminputcontexts": ("*compose*", "*ibus*"),
    "platforms": ("*qcocoa*", "*qoffscreen*", "*qwayland*", "*qwindows*", "*qxcb*"),
    "platformthemes": ("*xdgdesktopportal*",),
    "styles": ("*",),
    "wayland-decoration-client": ("*",),
    "wayland-graphics-integration-client": ("*qt-plugin-wayland-egl*",),
    "wayland-shell-integration": ("*xdg-shell*",),
    "xcbglintegrations": ("*",),
}
"""Kept Qt plugins by kind; kinds not listed are kept whole. Our window draws pixels, pictures and SVG."""

_QT_LIBRARIES_LEFT_OUT = ("*Qt6Pdf*", "*Qt6Qml*", "*Qt6Quick*", "*Qt6VirtualKeyboard*", "*Qt6EglFS*")
_LEFT_BEHIND = (
    "libatk-*",
    "libcairo*",
    "libdatrie*",
    "libfribidi*",
    "libgdk*",
    "libgtk*",
    "libpango*",
    "libthai*",
)
"""Needed only by GTK's theme plugin, which would load the desktop's own GTK with our libraries, and crash."""

_WRITTEN_BY_RUNS = ("*.keras", "*.pyc", "*/__pycache__/*")


def stdlib_modules(folder: Path = STDLIB) -> list[str]:
    """The whole standard library: which parts scripts will import is unknown."""
    found = {*_modules(folder, ""), *_modules(folder / "lib-dynload", "")}
    return sorted(name for name in found if name.partition(".")[0] in sys.stdlib_module_names)


def _modules(folder: Path, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir() if folder.is_dir() else ():
        name = entry.name.partition(".")[0]
        if name in _NOT_FOR_SCRIPTS or not name.isidentifier():
            continue
        if (entry / "__init__.py").is_file():
            yield f"{prefix}{name}"
            yield from _modules(entry, f"{prefix}{name}.")
        elif entry.suffix in (".py", ".so", ".pyd") and name != "__init__":
            yield f"{prefix}{name}"


def trainer_modules(root: Path) -> list[str]:
    """Found by file name: PyInstaller's own way would import TensorFlow once more."""
    return sorted({*_modules(root / "core" / "trainer", "core.trainer."), "core.trainer.__main__"})


def resources(folder: Path) -> list[tuple[str, str]]:
    """(file, folder in the program) of everything that belongs to the program, not what a run left there."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".py")
    examples = (path for path in sorted(folder.glob("examples/**/*.py")))
    kept = [path for path in (*files, *examples) if not any(fnmatch(str(path), w) for w in _WRITTEN_BY_RUNS)]
    return [(str(path), str(path.parent.relative_to(folder.parent))) for path in kept]


def is_wanted(destination: str) -> bool:
    """Whether a collected file stays. ``destination``: its path inside the program."""
    path = Path(destination)
    if any(fnmatch(path.name, pattern) for pattern in (*_QT_LIBRARIES_LEFT_OUT, *_LEFT_BEHIND)):
        return False
    parts = path.parts
    if "PySide6" in parts and "translations" in parts:
        return False
    if "PySide6" in parts and "plugins" in parts:
        kind = parts[parts.index("plugins") + 1]
        return any(fnmatch(path.name, pattern) for pattern in QT_PLUGINS.get(kind, ()))
    return True


def wanted(collected: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Filters PyInstaller's (destination, source, kind)."""
    return [entry for entry in collected if is_wanted(entry[0])]
