"""Plots of one run or of several over each other, with their look, a legend and export. GUI thread."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.charts import loader
from app.charts.export_menu import ExportMenu
from app.charts.legend import Legend
from app.charts.look_bar import LookBar
from app.charts.points import CurveKey, Source
from app.widgets.card import take_out
from app.widgets.labels import Label
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.ids import short

if TYPE_CHECKING:
    from app.charts.curve import Curve
    from app.charts.plot import Plot

LEAST_BETWEEN_S = 0.2
MOST_BETWEEN_S = 2.0
COST_PART = 0.005
"""Of the time, that drawing may take: on two cores it takes from the training what it takes. But no pause is
longer than ``MOST_BETWEEN_S``."""
MOST_PLOTS = 3
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
        self._row = QHBoxLayout(self._canvas)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(theme.GAP)
        self.legend = Legend()
        self._words = empty
        self.empty = Label(empty, "faint", wraps=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.export = ExportMenu(self._canvas, lambda: self.sources)
        self.bar.layout_row.addWidget(self.export.button)
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
        for plot in self.plots:
            take_out(self._row, plot)
        self.plots = []
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
        for plot in self.plots:
            plot.follow()
        self.bar.show_following(True)

    @property
    def following(self) -> bool:
        return all(plot.following for plot in self.plots)

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
        for plot in self.plots:
            began_s = time.thread_time()
            self._late = not plot.catch_up() or self._late
            plot.redraw()
            # What the last redraw cost in painting is known only now.
            spent_s += time.thread_time() - began_s + plot.take_paint_s()
            yield
        # The first one makes fonts and pictures ready and says nothing of those to come.
        self.cost_s = 0.8 * self.cost_s + 0.2 * spent_s if self.redraws else 0.0
        self.redraws += 1
        self._drawn = True
        self._last_s = time.monotonic()

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
        for plot in [plot for plot in self.plots if plot.shown not in chosen]:
            self.plots.remove(plot)
            take_out(self._row, plot)
        for name in chosen:
            if name not in {plot.shown for plot in self.plots}:
                self.plots.append(self._new_plot(name))
                yield
        self.plots.sort(key=lambda plot: chosen.index(plot.shown))
        lines: dict[str, tuple[str, bool]] = {}
        for place, plot in enumerate(self.plots):
            self._row.insertWidget(place, plot, 1)
            curves = self._curves_of(plot.shown, keys)
            plot.show_curves(curves, self.bar.look)
            lines.update({curve.name: (curve.colour, curve.dashed) for curve in curves})
            yield
        self.legend.show_lines([(name, *how) for name, how in lines.items()])
        yield
        self._show_whether_empty()
        for plot in self.plots:
            plot.show()
            yield
        tab_as_seen(self)

    def _new_plot(self, metric: str) -> Plot:
        from app.charts.plot import Plot

        plot = Plot(metric)
        # Its place is kept until its own turn: painted for the first time, each takes as long as ten later.
        policy = plot.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        plot.setSizePolicy(policy)
        plot.hide()
        plot.moved.connect(lambda: self.bar.show_following(False))
        plot.stale.connect(self._redraw_soon)
        return plot

    def _curves_of(self, metric: str, keys: list[tuple[int, CurveKey]]) -> list[Curve]:
        from app.charts.curve import Curve

        palette = theme.colours().curves
        made = []
        owners = list(dict.fromkeys((index, key.member) for index, key in keys))
        several = len(owners) > 1
        for index, key in keys:
            if key.metric != metric:
                continue
            source = self.sources[index]
            # One run: a colour for each set. Several lines: a colour for each of them, validation dashed.
            shade = owners.index((index, key.member)) if several else int(key.validation)
            made.append(
                Curve(
                    points=source.points.curves[key],
                    name=_name(source, key, len(self.sources) > 1),
                    colour=palette[shade % len(palette)],
                    dashed=key.validation,
                )
            )
        return made

    def _choose(self, names: list[str]) -> None:
        self._chosen = names
        self._keys = []
        self._redraw_soon()

    def _wear(self) -> None:
        for plot in self.plots:
            plot.wear(self.bar.look)
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
    words = [source.label if several_runs else "", member, "validation" if key.validation else "training"]
    return ", ".join(word for word in words if word)
