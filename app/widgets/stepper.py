"""A run's startup: its steps side by side, each with its duration."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy

from app import theme
from app.models.startup import StartupStep
from app.widgets.canvas import Painted, write
from core.vocabulary import units

DOT = 14
LEAST_CHARACTERS = 9
_SAID = {"done": "done", "now": "under way", "ahead": "to come"}


class Stepper(Painted):
    """Painted by hand; a screen reader gets it as one sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[StartupStep] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_steps(self, steps: Sequence[StartupStep]) -> None:
        self.steps = list(steps)
        self.setAccessibleName(", ".join(f"{step.name} {_SAID[step.state]}" for step in steps))
        self.update()

    def text(self) -> str:
        return self.accessibleName()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * LEAST_CHARACTERS * 5, DOT + 6 + 2 * metrics.height())

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, shades = QPainter(self), theme.colours()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width = self.width() / max(1, len(self.steps))
        for number, step in enumerate(self.steps):
            left = number * width
            centre = QPointF(left + DOT / 2 + 1, DOT / 2 + 1)
            reached = step.state != "ahead"
            colour = QColor({"done": shades.good, "now": shades.accent, "ahead": shades.line}[step.state])
            if number + 1 < len(self.steps):
                painter.setPen(QPen(QColor(shades.good if step.state == "done" else shades.line), 2))
                painter.drawLine(centre + QPointF(DOT / 2 + 4, 0), QPointF(left + width - 4, centre.y()))
            painter.setPen(QPen(colour, 2))
            painter.setBrush(colour if step.state == "done" else QColor(shades.panel))
            painter.drawEllipse(centre, DOT / 2, DOT / 2)
            if step.state == "done":
                _tick(painter, centre, QColor(shades.panel))
            elif step.state == "now":
                painter.setBrush(colour)
                painter.drawEllipse(centre, DOT / 5, DOT / 5)
            high = painter.fontMetrics().height()
            line = QRectF(round(left), DOT + 6, round(width) - 4, high)
            write(painter, line, step.name, shades.text if reached else shades.faint)
            took = units.clock(step.took_s) if reached and step.took_s is not None else ""
            write(painter, line.translated(0, high), took, shades.faint)


def _tick(painter: QPainter, centre: QPointF, colour: QColor) -> None:
    painter.setPen(QPen(colour, 2))
    points = [centre + QPointF(x, y) for x, y in ((-3.5, 0.0), (-1.0, 2.8), (3.6, -2.8))]
    painter.drawPolyline(points)
