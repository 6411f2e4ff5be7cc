"""One metric's plot: curves, axes, pan and zoom. Imports pyqtgraph, so it is imported when first shown."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFontMetrics, QGuiApplication, QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import theme
from app.charts.band import Band
from app.charts.curve import Axis, Curve, Look, logarithms
from app.charts.series import MOST, Floats
from app.widgets.labels import ElidedLabel, Label, name_for_readers

_LABELLED = (1, 2, 5)
LABEL_CHARACTERS = 14
"""A label of the run's axis stands in so much room: more of them would be a row of digits."""


class ValueAxis(pg.AxisItem):  # type: ignore[misc]
    """On a logarithmic scale it labels 1, 2 and 5 of a decade: nine numbers would lie over each other."""

    def logTickStrings(self, values: Sequence[float], scale: float, spacing: float | None) -> list[str]:
        words: list[str] = super().logTickStrings(values, scale, spacing)
        some = [
            text if round(10 ** (value % 1)) in (*_LABELLED, 10) else ""
            for text, value in zip(words, values, strict=True)
        ]
        return some if sum(map(bool, some)) > 1 else words


class RunAxis(pg.AxisItem):  # type: ignore[misc]
    """How far a run was: in steps, which are ``whole``, or in seconds. Neither is ever less than zero."""

    def __init__(self) -> None:
        super().__init__("bottom")
        self.whole = True
        self.room = QFontMetrics(QGuiApplication.font()).averageCharWidth() * LABEL_CHARACTERS
        """Pixels from one label to the next, at least."""

    def tickSpacing(self, left: float, right: float, pixels: float) -> list[tuple[float, float]]:
        """One level, by 1, 2 or 5 of a decade: pyqtgraph's own has three, and labels two of them."""
        least = (right - left) * self.room / max(pixels, 1.0)
        if not (math.isfinite(least) and least > 0):
            return [(1.0, 0.0)]
        decade = 10 ** math.floor(math.log10(least))
        spacing = next(decade * number for number in (*_LABELLED, 10) if decade * number >= least)
        return [(max(1.0, spacing) if self.whole else spacing, 0.0)]

    def tickValues(self, left: float, right: float, pixels: float) -> list[tuple[float, list[float]]]:
        levels = super().tickValues(left, right, pixels)
        return [(spacing, [value for value in values if value >= 0]) for spacing, values in levels]


FAINT = 0.3
"""How much of its colour a raw line keeps where a smoothed one lies over it."""
MARGIN = 0.06
LEFT_CHARACTERS = 9
MOST_POWER = 300
BAND_APART = 3
"""Pixels between two corners of a band: at 1 it takes twice as long to fill and looks the same."""
_KEYS = {
    Qt.Key.Key_Left: (-0.2, 1.0),
    Qt.Key.Key_Right: (0.2, 1.0),
    Qt.Key.Key_Plus: (0.0, 0.7),
    Qt.Key.Key_Equal: (0.0, 0.7),
    Qt.Key.Key_Minus: (0.0, 1 / 0.7),
}
"""What a key does to the x axis: shift by parts of its length, factor of its length."""

_NOTHING: tuple[Floats, Floats] = (np.empty(0), np.empty(0))
_Items = tuple[Band, pg.PlotCurveItem, pg.PlotCurveItem, pg.ScatterPlotItem]
"""Of one curve: the extent of very many points, the raw line, the line, dots."""


class Canvas(pg.PlotWidget):  # type: ignore[misc]
    """pyqtgraph's own, but for the time its painting takes and keys that move it."""

    moved = Signal()

    def __init__(self) -> None:
        # Its menu alone would take a third of the time.
        super().__init__(
            background=None,
            axisItems={"left": ValueAxis("left"), "bottom": RunAxis()},
            enableMenu=False,
        )
        self.paint_s = 0.0
        self._resized = QTimer(self, singleShot=True)
        self._resized.timeout.connect(lambda: super(Canvas, self).resizeEvent(None))
        self.hideButtons()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.getPlotItem().vb.sigRangeChangedManually.connect(lambda *_: self.moved.emit())

    def paintEvent(self, event: QPaintEvent) -> None:
        began_s = time.thread_time()
        super().paintEvent(event)
        self.paint_s += time.thread_time() - began_s

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """Once for all the sizes that a turn brings: a card that fills line by line has many, and with each
        pyqtgraph makes its axes anew."""
        if event is None:  # pyqtgraph's own call, while it is made
            super().resizeEvent(None)
        else:
            self._resized.start(0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in _KEYS:
            super().keyPressEvent(event)
            return
        shift, factor = _KEYS[Qt.Key(event.key())]
        left, right = self.viewRange()[0]
        middle, half = (left + right) / 2 + shift * (right - left), (right - left) * factor / 2
        self.setXRange(middle - half, middle + half, padding=0)
        self.moved.emit()


class Plot(QWidget):
    """``moved``: somebody panned or zoomed, so it follows no more until ``follow``."""

    moved = Signal()
    stale = Signal()
    """It shows another part or size now: ``redraw`` it soon."""

    def __init__(self, metric: str) -> None:
        super().__init__()
        self.shown = metric
        self.following = True
        self._fresh = True
        """What is seen is to fit tightly, as after another look."""
        self.curves: list[Curve] = []
        self._items: list[_Items] = []
        self._look = Look()
        self._labelled: tuple[Axis, bool] | None = None
        self.canvas = Canvas()
        self.flag = Label("", "bad", wraps=True)
        self.flag.hide()
        self._title = ElidedLabel(metric, "heading")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        for piece in (self._title, self.canvas, self.flag):
            layout.addWidget(piece, 1 if piece is self.canvas else 0)
        name_for_readers(
            self.canvas, f"Plot of {metric}", "Arrow keys move along the axis, plus and minus zoom."
        )
        self.canvas.moved.connect(self._on_moved)
        self.canvas.getPlotItem().vb.sigXRangeChanged.connect(lambda *_: self._on_range())
        self.canvas.getPlotItem().vb.sigResized.connect(lambda *_: self.stale.emit())
        # Room for half of the topmost number, which would be cut off.
        edge = self.fontMetrics().height() // 2
        plot = self.canvas.getPlotItem()
        plot.layout.setContentsMargins(0, edge, edge, 0)
        # Of a fixed size: an axis that fits itself to its numbers is painted twice for each new range.
        plot.getAxis("left").setWidth(self.fontMetrics().averageCharWidth() * LEFT_CHARACTERS)
        plot.getAxis("bottom").setHeight(round(self.fontMetrics().height() * 2.6))
        for axis in (plot.getAxis("left"), plot.getAxis("bottom")):
            axis.enableAutoSIPrefix(False)
        self.colour()

    def show_curves(self, curves: Sequence[Curve], look: Look) -> None:
        """From now on these, made ready from their first point; the same as before only change colour."""
        if look == self._look and list(map(_lasting, curves)) == list(map(_lasting, self.curves)):
            for before, curve in zip(self.curves, curves, strict=True):
                before.colour = curve.colour
            self.colour()
            return
        for items in self._items:
            for item in items:
                self.canvas.removeItem(item)
        self.curves = list(curves)
        self._items = [self._new_items() for _ in self.curves]
        self._begin(look)

    def wear(self, look: Look) -> None:
        """Draw by another look, and all of it: a part that was zoomed to lies elsewhere now."""
        self._begin(look)
        self.follow()

    def _begin(self, look: Look) -> None:
        self._look = look
        for curve in self.curves:
            curve.begin(look)
        self.colour()

    def follow(self) -> None:
        self.following = self._fresh = True
        self.stale.emit()

    def catch_up(self) -> bool:
        """True once every point that has come is made ready."""
        return not [curve for curve in self.curves if not curve.catch_up(self._look.axis)]

    def redraw(self) -> None:
        """Draws what is ready. What follows moves to show everything."""
        view = self.canvas.getPlotItem().vb
        self._label_axes()
        if self.following and (span := self._span()) is not None:
            self._follow_x(*span)
        left, right = view.viewRange()[0]
        columns = max(50, int(view.width()))
        low, high = np.inf, -np.inf
        for curve, (band, faint, line, dots) in zip(self.curves, self._items, strict=True):
            raw = curve.raw.drawn(left, right, columns, apart=BAND_APART)
            lows, highs = (
                (logarithms(raw.low), logarithms(raw.high)) if self._look.log else (raw.low, raw.high)
            )
            if len(lows):
                low, high = np.fmin(low, np.fmin.reduce(lows)), np.fmax(high, np.fmax.reduce(highs))
            over = raw if curve.smooth is None else curve.smooth.drawn(left, right, columns, apart=2)
            middle = logarithms(over.middle) if self._look.log else over.middle
            _draw(line, over.x, middle)
            _draw(faint, *((raw.x, lows) if curve.smooth is not None and not raw.dense else _NOTHING))
            band.show_extent(*((raw.x, lows, highs) if raw.dense else (*_NOTHING, _NOTHING[0])))
            few = len(curve.raw) <= columns // 8
            at, value = _alone(curve, self._look) if few else _NOTHING
            if len(at) or len(dots.data):
                dots.setData(x=at, y=value)
        if self.following and low <= high:
            self._follow_y(low, high)
        self._fresh = False
        self._show_flag()

    def _follow_x(self, left: float, right: float) -> None:
        """In strides: each new range makes the axis draw its numbers anew, which takes longer than the
        curves."""
        view = self.canvas.getPlotItem().vb
        seen_left, seen_right = view.viewRange()[0]
        span = right - left
        fits = seen_left <= left <= seen_left + 0.1 * span and right <= seen_right <= right + 0.2 * span
        if self._fresh or not fits:
            view.setXRange(left - 0.01 * span, right + (0.01 if self._fresh else 0.1) * span, padding=0)

    def _follow_y(self, low: float, high: float) -> None:
        view = self.canvas.getPlotItem().vb
        seen_low, seen_high = view.viewRange()[1]
        fits = seen_low <= low and high <= seen_high and (high - low) > 0.7 * (seen_high - seen_low)
        if self._fresh or not fits:
            if low == high == 0:
                high = 1.0  # nothing says how large it will be, but hardly a metric falls below zero
            room = (high - low) * MARGIN or abs(high) * MARGIN
            view.setYRange(low - room, high + room, padding=0)

    def _label_axes(self) -> None:
        """Only with what is drawn by it: a range of ordinary numbers overflows as powers of ten."""
        if self._labelled != (self._look.axis, self._look.log):
            self._labelled = (self._look.axis, self._look.log)
            plot = self.canvas.getPlotItem()
            plot.setLabel("bottom", "step" if self._look.axis == "step" else "seconds")
            plot.getAxis("bottom").whole = self._look.axis == "step"
            plot.getAxis("left").setLogMode(self._look.log)
            most = MOST_POWER if self._look.log else MOST
            plot.vb.setLimits(yMin=-most, yMax=most)

    def take_paint_s(self) -> float:
        """Seconds of this thread that painting took since the last call."""
        spent, self.canvas.paint_s = self.canvas.paint_s, 0.0
        return spent

    def colour(self) -> None:
        """By the theme of the moment."""
        shades = theme.colours()
        self.canvas.setBackground(shades.panel)
        for name in ("left", "bottom"):
            axis = self.canvas.getPlotItem().getAxis(name)
            axis.setPen(shades.line)
            axis.setTextPen(shades.faint)
        for curve, (band, faint, line, dots) in zip(self.curves, self._items, strict=True):
            colour = pg.mkColor(curve.colour)
            style = Qt.PenStyle.DashLine if curve.dashed else Qt.PenStyle.SolidLine
            line.setPen(pg.mkPen(colour, width=1, style=style))
            dots.setBrush(colour)
            under = _mixed(curve.colour, shades.panel)
            faint.setPen(pg.mkPen(under, width=1))
            band.paint_in(under)

    def _new_items(self) -> _Items:
        items = (
            Band(),
            pg.PlotCurveItem(),
            pg.PlotCurveItem(),
            pg.ScatterPlotItem(size=5, pen=None),
        )
        for item in items:
            self.canvas.addItem(item, ignoreBounds=True)
        items[0].setZValue(-2)
        items[1].setZValue(-1)
        return items

    def _span(self) -> tuple[float, float] | None:
        spans = [span for curve in self.curves if (span := curve.span) is not None]
        if not spans:
            return None
        left, right = min(span[0] for span in spans), max(span[1] for span in spans)
        return (left, right) if right > left else (left - 0.5, right + 0.5)

    def _show_flag(self) -> None:
        bad = []
        for curve in self.curves:
            index = curve.points.first_bad
            if index is not None:
                step = int(curve.points.steps[index])
                bad.append(f"{curve.name} is {_word(curve.points.values[index])} from step {step:,} on")
        self.flag.say("; ".join(bad))
        self.flag.setVisible(bool(bad))

    def _on_moved(self) -> None:
        self.following = False
        self.moved.emit()

    def _on_range(self) -> None:
        if not self.following:
            self.stale.emit()


def _draw(item: pg.PlotCurveItem, x: Floats, y: Floats) -> None:
    whole = not np.isnan(y.sum())
    # Told that no number is missing, pyqtgraph need not look for gaps itself.
    item.setData(x, y, connect="all" if whole else "finite", skipFiniteCheck=whole)


def _mixed(colour: str, ground: str) -> QColor:
    """Opaque: blending every pixel of a faint line would double the time that it takes."""
    over, under = QColor(colour), QColor(ground)
    parts = zip(over.getRgb()[:3], under.getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(FAINT * a + (1 - FAINT) * b) for a, b in parts))


def _alone(curve: Curve, look: Look) -> tuple[Floats, Floats]:
    """Points to be marked by dots: an epoch's, and those of a run that has hardly begun."""
    if not curve.dashed and len(curve.raw) > 1:
        return _NOTHING
    y = logarithms(curve.raw.y) if look.log else curve.raw.y
    finite = np.isfinite(y)
    return curve.raw.x[finite], y[finite]


def _lasting(curve: Curve) -> tuple[int, str, bool]:
    return id(curve.points), curve.name, curve.dashed


def _word(value: float) -> str:
    return "NaN" if value != value else "infinite"
