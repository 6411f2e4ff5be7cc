"""Plots of one or several overlaid runs, with their look, a legend and export. GUI thread."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.charts import loader
from app.charts.export_menu import ExportMenu
from app.charts.grid_of_plots import GridOfPlots, Slot
from app.charts.legend import Legend
from app.charts.lines import VALIDATION, PlotLines
from app.charts.look_bar import LookBar
from app.charts.picture import Picture
from app.charts.sources import Source, reach, strided
from app.widgets.labels import Label
from app.widgets.tab_order import tab_as_seen
from core.report.points import USES, CurveKey, by_use
from core.vocabulary.text import plain

if TYPE_CHECKING:
    from app.charts.curve import Look
    from app.charts.export import Table
    from app.charts.plot import Plot

LEAST_BETWEEN_S = 0.2
MOST_BETWEEN_S = 3.0
COST_PART = 0.003
"""Maximum share of time spent drawing: on two cores, drawing takes time from the training. No pause is
longer than ``MOST_BETWEEN_S``."""
PERCENT = (0.0, 100.0)
_OVER = object()
_COMING = "Drawing…"
_NOTHING_YET = "The first numbers show up here with the first step."


class ChartPanel(QWidget):
    """Shows ``sources``; call ``take_in`` after adding points. Draws nothing that is out of sight."""

    def __init__(self, empty: str = _NOTHING_YET) -> None:
        super().__init__()
        self.setAccessibleName("Plots")
        self.sources: list[Source] = []
        self.redraws = 0
        self.cost_s = 0.0
        """Smoothed cost of one redraw, in seconds of this thread."""
        self._keys: list[tuple[int, CurveKey]] | None = None
        self._lines = PlotLines([])
        self._hidden: set[str] = set()
        """Hidden legend names."""
        self._logs: set[str] = set()
        """Metrics on a logarithmic scale."""
        self._pieces: Iterator[None] | None = None
        """The rest of the arranging or drawing under way."""
        self._drawn = self._late = self._again = self._hurried = False
        self._ready = self._over = False
        self._last_s = 0.0
        self._range: tuple[float, float] | None = None
        """The range of the run's axis that all plots show; None: as tight as possible."""
        self._zoomed: tuple[float, float] | None = None
        """The range shown instead after a user moved a plot."""
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._redraw)
        self.bar = LookBar()
        self.bar.filter_changed.connect(self._rearrange)
        self.bar.look_changed.connect(self._wear)
        self.bar.trim_changed.connect(self._trim)
        self.bar.base_changed.connect(self._rearrange)
        self.bar.follow_asked.connect(self.follow)
        self.grid = GridOfPlots()
        self.grid.wanted.connect(self._redraw_soon)
        self.legend = Legend()
        self.legend.toggled.connect(self._toggle)
        self.legend.alone_asked.connect(self._show_alone)
        self._words = empty
        self.empty = Label(empty, "faint", wraps=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.export = ExportMenu(self, self._picture, self._make_ready, self._table)
        self.bar.end_with(self.export.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for piece in (self.bar, self.legend, self.empty, self.grid, self.export.said):
            layout.addWidget(piece, 1 if piece is self.grid else 0)
        self.show_sources([])

    def show_sources(self, sources: Sequence[Source]) -> None:
        """Show these runs, from their first point."""
        self.sources = list(sources)
        self._keys = self._pieces = self._range = self._zoomed = None
        self._hidden.clear()
        self._lines = PlotLines(self.sources)
        self.grid.clear()
        self.bar.show_runs([source.label for source in self.sources])
        self.bar.show_following(True)
        self._last_s = 0.0
        self._over = False
        self._show_whether_empty()
        self.take_in()

    def change_sources(self, sources: Sequence[Source]) -> None:
        """The same runs with more points, or some that come and go: what the user hides and zooms stays."""
        labels = [source.label for source in sources]
        if labels != [source.label for source in self.sources]:
            self.bar.show_runs(labels)
        self.sources = list(sources)
        self._rearrange()

    def show_coming(self) -> None:
        """Empty for now; the content is being read."""
        self.show_sources([])
        self.empty.say(_COMING)

    def take_in(self, *, over: bool = False) -> None:
        """There are new points: they are drawn soon, if visible. ``over``: the run is, so that drawing takes
        time from no training: from now on they are drawn at once."""
        self._over = self._over or over
        self._again = self._pieces is not None
        if self._seen() and (self._over or not self._timer.isActive()):
            between_s = min(MOST_BETWEEN_S, max(LEAST_BETWEEN_S, self.cost_s / COST_PART))
            wait_s = 0.0 if self._over else self._last_s + between_s - time.monotonic()
            self._timer.start(max(0, int(wait_s * 1000)))

    def follow(self) -> None:
        """Show everything again, including new points."""
        self._range = self._zoomed = None
        for plot in self.all_plots:
            plot.follow()
        self.bar.show_following(True)

    @property
    def plots(self) -> list[Plot]:
        """Metric plots created so far."""
        return [slot.plot for slot in self.grid.slots if slot.plot is not None and slot.name not in USES]

    @property
    def uses(self) -> list[Plot]:
        """Plots of laptop use."""
        return [slot.plot for slot in self.grid.slots if slot.plot is not None and slot.name in USES]

    @property
    def all_plots(self) -> list[Plot]:
        return [*self.plots, *self.uses]

    @property
    def following(self) -> bool:
        return self._zoomed is None

    # --- drawing -------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.take_in()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.all_plots:
            self._rearrange()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.grid.alone:
            self._enlarge("")
        else:
            super().keyPressEvent(event)

    def _seen(self) -> bool:
        return self.isVisible() and not self.window().isMinimized()

    def _redraw(self) -> None:
        if not self._seen():
            return
        keys = [(index, key) for index, source in enumerate(self.sources) for key in source.points.curves]
        if not keys:
            return
        if not self._ready:
            self._show_whether_empty()
            loader.load(self, self._on_loaded)
            return
        if keys != self._keys:
            self._keys = keys
            self._pieces = self._arrange(keys)
        elif self._pieces is None:
            self._pieces = self._draw()
        # Some milliseconds per plot at a time, so that the window handles events in between.
        if next(self._pieces, _OVER) is _OVER:
            self._pieces = None
            if self._hurried or not self._drawn:
                self._hurried = False
                self._timer.start(0)
            elif self._late or self._again:
                self.take_in()
        else:
            self._timer.start(0)

    def _draw(self) -> Iterator[None]:
        """One plot per turn, painted in that turn too. Plots out of sight wait until they are visible."""
        spent_s, self._late, before = 0.0, False, len(self.all_plots)
        self._stride()
        for slot in list(self.grid.slots):
            if slot.plot is None:
                if slot.in_view:
                    self._fill(slot)
                    yield
                else:
                    continue
            plot = slot.plot
            assert plot is not None
            if slot.in_view:
                began_s = time.thread_time()
                self._late = not self._bring_up(plot) or self._late
                # The last redraw's painting cost is known only now.
                spent_s += time.thread_time() - began_s + plot.take_paint_s()
                yield
            else:
                plot.canvas.behind = True
        if len(self.all_plots) > before:
            tab_as_seen(self)
        # The first redraw loads fonts and pictures and says nothing about later ones.
        self.cost_s = 0.8 * self.cost_s + 0.2 * spent_s if self.redraws else 0.0
        self.redraws += 1
        self._drawn = True
        self._last_s = time.monotonic()

    def _bring_up(self, plot: Plot) -> bool:
        """True once every available point is drawn."""
        from app.charts.readout import turn_marks

        caught_up = plot.catch_up()
        # With several runs one could not tell whose they are.
        one = self.sources[0] if len(self.sources) == 1 else None
        turns = turn_marks(one.points, one.names, plot.look) if one is not None else []
        plot.show_turns(turns, in_words=plot.shown not in USES)
        if self._range is not None:
            plot.show_limits(*self._range)
        if self._zoomed is not None:
            plot.show_range(*self._zoomed)
        plot.redraw(self._range)
        return caught_up

    def _stride(self) -> None:
        """The common range follows the points in strides: each new range makes every axis redraw its
        numbers, which takes longer than the curves."""
        reached = reach(self.sources, self.bar.look.axis)
        if reached is not None:
            self._range = strided(self._range, *reached)

    def _redraw_soon(self) -> None:
        """The user is moving a plot and watching: redraw sooner than for new points."""
        self._hurried = self._pieces is not None
        if self._seen() and not (self._timer.isActive() and self._timer.remainingTime() < 15):
            self._timer.start(15)

    def _on_loaded(self) -> None:
        self._ready = True
        self.take_in()

    # --- what is shown -------------------------------------------------------------------------------------

    def _rearrange(self) -> None:
        self._keys = None
        self._redraw_soon()

    def _arrange(self, keys: list[tuple[int, CurveKey]]) -> Iterator[None]:
        """A curve was added, or others were chosen."""
        self._drawn = False
        self._lines = PlotLines(self.sources, self._hidden, self.bar.base_place)
        metrics = [name for name in by_use(key.metric for _, key in keys) if self.bar.lets_through(name)]
        # Several runs' laptops would give more lines than anybody can tell apart.
        one = len(self.sources) == 1
        there = {key.metric for _, key in keys}
        uses = [name for name in USES if one and name in there and self.bar.lets_through(name)]
        self.grid.show_slots(metrics, uses)
        self.legend.show_lines(self._lines.legend(), self._hidden)
        self._show_whether_empty()
        yield
        for plot in self.all_plots:
            self._show_curves(plot)
            yield
        tab_as_seen(self)

    def _fill(self, slot: Slot) -> None:
        """Adds a plot, made when it is first visible: a first paint takes as long as ten later ones."""
        from app.charts.plot import Plot

        plot = Plot(slot.name, PERCENT if slot.name in USES else None)
        plot.log.setChecked(slot.name in self._logs)
        plot.moved.connect(lambda: self._on_moved(plot))
        plot.all_asked.connect(self.follow)
        plot.stale.connect(self._redraw_soon)
        plot.canvas.pointed.connect(self._point_at)
        plot.log_asked.connect(lambda on: self._show_log(plot, on))
        plot.enlarge_asked.connect(lambda: self._enlarge("" if self.grid.alone else plot.shown))
        self._show_curves(plot)
        slot.fill(plot)

    def _show_curves(self, plot: Plot) -> None:
        plot.show_curves(self._lines.curves(plot.shown), self._look_of(plot))
        if plot.shown in USES:
            laptops = [(curve.name, curve.colour, False) for curve in plot.curves]
            plot.legend.show_lines(laptops)
            plot.legend.setEnabled(False)
            plot.legend.show()

    def _look_of(self, plot: Plot) -> Look:
        """Laptop use is neither smoothed nor logarithmic; a difference may be below zero."""
        from app.charts.curve import Look

        look = self.bar.look
        if plot.shown in USES:
            return Look(axis=look.axis)
        log = plot.shown in self._logs and self.bar.base_place is None
        return Look(axis=look.axis, smoothing=look.smoothing, log=log, trimmed=look.trimmed)

    def _wear(self) -> None:
        self._range = self._zoomed = None
        for plot in self.all_plots:
            plot.wear(self._look_of(plot))
        self.bar.show_following(True)
        self._redraw_soon()

    def _trim(self) -> None:
        for plot in self.all_plots:
            plot.dress(self._look_of(plot))
        self._redraw_soon()

    def _show_log(self, plot: Plot, on: bool) -> None:
        (self._logs.add if on else self._logs.discard)(plot.shown)
        plot.dress(self._look_of(plot))
        self._redraw_soon()

    def _enlarge(self, name: str) -> None:
        self.grid.enlarge(name)
        self._redraw_soon()

    def _toggle(self, name: str, shown: bool) -> None:
        (self._hidden.discard if shown else self._hidden.add)(name)
        self._rearrange()

    def _show_alone(self, name: str) -> None:
        """Shows that line only, or all lines if it is already the only one. Dashed entries belong to no
        run and stay."""
        others = {each for each in self.legend.names if each not in (name, VALIDATION)}
        self._hidden = set() if others <= self._hidden else others
        self._rearrange()

    def _on_moved(self, moved: Plot) -> None:
        self._zoomed = moved.range
        self.bar.show_following(False)
        self._redraw_soon()

    def _point_at(self, place: object) -> None:
        for plot in self.all_plots:
            plot.point_at(place if isinstance(place, float) else None)

    def _show_whether_empty(self) -> None:
        coming = any(source.points.curves for source in self.sources)
        arranged = bool(self.grid.slots)
        filtered = self._keys is not None and not arranged
        words = "No metric matches the filter." if filtered else _COMING if coming else self._words
        self.empty.say(words)
        self.empty.setVisible(not arranged)
        self.bar.setVisible(arranged or filtered)
        for piece in (self.grid, self.legend):
            piece.setVisible(arranged)

    # --- export --------------------------------------------------------------------------------------------

    def _picture(self) -> Picture:
        runs = [plain(source.label, 60) for source in self.sources]
        return Picture(", ".join(runs) if len(runs) < 3 else f"{len(runs)} runs", self.legend, self.grid)

    def _make_ready(self, slot: Slot) -> bool:
        """Prepares a plot for a picture, visible or not; True once it is fully drawn."""
        if slot.plot is None:
            self._fill(slot)
        layout = slot.layout()
        assert slot.plot is not None and layout is not None
        layout.activate()
        return self._bring_up(slot.plot)

    def _table(self) -> Table:
        from app.charts.export import Table

        names = {slot.name for slot in self.grid.slots if not slot.isHidden()} or None
        base = self.bar.base_place
        curves = [
            (source.label, key, points, self._lines.taken_off(key))
            for index, source in enumerate(self.sources)
            for key, points in source.points.curves.items()
            if (names is None or key.metric in names) and not self._lines.hides(index, key)
        ]
        return Table(curves, self.bar.look.axis, self.sources[base].label if base is not None else "")
