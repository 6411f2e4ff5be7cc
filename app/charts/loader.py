"""Loads numpy and pyqtgraph without freezing the window: numpy in a thread, pyqtgraph in small pieces.

pyqtgraph takes about a second and must be imported on the GUI thread (elsewhere it crashed), so pending
events are handled between its modules' imports. GUI thread, never before the first paint.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import shiboken6
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal
from PySide6.QtGui import QImage

BITE_S = 0.012
_TOPIC = "pyqtgraph"
_WITHOUT_QT = (
    *("numpy", "numpy.typing", "xml.etree.ElementTree", "inspect", "subprocess", "ctypes", "json", "mmap"),
    *("cProfile", "pydoc", "sysconfig", "multiprocessing.connection", "multiprocessing.util"),
)
"""pyqtgraph's imports from other packages."""
_WRAPPED = ("PySide6.QtCore", "PySide6.QtGui", "PySide6.QtWidgets")
"""pyqtgraph takes every class of these at once, and each is only created on first use."""


class Loader(QObject):
    """Anybody who needs charts may call ``load``; all callers are notified once they are loaded."""

    _beside_done = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[QObject, Callable[[], None]]] = []
        self._loading = False
        self._touched: Iterator[None] = iter(())
        self._beside_done.connect(self._warm)

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

    def _warm(self) -> None:
        self._touched = _touch_classes()
        self._warm_on()

    def _warm_on(self) -> None:
        until_s = time.perf_counter() + BITE_S
        for _ in self._touched:
            if time.perf_counter() > until_s:
                QTimer.singleShot(0, self._warm_on)
                return
        self._import()

    def _import(self) -> None:
        pause = _Pause()
        sys.meta_path.insert(0, pause)
        try:
            importlib.import_module(_TOPIC)
        finally:
            sys.meta_path.remove(pause)
            self._loading = False
        waiting, self._waiting = self._waiting, []
        for owner, then in waiting:
            if shiboken6.isValid(owner):
                then()


class _Pause:
    """An import finder that finds nothing. For each pyqtgraph module it first lets the window handle its
    events."""

    def __init__(self) -> None:
        self._last_s = time.perf_counter()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name.startswith((_TOPIC, "PySide6.")) and time.perf_counter() - self._last_s > BITE_S:
            QCoreApplication.processEvents()
            self._last_s = time.perf_counter()


def _load_picture_readers() -> None:
    """For the first image file Qt loads the readers of all formats, which takes longer than a frame."""
    found = importlib.util.find_spec(_TOPIC)
    for folder in found.submodule_search_locations or () if found is not None else ():
        QImage(str(Path(folder) / "icons" / "auto.png"))


def _touch_classes() -> Iterator[None]:
    for name in _WRAPPED:
        module = importlib.import_module(name)
        for member in dir(module):
            getattr(module, member, None)
            yield


_loader: Loader | None = None


def load(owner: QObject, then: Callable[[], None]) -> None:
    """See ``Loader.load``; one loader for the whole process."""
    global _loader
    if _loader is None:
        _loader = Loader()
    _loader.load(owner, then)
