"""One metric's plot: curves, axes, pan and zoom. Imports pyqtgraph, so it is imported when first shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import theme
from app.charts.band import Band
from app.charts.canvas import Canvas
from app.charts.curve import Axis, Curve, Look, logarithms
from app.charts.grid import Grid
from app.charts.legend import Legend
from app.charts.marks import Marks, TurnMark, end_room
from app.charts.readout import best_mark, cursor_at, end_marks
from app.charts.series import MOST, Floats
from app.widgets.card import row
from app.widgets.labels import ElidedLabel, Label, name_for_readers

LINE = 1.75
"""Of a line in pixels of the screen at scale 1. Qt does not scale a pen that stays as wide in every zoom."""
MARGIN = 0.06
TITLE_CHARACTERS = 12
"""That stay of a metric's name however long the legend beside it is."""
LEFT_CHARACTERS = 9
MOST_POWER = 300
BAND_APART = 3
"""Pixels between two corners of a band: at 1 it takes twice as long to fill and looks the same."""
LINE_APART = 2
"""Pixels between two points of a line: it is as wide."""
_PROBES = 48
"""Places at which it is looked whether a curve runs under words."""
_NOTHING: tuple[Floats, Floats] = (np.empty(0), np.empty(0))
_Items = tuple[Band, pg.PlotCurveItem, pg.PlotCurveItem, pg.ScatterPlotItem]
"""Of one curve: the extent of very many points, the raw line, the line, dots."""


class Plot(QWidget):
    """``moved``: somebody panned or zoomed, so it follows no more until ``follow``."""

    moved = Signal()
    stale = Signal()
    """It shows another part or size now: ``redraw`` it soon."""

    def __init__(self, metric: str, bounds: tuple[float, float] | None = None) -> None:
        """``bounds``: what is to be seen of the value axis, whatever the curves are."""
        super().__init__()
        self.shown = metric
        self._bounds = bounds
        self.following = True
        self._fresh = True
        """What is seen is to fit tightly, as after another look."""
        self.curves: list[Curve] = []
        self._items: list[_Items] = []
        self._look = Look()
        self._labelled: tuple[Axis, bool] | None = None
        self._scale = 1.0
        self.canvas = Canvas()
        self.marks = Marks(self.canvas)
        self.marks.covers = self._covers
        self.legend = Legend(at_right=True)
        self.legend.hide()
        self.flag = Label("", "bad", wraps=True)
        self.flag.hide()
        self._title = ElidedLabel(metric, "heading", least=TITLE_CHARACTERS)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(row(self._title, self.legend))
        for piece in (self.canvas, self.flag):
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
        character = self.fontMetrics().averageCharWidth()
        plot.layout.setContentsMargins(0, edge, end_room(self.fontMetrics()), 0)
        # Of a fixed size: an axis that fits itself to its numbers is painted twice for each new range.
        plot.getAxis("left").setWidth(character * LEFT_CHARACTERS)
        for axis in (plot.getAxis("left"), plot.getAxis("bottom")):
            axis.enableAutoSIPrefix(False)
        plot.getAxis("bottom").setStyle(hideOverlappingLabels=False)  # it takes the first one for cut off
        self._grid = Grid(plot)
        self._grid.setZValue(-3)
        self.canvas.addItem(self._grid, ignoreBounds=True)
        if bounds is not None:
            plot.getAxis("left").fixed = (bounds[0], sum(bounds) / 2, bounds[1])
        self.show_run_axis(True)
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

    @property
    def look(self) -> Look:
        return self._look

    def show_run_axis(self, shown: bool) -> None:
        """Its numbers are left out where the plot below has the same."""
        axis = self.canvas.getPlotItem().getAxis("bottom")
        axis.setStyle(showValues=shown)
        axis.showLabel(shown)
        height = self.fontMetrics().height()
        axis.setHeight(round(height * 2.6) if shown else height // 2)

    def show_range(self, left: float, right: float) -> None:
        """As another plot beside it was moved: the same part of the run, and it follows no more."""
        self.following = False
        self.canvas.setXRange(left, right, padding=0)

    @property
    def range(self) -> tuple[float, float]:
        """What of the run is seen."""
        left, right = self.canvas.viewRange()[0]
        return float(left), float(right)

    def redraw(self, span: tuple[float, float] | None = None) -> None:
        """Draws what is ready. What follows moves to show everything, or ``span`` of the run's axis."""
        view = self.canvas.getPlotItem().vb
        self._label_axes()
        if self._scale != self.canvas.devicePixelRatioF():
            self.colour()
        if self.following and (span := span or self.span) is not None:
            self._follow_x(*span)
        left, right = view.viewRange()[0]
        columns = max(50, int(view.width()))
        low, high = np.inf, -np.inf
        for curve, (band, faint, line, dots) in zip(self.curves, self._items, strict=True):
            raw = curve.raw.drawn(left, right, columns // LINE_APART, apart=BAND_APART // LINE_APART)
            lows, highs = (
                (logarithms(raw.low), logarithms(raw.high)) if self._look.log else (raw.low, raw.high)
            )
            if len(lows):
                low, high = np.fmin(low, np.fmin.reduce(lows)), np.fmax(high, np.fmax.reduce(highs))
            over = raw if curve.smooth is None else curve.smooth.drawn(left, right, columns // LINE_APART)
            middle = logarithms(over.middle) if self._look.log else over.middle
            _draw(line, over.x, middle)
            _draw(faint, *((raw.x, lows) if curve.smooth is not None and not raw.dense else _NOTHING))
            band.show_extent(*((raw.x, lows, highs) if raw.dense else (*_NOTHING, _NOTHING[0])))
            few = len(curve.raw) <= columns // 8
            at, value = _alone(curve, self._look) if few else _NOTHING
            if len(at) or len(dots.data):
                dots.setData(x=at, y=value)
        if self.following and (self._bounds is not None or low <= high):
            self._follow_y(*(self._bounds or (low, high)))
        self._fresh = False
        self._show_flag()
        self._show_marks()

    def point_at(self, x: float | None) -> None:
        """The crosshair stands there; None takes it away."""
        found = cursor_at(x, self.curves, self._look) if x is not None else None
        self.marks.show_cursor(found)

    def show_turns(self, turns: Sequence[TurnMark], *, in_words: bool) -> None:
        """Where laptops went and came."""
        self.marks.says_turns = in_words
        self.marks.show_turns(turns)

    def _covers(self, area: QRectF) -> bool:
        """Whether a curve is drawn in that part of the canvas, in pixels."""
        view = self.canvas.getPlotItem().vb
        corners = (view.mapSceneToView(area.topLeft()), view.mapSceneToView(area.bottomRight()))
        (left, top), (right, bottom) = ((corner.x(), corner.y()) for corner in corners)
        for curve in self.curves:
            series = curve.raw if curve.smooth is None else curve.smooth
            # One point to each side, too: the line runs on to them.
            first, last = np.searchsorted(series.x, (left, right))
            piece = slice(max(0, first - 1), last + 1)
            inside = np.linspace(left, right, _PROBES)
            if last + 1 - first > _PROBES * 4:
                piece = slice(max(0, first - 1), last + 1, (last - first) // _PROBES)
            x, y = series.x[piece], series.y[piece]
            if len(x) > 1 and x[-1] >= left and x[0] <= right:
                inside = inside[(inside >= x[0]) & (inside <= x[-1])]
                drawn = np.interp(inside, x, logarithms(y) if self._look.log else y)
                if ((drawn >= bottom) & (drawn <= top)).any():
                    return True
        return False

    def _show_marks(self) -> None:
        ends = end_marks(self.curves, self._look)
        best = best_mark(self.shown, self.curves, self._look)
        self.marks.show_marks(ends, best)
        said = "; ".join(f"{curve.name} {mark.words}" for curve, mark in zip(self.curves, ends, strict=False))
        name_for_readers(self.canvas, f"Plot of {self.shown}: {said}" if said else f"Plot of {self.shown}")

    def _follow_x(self, left: float, right: float) -> None:
        """In strides: each new range makes the axis draw its numbers anew, which takes longer than the
        curves."""
        if not right > left:
            left, right = left - 0.5, right + 0.5
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
            plot.setLabel("bottom", "step" if self._look.axis == "step" else "time")
            plot.getAxis("bottom").showLabel(plot.getAxis("bottom").style["showValues"])
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
        self._scale = scale = self.canvas.devicePixelRatioF()
        self.canvas.setBackground(shades.panel)
        self._grid.paint_in(QColor(theme.faded(shades.line, 0.6)))
        for name in ("left", "bottom"):
            axis = self.canvas.getPlotItem().getAxis(name)
            axis.setPen(shades.line)
            axis.setTextPen(shades.faint)
        for curve, (band, faint, line, dots) in zip(self.curves, self._items, strict=True):
            colour = pg.mkColor(curve.colour)
            style = Qt.PenStyle.DashLine if curve.dashed else Qt.PenStyle.SolidLine
            line.setPen(pg.mkPen(colour, width=LINE * scale, style=style))
            dots.setBrush(colour)
            under = QColor(theme.faded(curve.colour))
            faint.setPen(pg.mkPen(under, width=scale))
            band.paint_in(under)

    def _new_items(self) -> _Items:
        items = (
            Band(),
            pg.PlotCurveItem(),
            pg.PlotCurveItem(),
            pg.ScatterPlotItem(size=5, pen=None, useCache=False),
        )
        for item in items:
            self.canvas.addItem(item, ignoreBounds=True)
        items[0].setZValue(-2)
        items[1].setZValue(-1)
        return items

    @property
    def span(self) -> tuple[float, float] | None:
        spans = [span for curve in self.curves if (span := curve.span) is not None]
        if not spans:
            return None
        left, right = min(span[0] for span in spans), max(span[1] for span in spans)
        return left, right

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
