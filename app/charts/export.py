"""Saves plots: the visible part as PNG or SVG, its points as CSV."""

from __future__ import annotations

import csv
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from app.charts.curve import less
from app.charts.picture import Picture
from core.report.points import Axis, CurveKey, Points
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


class Table(NamedTuple):
    """``curves``: each with its run's name and the points to subtract along ``axis``, those of the run
    ``base``, if any."""

    curves: Sequence[tuple[str, CurveKey, Points, Points | None]]
    axis: Axis
    base: str = ""


def save_csv(table: Table, path: Path, done: Callable[[Problem | None], None]) -> threading.Thread:
    """Runs in its own thread. ``done`` is called there, once, with the problem if any."""
    value = f"difference to {table.base}" if table.base else HEADER[-1]
    rows = [
        (
            *(_inert(run), _inert(str(key.member)), _inert(key.metric)),
            "validation" if key.validation else "training",
            points,
            base,
            len(points),
        )
        for run, key, points, base in table.curves
    ]

    def write() -> None:
        try:
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow((*HEADER[:-1], value))
                for *names, points, base, count in rows:
                    values = points.values
                    if base is not None:  # of runs that are over: their points grow no more
                        x = np.array(points.along(table.axis))
                        values = less(base, table.axis, x, np.array(values)).tolist()
                    for at in range(count):
                        if base is not None and math.isnan(values[at]):
                            continue
                        place = round(points.places[at], 4)
                        writer.writerow(
                            (*names, int(points.steps[at]), place, points.seconds[at], values[at])
                        )
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
