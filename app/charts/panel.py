"""Plots of one run or of several over each other, with their look, a legend and export. GUI thread."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.charts import loader
from app.charts.export_menu import ExportMenu
from app.charts.legend import Legend
from app.charts.look_bar import LookBar
from app.charts.points import USES, CurveKey, Source
from app.widgets.card import take_out
from app.widgets.labels import Label
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.text import plain

if TYPE_CHECKING:
    from app.charts.curve import Curve, Look
    from app.charts.plot import Plot

LEAST_BETWEEN_S = 0.2
MOST_BETWEEN_S = 2.0
COST_PART = 0.005
"""Of the time, that drawing may take: on two cores it takes from the training what it takes. But no pause is
longer than ``MOST_BETWEEN_S``."""
MOST_PLOTS = 3
METRICS_PARTS, USES_PARTS = 5, 3
"""Of the height."""
PERCENT = (0.0, 100.0)
_OVER = object()
_COMING = "Drawing…"
_NOTHING_YET = "The first numbers show up here with the first step."


class ChartPanel(QWidget):
    """Shows ``sources``; whoever adds points calls ``take_in``. Draws nothing while it is hidden."""

    def __init__(self, empty: str = _NOTHING_YET) -> None:
        super().__init__()
        self.setAccessibleName("Plots")
        self.sources: list[Source] = []
        self.plots: list[Plot] = []
        self.uses: list[Plot] = []
        """Under the plots, over the same axis: what the laptops were busy with."""
        self.redraws = 0
        self.cost_s = 0.0
        """Seconds of this thread that one redraw takes, smoothed."""
        self._keys: list[tuple[int, CurveKey]] = []
        self._chosen: list[str] | None = None
        self._pieces: Iterator[None] | None = None
        """What is left of the arranging or drawing under way."""
        self._drawn = self._late = self._again = False
        self._ready = False
        self._last_s = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._redraw)
        self.bar = LookBar()
        self.bar.metrics_chosen.connect(self._choose)
        self.bar.look_changed.connect(self._wear)
        self.bar.follow_asked.connect(self.follow)
        self._canvas = QWidget()
        # As high as there is room: a plot's own wish would make its page scroll.
        self._canvas.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self._grid = QGridLayout(self._canvas)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme.GAP)
        self._grid.setVerticalSpacing(theme.GAP // 3)
        self._grid.setRowStretch(0, METRICS_PARTS)
        self.legend = Legend()
        self._words = empty
        self.empty = Label(empty, "faint", wraps=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.export = ExportMenu(self._canvas, lambda: self.sources, lambda: self.all_plots)
        self.bar.end_with(self.export.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for piece in (self.bar, self.empty, self._canvas, self.legend, self.export.said):
            layout.addWidget(piece, 1 if piece is self._canvas else 0)
        self.show_sources([])

    def show_sources(self, sources: Sequence[Source]) -> None:
        """From now on these runs, from their first point."""
        self.sources = list(sources)
        self._keys = []
        self._pieces = None
        self._chosen = None
        for plot in self.all_plots:
            take_out(self._grid, plot)
        self.plots, self.uses = [], []
        self._last_s = 0.0
        self._show_whether_empty()
        self.take_in()

    def show_coming(self) -> None:
        """Nothing yet; what there is to show is being read."""
        self.show_sources([])
        self.empty.say(_COMING)

    def take_in(self) -> None:
        """There are new points: they are drawn soon, if anybody can see them."""
        self._again = self._pieces is not None
        if self._seen() and not self._timer.isActive():
            between_s = min(MOST_BETWEEN_S, max(LEAST_BETWEEN_S, self.cost_s / COST_PART))
            wait_s = self._last_s + between_s - time.monotonic()
            self._timer.start(max(0, int(wait_s * 1000)))

    def follow(self) -> None:
        """Show everything again, and what comes."""
        for plot in self.all_plots:
            plot.follow()
        self.bar.show_following(True)

    @property
    def all_plots(self) -> list[Plot]:
        return [*self.plots, *self.uses]

    @property
    def following(self) -> bool:
        return all(plot.following for plot in self.all_plots)

    # --- drawing -------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.take_in()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.plots:
            self._keys = []
            self.take_in()

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
        # Some milliseconds of each plot at a time, so that the window lives in between.
        if next(self._pieces, _OVER) is _OVER:
            self._pieces = None
            if not self._drawn:
                self._timer.start(0)
            elif self._late or self._again:
                self.take_in()
        else:
            self._timer.start(0)

    def _draw(self) -> Iterator[None]:
        """One plot a turn: it is painted in that turn, too."""
        spent_s, self._late = 0.0, False
        self._show_turns()
        for plot in self.all_plots:
            began_s = time.thread_time()
            self._late = not plot.catch_up() or self._late
            plot.redraw(self._span())
            # What the last redraw cost in painting is known only now.
            spent_s += time.thread_time() - began_s + plot.take_paint_s()
            yield
        # The first one makes fonts and pictures ready and says nothing of those to come.
        self.cost_s = 0.8 * self.cost_s + 0.2 * spent_s if self.redraws else 0.0
        self.redraws += 1
        self._drawn = True
        self._last_s = time.monotonic()

    def _show_turns(self) -> None:
        """Of one run; over several one could not tell whose they are."""
        from app.charts.readout import turn_marks

        one = self.sources[0] if len(self.sources) == 1 else None
        turns = turn_marks(one.points, one.names, self.bar.look) if one is not None else []
        for plot in self.all_plots:
            plot.show_turns(turns, in_words=plot in self.plots)

    def _span(self) -> tuple[float, float] | None:
        """Of the run's axis, over all plots: they share it."""
        spans = [span for plot in self.all_plots if (span := plot.span) is not None]
        return (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None

    def _redraw_soon(self) -> None:
        """Somebody moves a plot and watches it: sooner than for new points."""
        if self._seen() and not (self._timer.isActive() and self._timer.remainingTime() < 15):
            self._timer.start(15)

    def _on_loaded(self) -> None:
        self._ready = True
        self.take_in()

    # --- what is shown -------------------------------------------------------------------------------------

    def _arrange(self, keys: list[tuple[int, CurveKey]]) -> Iterator[None]:
        """A curve has come, or others were chosen."""
        self._drawn = False
        metrics = list(dict.fromkeys(name for source in self.sources for name in source.points.metrics))
        chosen = [name for name in (self._chosen or metrics[:2]) if name in metrics][:MOST_PLOTS]
        self.bar.show_metrics(metrics, chosen)
        self.plots = yield from self._kept(self.plots, chosen)
        # Of several runs' laptops there would be more lines than anybody can tell apart.
        one = len(self.sources) == 1
        there = [name for name in USES if one and any(key.metric == name for _, key in keys)]
        self.uses = yield from self._kept(self.uses, there[: len(chosen)])
        for plot in self.all_plots:
            plot.show_curves(self._curves_of(plot.shown, keys), self._look_of(plot))
            yield
        self._place()
        self._show_legend()
        yield
        self._show_whether_empty()
        for plot in self.all_plots:
            plot.show()
            yield
        tab_as_seen(self)

    def _kept(self, plots: list[Plot], wanted: list[str]) -> Generator[None, None, list[Plot]]:
        """Those that are wanted, in that order, new ones made; the others go."""
        known = {plot.shown: plot for plot in plots}
        for name in known.keys() - set(wanted):
            take_out(self._grid, known[name])
        kept = []
        for name in wanted:
            if name not in known:
                known[name] = self._new_plot(name)
                yield
            kept.append(known[name])
        return kept

    def _place(self) -> None:
        """Metrics side by side, and what the laptops did below them, over the same axis."""
        for column, plot in enumerate(self.plots):
            under = column < len(self.uses)
            self._grid.addWidget(plot, 0, column, 1 if under or not self.uses else 2, 1)
            self._grid.setColumnStretch(column, 1)
            plot.show_run_axis(not under)
        for column in range(len(self.plots), self._grid.columnCount()):
            self._grid.setColumnStretch(column, 0)
        for column, plot in enumerate(self.uses):
            self._grid.addWidget(plot, 1, column)
        self._grid.setRowStretch(1, USES_PARTS if self.uses else 0)

    def _show_legend(self) -> None:
        """Raw and smoothed have a line each, and of several runs each run; laptops are named at their own
        plot."""
        lines: dict[str, tuple[str, bool]] = {}
        if len(self.sources) > 1:
            self._show_runs()
            return
        for plot in self.plots:
            for curve in plot.curves:
                if curve.smooth is not None:
                    lines[f"{curve.name} (smoothed)"] = curve.colour, False
                    lines[curve.name] = theme.faded(curve.colour), False
                else:
                    lines[curve.name] = curve.colour, curve.dashed
        self.legend.show_lines([(name, *how) for name, how in lines.items()])
        for plot in self.uses:
            plot.legend.show_lines([(curve.name, curve.colour, False) for curve in plot.curves])
            plot.legend.show()

    def _show_runs(self) -> None:
        """A colour a run; what is dashed is said once."""
        lines = [
            (plain(source.label, 24), theme.run_colour(place), False)
            for place, source in enumerate(self.sources)
        ]
        if any(curve.dashed for plot in self.plots for curve in plot.curves):
            lines.append(("validation", theme.colours().faint, True))
        self.legend.show_lines(lines)

    def _new_plot(self, metric: str) -> Plot:
        from app.charts.plot import Plot

        plot = Plot(metric, PERCENT if metric in USES else None)
        # Its place is kept until its own turn: painted for the first time, each takes as long as ten later.
        policy = plot.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        plot.setSizePolicy(policy)
        plot.hide()
        plot.moved.connect(lambda: self._on_moved(plot))
        plot.stale.connect(self._redraw_soon)
        plot.canvas.pointed.connect(self._point_at)
        return plot

    def _on_moved(self, moved: Plot) -> None:
        for plot in self.all_plots:
            if plot is not moved:
                plot.show_range(*moved.range)
        self.bar.show_following(False)
        self._redraw_soon()

    def _point_at(self, place: object) -> None:
        for plot in self.all_plots:
            plot.point_at(place if isinstance(place, float) else None)

    def _curves_of(self, metric: str, keys: list[tuple[int, CurveKey]]) -> list[Curve]:
        from app.charts.curve import Curve

        palette = theme.colours().curves
        made = []
        keys = [(index, key) for index, key in keys if (key.metric in USES) == (metric in USES)]
        owners = list(dict.fromkeys((index, key.member) for index, key in keys))
        several = len(owners) > 1
        for index, key in keys:
            if key.metric != metric:
                continue
            source = self.sources[index]
            # One run: a colour for each set. Several lines: a colour for each of them, validation dashed.
            shade = owners.index((index, key.member)) if several else int(key.validation)
            colour = palette[shade % len(palette)]
            if metric in USES:
                colour = theme.laptop_colour(_place_of(source, key.member))
            elif len(self.sources) > 1:
                colour = theme.run_colour(index)
            made.append(
                Curve(
                    points=source.points.curves[key],
                    name=_name(source, key, len(self.sources) > 1),
                    colour=colour,
                    dashed=key.validation,
                )
            )
        return made

    def _choose(self, names: list[str]) -> None:
        self._chosen = names
        self._keys = []
        self._redraw_soon()

    def _look_of(self, plot: Plot) -> Look:
        """How busy a laptop was is neither smoothed nor logarithmic."""
        from app.charts.curve import Look

        look = self.bar.look
        return look if plot in self.plots else Look(axis=look.axis)

    def _wear(self) -> None:
        for plot in self.all_plots:
            plot.wear(self._look_of(plot))
        self._show_legend()
        self.bar.show_following(True)
        self._redraw_soon()

    def _show_whether_empty(self) -> None:
        coming = any(source.points.curves for source in self.sources)
        self.empty.say(_COMING if coming else self._words)
        self.empty.setVisible(not self.plots)
        for piece in (self.bar, self._canvas, self.legend):
            piece.setVisible(bool(self.plots))


def _name(source: Source, key: CurveKey, several_runs: bool) -> str:
    member = source.names.get(key.member, short(key.member)) if key.member else ""
    if key.metric in USES:
        return member
    words = [source.label if several_runs else "", member, "validation" if key.validation else "training"]
    return ", ".join(word for word in words if word)


def _place_of(source: Source, member: DeviceId) -> int:
    return list(source.names).index(member) if member in source.names else 0
