"""Saves plots: the visible part as PNG or SVG, its points as CSV."""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from app.charts.picture import Picture
from core.report.points import CurveKey, Points
from core.vocabulary.errors import Problem

if TYPE_CHECKING:
    from PySide6.QtSvg import QSvgGenerator

HEADER = ("run", "member", "metric", "set", "step", "epoch", "seconds", "value")
SCALE = 2
"""Scale of a PNG: it is for a report, not for this screen."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets execute a name that begins with one of these."""


class PictureFile:
    """``painter`` paints into it; after it ends, ``save`` returns any problem. ``scale``: its pixels per
    screen pixel."""

    def __init__(self, what: Picture, path: Path) -> None:
        self._path = path
        self._image: QImage | None = None
        self._drawing: QSvgGenerator | None = None
        self.painter = QPainter()
        if path.suffix.lower() == ".svg":
            from PySide6.QtSvg import QSvgGenerator  # pyqtgraph's exporter fails with these versions of Qt

            self.scale, self._drawing = 1, QSvgGenerator()
            self._drawing.setFileName(str(path))
            self._drawing.setSize(what.size)
            self._drawing.setViewBox(QRectF(0, 0, what.size.width(), what.size.height()))
            self._drawing.setTitle(what.title)
            self.begun = self.painter.begin(self._drawing)
        else:
            self.scale, self._image = SCALE, QImage(what.size * SCALE, QImage.Format.Format_RGB32)
            self._image.setDevicePixelRatio(SCALE)
            self.begun = self.painter.begin(self._image)

    def save(self) -> Problem | None:
        """May run off the GUI thread."""
        saved = self.begun and (self._image is None or self._image.save(str(self._path), "PNG"))  # type: ignore[call-overload]
        return None if saved else _not_saved(self._path, "")


def save_csv(
    curves: Sequence[tuple[str, CurveKey, Points]], path: Path, done: Callable[[Problem | None], None]
) -> threading.Thread:
    """Runs in its own thread. ``curves``: each with the name of its run. ``done`` is called there, once,
    with the problem if any."""
    rows = [
        (
            *(_inert(run), _inert(str(key.member)), _inert(key.metric)),
            "validation" if key.validation else "training",
            points,
            len(points),
        )
        for run, key, points in curves
    ]

    def write() -> None:
        try:
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(HEADER)
                for *names, points, count in rows:
                    for at in range(count):
                        place = round(points.places[at], 4)
                        numbers = int(points.steps[at]), place, points.seconds[at], points.values[at]
                        writer.writerow((*names, *numbers))
        except OSError as error:
            done(_not_saved(path, error.strerror or type(error).__name__))
        else:
            done(None)

    thread = threading.Thread(target=write, name="csv-export")
    thread.start()
    return thread


def _inert(name: str) -> str:
    return f"'{name}" if name.startswith(_FORMULA) else name


def _not_saved(path: Path, why: str) -> Problem:
    reason = f" ({why})" if why else ""
    return Problem(
        code="export-failed",
        what=f"{path.name} could not be written in {path.parent}{reason}.",
        fix="Choose another folder, or see that there is room on the disk and that you may write there.",
    )
