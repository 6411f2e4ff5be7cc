"""Plots as files: a picture as PNG or SVG, the points as CSV. Imports numpy: for when it is asked for."""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from app.charts.picture import Scene, paint
from app.charts.points import RunPoints
from core.vocabulary.errors import Problem

HEADER = ("run", "member", "metric", "set", "step", "seconds", "value")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a name that begins so."""


def save_png(what: Scene, path: Path) -> Problem | None:
    """In twice the size: it is for a report, not for this screen. May run beside the GUI thread."""
    image = QImage(what.size * 2, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(2)
    painter = QPainter(image)
    paint(what, painter)
    painter.end()
    return None if image.save(str(path), "PNG") else _not_saved(path, "")  # type: ignore[call-overload]


def save_svg(what: Scene, path: Path) -> Problem | None:
    """By Qt's own generator; pyqtgraph's fails with these versions of Qt."""
    from PySide6.QtSvg import QSvgGenerator

    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(what.size)
    generator.setViewBox(QRectF(0, 0, what.size.width(), what.size.height()))
    generator.setTitle(what.title)
    painter = QPainter()
    if not painter.begin(generator):
        return _not_saved(path, "")
    paint(what, painter)
    painter.end()
    return None


def save_csv(
    sources: Sequence[tuple[str, RunPoints]], path: Path, done: Callable[[Problem | None], None]
) -> threading.Thread:
    """In a thread of its own. ``done`` is called there, once, with what went wrong."""
    rows = [
        (
            run,
            str(key.member),
            key.metric,
            "validation" if key.validation else "training",
            points,
            len(points),
        )
        for run, curves in sources
        for key, points in curves.curves.items()
    ]

    def write() -> None:
        try:
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(HEADER)
                for run, member, metric, kind, points, count in rows:
                    names = (_inert(run), _inert(member), _inert(metric), kind)
                    for index in range(count):
                        writer.writerow(
                            (*names, int(points.steps[index]), points.seconds[index], points.values[index])
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
