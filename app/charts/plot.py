"""One metric's plot: curves, axes, pan and zoom. Imports pyqtgraph, so it is imported when first shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import theme
from app.charts.band import Band
from app.charts.canvas import Canvas
from app.charts.curve import Look, PlotCurve, extent, logarithms
from app.charts.grid import Grid
from app.charts.legend import Legend
from app.charts.marks import END_CHARACTERS, Marks, TurnMark
from app.charts.readout import bad_marks, bad_words, best_mark, cursor_at, end_marks, said_at_end
from app.charts.series import MOST, Floats
from app.widgets.buttons import button
from app.widgets.card import row
from app.widgets.labels import ElidedLabel, Label, name_for_readers, set_tooltip
from core.report.points import Axis

LINE = 1.75
"""Line width in screen pixels at scale 1. Qt does not scale a pen whose width is constant under zoom."""
STRONG = 2
"""Times as wide for a line that stands out."""
MARGIN = 0.06
TITLE_CHARACTERS = 12
"""Minimum characters kept of a metric's name, however long the legend beside it is."""
LEFT_CHARACTERS = 9
MOST_POWER = 300
LEAST_PART = 1e-6
"""Smallest part of a run one can zoom to."""
BAND_APART = 3
"""Pixels between two corners of a band: 1 takes twice as long to fill and looks the same."""
LINE_APART = 2
"""Pixels between two points of a line: the line's own width."""
_NEAR = 8
"""Pixels beyond a curve's end at which the pointer still selects its last point."""
_PROBES = 48
"""Number of places checked for a curve under words."""
_NOTHING: tuple[Floats, Floats] = (np.empty(0), np.empty(0))
_Items = tuple[Band, pg.PlotCurveItem, pg.PlotCurveItem, pg.ScatterPlotItem]
"""One curve's items: the extent of very many points, the raw line, the line, dots."""


class Plot(QWidget):
    """``moved``: the user panned or zoomed, so it stops following until ``follow``; ``all_asked`` asks for
    that. ``enlarge_asked``: to full size, or back."""

    moved = Signal()
    all_asked = Signal()
    enlarge_asked = Signal()
    log_asked = Signal(bool)
    stale = Signal()
    """It now shows another part or size: ``redraw`` it soon."""

    def __init__(self, metric: str, bounds: tuple[float, float] | None = None) -> None:
        """``bounds``: fixed range of the value axis, whatever the curves are."""
        super().__init__()
        self.shown = metric
        self._bounds = bounds
        self.following = True
        self._fresh = True
        """Fit the visible part tightly, as after a change of look."""
        self.curves: list[PlotCurve] = []
        self._items: list[_Items] = []
        self._look = Look()
        self._labelled: tuple[Axis, bool] | None = None
        self._scale = 1.0
        self.canvas = Canvas()
        self.marks = Marks(self.canvas)
        self.marks.covers = self._covers
        self.legend = Legend()
        self.legend.hide()
        self.flag = Label("", "bad", wraps=True)
        self.flag.hide()
        self._title = ElidedLabel(metric, "heading", least=TITLE_CHARACTERS)
        self.log = button("Log", lambda: None, "quiet", name="log-scale")
        self.log.setCheckable(True)
        self.log.toggled.connect(self.log_asked)
        name_for_readers(self.log, f"Logarithmic scale of {metric}")
        self.enlarge = button("Enlarge", self.enlarge_asked.emit, "quiet", name="enlarge")
        self.show_enlarged(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        head = row(self._title, self.legend, self.log, self.enlarge, spacing=4)
        head.setStretchFactor(self._title, 1)
        head.setAlignment(self.legend, Qt.AlignmentFlag.AlignVCenter)
        layout.addLayout(head)
        self.log.setVisible(bounds is None)
        for piece in (self.canvas, self.flag):
            layout.addWidget(piece, 1 if piece is self.canvas else 0)
        name_for_readers(
            self.canvas, f"Plot of {metric}", "Arrow keys move along the axis, plus and minus zoom."
        )
        self.canvas.moved.connect(self._on_moved)
        self.canvas.seen.connect(self.stale)
        self.canvas.getPlotItem().vb.all_asked.connect(self.all_asked)
        self.canvas.getPlotItem().vb.sigXRangeChanged.connect(lambda *_: self._on_range())
        self.canvas.getPlotItem().vb.sigResized.connect(lambda *_: self.stale.emit())
        # Room for half of the topmost number, which would be cut off.
        edge = self.fontMetrics().height() // 2
        plot = self.canvas.getPlotItem()
        character = self.fontMetrics().averageCharWidth()
        ends = self.fontMetrics().horizontalAdvance("0" * END_CHARACTERS)
        plot.layout.setContentsMargins(0, edge, ends, 0)
        # Fixed width: an axis that fits its numbers is painted twice for each new range.
        plot.getAxis("left").setWidth(character * LEFT_CHARACTERS)
        for axis in (plot.getAxis("left"), plot.getAxis("bottom")):
            axis.enableAutoSIPrefix(False)
        plot.getAxis("bottom").setStyle(hideOverlappingLabels=False)  # it takes the first for cut off
        self._grid = Grid(plot)
        self._grid.setZValue(-3)
        self.canvas.addItem(self._grid, ignoreBounds=True)
        if bounds is not None:
            plot.getAxis("left").fixed = (bounds[0], sum(bounds) / 2, bounds[1])
        self.show_run_axis(True)
        self.colour()

    def show_curves(self, curves: Sequence[PlotCurve], look: Look) -> None:
        """Show these curves, prepared from their first point; the same curves as before only change
        colour."""
        if look == self._look and list(map(_lasting, curves)) == list(map(_lasting, self.curves)):
            for before, curve in zip(self.curves, curves, strict=True):
                before.colour, before.hidden, before.strong = curve.colour, curve.hidden, curve.strong
            self.colour()
            return
        for items in self._items:
            for item in items:
                self.canvas.removeItem(item)
        self.curves = list(curves)
        self._items = [self._new_items() for _ in self.curves]
        self._begin(look)

    def wear(self, look: Look) -> None:
        """Redraw everything with another look: a zoomed part now lies elsewhere."""
        self._begin(look)
        self.follow()

    def dress(self, look: Look) -> None:
        """Draw the visible part with another look."""
        self._begin(look)
        self._fresh = True

    def _begin(self, look: Look) -> None:
        self._look = look
        self.canvas.behind = True
        for curve in self.curves:
            curve.begin(look)
        self.colour()

    def follow(self) -> None:
        self.following = self._fresh = True
        self.stale.emit()

    def catch_up(self) -> bool:
        """True once every available point is prepared."""
        return not [curve for curve in self.curves if not curve.catch_up(self._look.axis)]

    @property
    def look(self) -> Look:
        return self._look

    def show_enlarged(self, enlarged: bool) -> None:
        self.enlarge.setText("Back" if enlarged else "Enlarge")
        name_for_readers(self.enlarge, "Show all plots" if enlarged else f"Enlarge the plot of {self.shown}")
        set_tooltip(self.enlarge, "Show all plots again (Esc)." if enlarged else "Show this plot alone.")

    def show_limits(self, left: float, right: float) -> None:
        """Limits of pan and zoom: all points lie between them."""
        least = (right - left) * LEAST_PART
        self.canvas.getPlotItem().vb.setLimits(xMin=left, xMax=right, minXRange=least)

    def show_run_axis(self, shown: bool) -> None:
        """Omit its numbers if the plot below has the same."""
        axis = self.canvas.getPlotItem().getAxis("bottom")
        axis.setStyle(showValues=shown)
        axis.showLabel(shown)
        height = self.fontMetrics().height()
        axis.setHeight(round(height * 2.6) if shown else height // 2)

    def show_range(self, left: float, right: float) -> None:
        """A plot beside it was moved: show the same part of the run with the next ``redraw``, and stop
        following."""
        self.following = False
        with QSignalBlocker(self):
            self.canvas.setXRange(left, right, padding=0)

    @property
    def range(self) -> tuple[float, float]:
        """The visible part of the run."""
        left, right = self.canvas.viewRange()[0]
        return float(left), float(right)

    def redraw(self, seen: tuple[float, float] | None = None) -> None:
        """Draws what is prepared. While following, shows ``seen`` of the run's axis, which all plots
        share."""
        view = self.canvas.getPlotItem().vb
        self.canvas.behind = False
        self._label_axes()
        if self._scale != self.canvas.devicePixelRatioF():
            self.colour()
        if self.following and seen is not None and seen != self.range:
            view.setXRange(*seen, padding=0)
        left, right = view.viewRange()[0]
        columns = max(50, int(view.width()))
        seen_values = list[Floats]()
        for curve, items in zip(self.curves, self._items, strict=True):
            for item in items:
                item.setVisible(not curve.hidden)
            if not curve.hidden:
                seen_values += self._draw(curve, items, left, right, columns)
        low, high = extent(seen_values, trimmed=self._look.trimmed)
        if self._bounds is not None or low <= high:
            self._follow_y(*(self._bounds or (low, high)))
        self._fresh = False
        # Not while it is painted: moving the curves then would have them painted again.
        self.canvas.scene().prepareForPaint()
        self.flag.say_or_hide(bad_words(self.shown, self.curves))
        self._show_marks()

    def _draw(
        self, curve: PlotCurve, items: _Items, left: float, right: float, columns: int
    ) -> tuple[Floats, Floats]:
        """Returns the least and largest drawn values, per column if there are many points."""
        band, faint, line, dots = items
        raw = curve.raw.drawn(left, right, columns // LINE_APART, apart=BAND_APART // LINE_APART)
        lows, highs = (logarithms(raw.low), logarithms(raw.high)) if self._look.log else (raw.low, raw.high)
        over = raw if curve.smooth is None else curve.smooth.drawn(left, right, columns // LINE_APART)
        middle = logarithms(over.middle) if self._look.log else over.middle
        _draw(line, over.x, middle)
        # Even an item without points has its cost in each frame.
        under = curve.smooth is not None and not raw.dense
        faint.setVisible(under)
        if under:
            _draw(faint, raw.x, lows)
        band.show_extent(*((raw.x, lows, highs) if raw.dense else (*_NOTHING, _NOTHING[0])))
        few = len(curve.raw) <= columns // 8
        at, value = _alone(curve, self._look) if few else _NOTHING
        dots.setVisible(len(at) > 0)
        if len(at):
            dots.setData(x=at, y=value)
        return lows, highs

    def point_at(self, x: float | None) -> None:
        """Puts the crosshair there; None removes it."""
        left, right = self.range
        near = (right - left) * _NEAR / max(1.0, self.canvas.area.width())
        found = cursor_at(x, self.curves, self._look, near) if x is not None else None
        self.marks.show_cursor(found)

    def show_turns(self, turns: Sequence[TurnMark], *, in_words: bool) -> None:
        """Marks where laptops left and returned."""
        self.marks.says_turns = in_words
        self.marks.show_turns(turns)

    def _covers(self, places: Sequence[QRectF]) -> Sequence[bool]:
        """Whether a curve is drawn in each of these parts of the canvas, in pixels, one below the other."""
        if not places:
            return []
        area, ((first, last), (least, most)) = self.canvas.area, self.canvas.viewRange()
        across, up = (last - first) / (area.width() or 1.0), (most - least) / (area.height() or 1.0)
        left = first + (places[0].left() - area.left()) * across
        right = left + places[0].width() * across
        tops = np.array([[most - (place.top() - area.top()) * up] for place in places])
        bottoms = np.array([[most - (place.bottom() - area.top()) * up] for place in places])
        covered = np.zeros(len(places), bool)
        for curve in self.curves:
            if curve.hidden:
                continue
            drawn = curve.raw.drawn(left, right, _PROBES)
            x, lows, highs = drawn.x, drawn.low, drawn.high
            if self._look.log:
                lows, highs = logarithms(lows), logarithms(highs)
            if len(x) > 1 and x[-1] >= left and x[0] <= right:
                inside = np.linspace(max(left, x[0]), min(right, x[-1]), _PROBES)
                inside = np.sort(np.concatenate((inside, x[(x >= left) & (x <= right)])))
                low, high = np.interp(inside, x, lows), np.interp(inside, x, highs)
                # Between two places the line takes all values in between.
                low, high = np.fmin(low[:-1], low[1:]), np.fmax(high[:-1], high[1:])
                covered |= ((high >= bottoms) & (low <= tops)).any(axis=1)
        return [bool(each) for each in covered]

    def _show_marks(self) -> None:
        ends = end_marks(self.curves, self._look)
        best = best_mark(self.shown, self.curves, self._look)
        self.marks.show_marks(ends, best, bad_marks(self.curves, self._look.axis))
        there = [curve for curve in said_at_end(self.curves) if curve.last is not None]
        said = "; ".join(f"{curve.name} {mark.words}" for curve, mark in zip(there, ends, strict=False))
        name_for_readers(self.canvas, f"Plot of {self.shown}: {said}" if said else f"Plot of {self.shown}")

    def _follow_y(self, low: float, high: float) -> None:
        view = self.canvas.getPlotItem().vb
        seen_low, seen_high = view.viewRange()[1]
        fits = seen_low <= low and high <= seen_high and (high - low) > 0.7 * (seen_high - seen_low)
        if self._fresh or not fits or not self.following:
            if low == high == 0:
                high = 1.0  # its maximum is unknown, but hardly any metric falls below zero
            room = (high - low) * MARGIN or abs(high) * MARGIN
            view.setYRange(low - room, high + room, padding=0)

    def _label_axes(self) -> None:
        """Changes the labels only together with the curves: a range of ordinary numbers overflows as
        powers of ten."""
        if self._labelled != (self._look.axis, self._look.log):
            self._labelled = (self._look.axis, self._look.log)
            plot = self.canvas.getPlotItem()
            plot.setLabel("bottom", self._look.axis)
            plot.getAxis("bottom").showLabel(plot.getAxis("bottom").style["showValues"])
            plot.getAxis("bottom").axis = self._look.axis
            plot.getAxis("left").setLogMode(self._look.log)
            most = MOST_POWER if self._look.log else MOST
            plot.vb.setLimits(yMin=-most, yMax=most)

    def take_paint_s(self) -> float:
        """Seconds this thread spent painting since the last call."""
        spent, self.canvas.paint_s = self.canvas.paint_s, 0.0
        return spent

    def colour(self, scale: float | None = None) -> None:
        """Applies the current theme. ``scale``: pixels of the paint device per window pixel."""
        shades = theme.colours()
        self._scale = scale = self.canvas.devicePixelRatioF() if scale is None else scale
        self.canvas.setBackground(shades.panel)
        self._grid.paint_in(QColor(theme.faded(shades.line, 0.6)))
        selection = self.canvas.getPlotItem().vb.rbScaleBox
        selection.setPen(pg.mkPen(shades.accent))
        chosen = QColor(shades.accent)
        chosen.setAlpha(40)
        selection.setBrush(chosen)
        for name in ("left", "bottom"):
            axis = self.canvas.getPlotItem().getAxis(name)
            axis.setPen(shades.line)
            axis.setTextPen(shades.faint)
        for curve, (band, faint, line, dots) in zip(self.curves, self._items, strict=True):
            colour = pg.mkColor(curve.colour)
            style = Qt.PenStyle.DashLine if curve.dashed else Qt.PenStyle.SolidLine
            width = LINE * scale * (STRONG if curve.strong else 1)
            line.setPen(pg.mkPen(colour, width=width, style=style))
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

    def _on_moved(self) -> None:
        self.following = False
        self.moved.emit()

    def _on_range(self) -> None:
        if not self.following:
            self.stale.emit()


def _draw(item: pg.PlotCurveItem, x: Floats, y: Floats) -> None:
    whole = not np.isnan(y.sum())
    # With "all", pyqtgraph need not look for gaps itself.
    item.setData(x, y, connect="all" if whole else "finite", skipFiniteCheck=whole)


def _alone(curve: PlotCurve, look: Look) -> tuple[Floats, Floats]:
    """Points to mark with dots: per-epoch points, and those of a run that has hardly begun."""
    if not curve.dashed and not curve.by_epoch and len(curve.raw) > 1:
        return _NOTHING
    y = logarithms(curve.raw.y) if look.log else curve.raw.y
    finite = np.isfinite(y)
    return curve.raw.x[finite], y[finite]


def _lasting(curve: PlotCurve) -> tuple[int, str, bool, int]:
    return id(curve.points), curve.name, curve.dashed, id(curve.base)
