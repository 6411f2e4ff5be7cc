"""Loads numpy and pyqtgraph without freezing the window: numpy in a thread, pyqtgraph in small pieces.

pyqtgraph takes about a second and must be imported on the GUI thread (elsewhere it crashed), so pending
events are handled between its modules' imports. GUI thread, never before the first paint.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import shiboken6
from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtGui import QImage

BITE_S = 0.012
_TOPIC = "pyqtgraph"
_WITHOUT_QT = (
    *("numpy", "numpy.typing", "xml.etree.ElementTree", "inspect", "subprocess", "ctypes", "json", "mmap"),
)
"""pyqtgraph's imports from other packages."""
_MIRRORS = {f"{_TOPIC}.Qt.{name}": f"PySide6.{name}" for name in ("QtCore", "QtGui", "QtWidgets")}
"""pyqtgraph copies every class of these, and each takes memory once it is touched."""
_NEEDED = frozenset(
    f"{_TOPIC}.{name}"
    for name in (
        *("colormap", "colors", "debug", "functions", "functions_qimage", "GraphicsScene", "icons", "Point"),
        *("Qt", "reload", "util", "WidgetGroup", "widgets", "graphicsItems"),
        *(f"widgets.{name}" for name in ("FileDialog", "GraphicsView", "PlotWidget")),
        *(f"graphicsItems.Graphics{name}" for name in ("Item", "Object", "Widget", "WidgetAnchor")),
        *(
            f"graphicsItems.{name}Item"
            for name in ("Axis", "BarGraph", "Button", "Infinite", "Label", "Legend")
        ),
        *(f"graphicsItems.{name}Item" for name in ("Plot", "PlotCurve", "PlotData", "Scatter", "Text")),
        *("graphicsItems.InfiniteLine", "graphicsItems.ItemGroup", "graphicsItems.UIGraphicsItem"),
        *("graphicsItems.ScatterPlotItem", "graphicsItems.ViewBox"),
    )
)
_WHOLE = tuple(
    f"{_TOPIC}.{name}."
    for name in ("colors", "GraphicsScene", "Qt", "util", "graphicsItems.PlotItem", "graphicsItems.ViewBox")
)
"""Packages of which every module is needed."""
_UNUSED = (f"{_TOPIC}.Qt.OpenGLHelpers",)
"""Exceptions of these."""
_NOT_HERE = ("PySide6.QtTest", "PySide6.QtOpenGLWidgets")
"""pyqtgraph does without."""
_STANDING_IN = ("PySide6.QtOpenGL", "cProfile")
"""Imported by what plots need, for what they do not: left out while pyqtgraph is imported."""


class Loader(QObject):
    """Anybody who needs charts may call ``load``; all callers are notified once they are loaded."""

    _beside_done = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[QObject, Callable[[], None]]] = []
        self._loading = False
        self._beside_done.connect(self._import)

    def load(self, owner: QObject, then: Callable[[], None]) -> None:
        """``then`` is called on the GUI thread if ``owner`` still lives; immediately if everything is
        loaded."""
        if _TOPIC in sys.modules and not self._loading:
            then()
            return
        self._waiting.append((owner, then))
        if not self._loading:
            self._loading = True
            threading.Thread(target=self._import_beside, name="charts-loading", daemon=True).start()

    def _import_beside(self) -> None:
        _load_picture_readers()
        for name in _WITHOUT_QT:
            importlib.import_module(name)
        with contextlib.suppress(RuntimeError):  # the window is gone
            self._beside_done.emit()

    def _import(self) -> None:
        try:
            import_pyqtgraph()
        finally:
            self._loading = False
        waiting, self._waiting = self._waiting, []
        for owner, then in waiting:
            if shiboken6.isValid(owner):
                then()


def import_pyqtgraph() -> None:
    """On the GUI thread: what plots need of it."""
    pieces = _Pieces()
    sys.meta_path.insert(0, pieces)
    try:
        importlib.import_module(_TOPIC)
    finally:
        sys.meta_path.remove(pieces)
        pieces.end()


class _Unneeded:
    """Stands for any class of an empty module: nothing is an instance of it."""


def _anything(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Unneeded


class _Pieces(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds pyqtgraph's modules while it is imported. Before each it lets the window handle its events.

    Those that no plot needs stay empty, and its copies of Qt's modules look names up when asked. This saves
    18 MB and two thirds of the time.
    """

    def __init__(self) -> None:
        self._last_s = time.perf_counter()
        self._hidden: list[ModuleType] = []
        self._standing_in: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.startswith((_TOPIC, "PySide6.")) and time.perf_counter() - self._last_s > BITE_S:
            QCoreApplication.processEvents()
            self._last_s = time.perf_counter()
        if name in _NOT_HERE:
            raise ImportError(name)
        if name in _STANDING_IN:
            self._standing_in.append(name)
        elif name not in (*_MIRRORS, *_UNUSED) and not self._is_empty(name):
            return None
        return ModuleSpec(name, self)

    def _is_empty(self, name: str) -> bool:
        return name.startswith(f"{_TOPIC}.") and name not in _NEEDED and not name.startswith(_WHOLE)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made = ModuleType(spec.name)
        if spec.name in _MIRRORS:
            mirrored = importlib.import_module(_MIRRORS[spec.name])
            made.__getattr__ = lambda name: getattr(mirrored, name)  # type: ignore[method-assign]
            # So that nothing is copied.
            mirrored.__dir__ = list  # type: ignore[method-assign]
            self._hidden.append(mirrored)
        else:
            made.__path__, made.__all__ = [], []  # type: ignore[attr-defined]
            made.__getattr__ = _anything  # type: ignore[method-assign]
        return made

    def exec_module(self, module: ModuleType) -> None:
        pass

    def end(self) -> None:
        for module in self._hidden:
            del module.__dir__
        for name in self._standing_in:
            del sys.modules[name]
            package, _, own = name.rpartition(".")
            if package:
                delattr(sys.modules[package], own)


def _load_picture_readers() -> None:
    """For the first image file Qt loads the readers of all formats, which takes longer than a frame."""
    found = importlib.util.find_spec(_TOPIC)
    for folder in found.submodule_search_locations or () if found is not None else ():
        QImage(str(Path(folder) / "icons" / "auto.png"))


_loader: Loader | None = None


def load(owner: QObject, then: Callable[[], None]) -> None:
    """See ``Loader.load``; one loader for the whole process."""
    global _loader
    if _loader is None:
        _loader = Loader()
    _loader.load(owner, then)
