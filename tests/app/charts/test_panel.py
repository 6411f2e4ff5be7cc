"""The panel of plots: what it shows, when it draws, what it exports."""

import csv
import math
import threading
from collections.abc import Iterator
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import pytest
import shiboken6
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from app import theme
from app.bridge import Bridge
from app.charts.panel import ChartPanel
from app.charts.plot import Plot
from app.charts.sources import Source
from core.report.points import CPU_USE, GPU_USE, RunPoints
from core.vocabulary.commands import ChangeSettings
from core.vocabulary.events import MemberEndedEpoch
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import LaptopUsed
from core.vocabulary.progress import EpochEnd
from core.vocabulary.settings import SettingsChange
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.core.fake_node import ME
from tests.core.report.test_points import RUN, A, B, epoch, plan, step

LIMIT_MS = 60_000
C = DeviceId("c" * 64)


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[ChartPanel]:
    panel = ChartPanel()
    qtbot.addWidget(panel)
    panel.resize(800, 400)
    yield panel
    panel.hide()


def run_of(*events: object, strategy: str = "managed") -> RunPoints:
    points = RunPoints(plan(strategy))
    for event in events:
        points.on_event(event)  # type: ignore[arg-type]
    return points


def drawn(qtbot: QtBot, panel: ChartPanel) -> None:
    """Waits for the next drawing."""
    before = panel.redraws
    panel.take_in()
    qtbot.waitUntil(lambda: panel.redraws > before, timeout=LIMIT_MS)


def shown(qtbot: QtBot, panel: ChartPanel, *sources: Source) -> None:
    panel.show_sources(sources)
    panel.show()
    drawn(qtbot, panel)


def test_without_points_it_says_when_they_come(qtbot: QtBot, panel: ChartPanel) -> None:
    panel.show()
    assert panel.empty.isVisible()
    assert not panel.bar.isVisible()


def test_every_metric_has_a_plot(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(
        *(step(n, accuracy=n / 9, loss=9.0 - n, extra=1.0) for n in range(9)), epoch(8, val_loss=3.0)
    )
    shown(qtbot, panel, Source("now", points))
    assert [plot.shown for plot in panel.plots] == ["loss", "accuracy", "extra"]
    assert all(plot.isVisible() for plot in panel.plots)
    for plot in panel.plots:
        left = plot.canvas.width() - plot.canvas.getPlotItem().vb.sceneBoundingRect().right()
        assert left >= plot.fontMetrics().horizontalAdvance("-1.23e-05"), "no last value is cut off"
    assert panel.legend.names == ["training", "validation"]
    assert not panel.empty.isVisible()


def test_plots_come_one_a_turn_and_after_a_look_elsewhere(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(*(step(n, accuracy=n / 9, loss=9.0 - n) for n in range(9)))
    panel.show_sources([Source("now", points)])
    seen: list[int] = []

    def look_elsewhere_at_the_first() -> None:
        seen.append(sum(plot.isVisible() for plot in panel.plots))
        if seen.count(1) == 1 and seen[-1] == 1:
            panel.hide()
            panel.show()

    panel._timer.timeout.connect(look_elsewhere_at_the_first)
    panel.show()
    qtbot.waitUntil(lambda: panel.redraws > 0, timeout=LIMIT_MS)
    assert [count for count, _ in groupby(seen)] == [0, 1, 2]


def test_new_points_are_drawn_and_a_new_metric_gets_its_curve(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(step(0, loss=3.0))
    shown(qtbot, panel, Source("now", points))
    points.on_event(step(1, loss=2.0))
    points.on_event(epoch(1, val_loss=2.5))
    drawn(qtbot, panel)
    assert [len(curve.raw) for curve in panel.plots[0].curves] == [2, 1]


def test_nothing_is_drawn_while_it_is_hidden(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(step(0, loss=3.0))
    shown(qtbot, panel, Source("now", points))
    panel.hide()
    before = panel.redraws
    points.on_event(step(1, loss=2.0))
    panel.take_in()
    assert not panel._timer.isActive()
    assert panel.redraws == before
    panel.show()
    qtbot.waitUntil(lambda: panel.redraws > before, timeout=LIMIT_MS)
    assert len(panel.plots[0].curves[0].raw) == 2


def test_drawings_keep_their_distance_from_each_other(qtbot: QtBot, panel: ChartPanel) -> None:
    shown(qtbot, panel, Source("now", run_of(step(0, loss=3.0))))
    panel.cost_s = 0.5
    panel._timer.stop()
    panel.take_in()
    assert panel._timer.remainingTime() > 1_000


def test_once_the_run_is_over_nothing_waits_to_be_drawn(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(step(0, loss=3.0))
    shown(qtbot, panel, Source("now", points))
    panel.cost_s = 0.5
    panel._timer.stop()
    panel.take_in()
    assert panel._timer.remainingTime() > 1_000
    points.on_event(step(1, loss=2.0))
    before = panel.redraws
    panel.take_in(over=True)
    assert panel._timer.remainingTime() == 0
    qtbot.waitUntil(lambda: panel.redraws > before, timeout=LIMIT_MS)
    assert len(panel.plots[0].curves[0].raw) == 2
    panel.take_in()
    assert panel._timer.remainingTime() == 0, "nor what comes after the end"
    panel.show_sources([Source("next", run_of(step(0, loss=3.0)))])
    qtbot.waitUntil(lambda: panel.redraws > before + 1, timeout=LIMIT_MS)
    panel.cost_s = 0.5
    panel._timer.stop()
    panel.take_in()
    assert panel._timer.remainingTime() > 1_000, "the next run trains"


def test_moving_pauses_and_follow_goes_on(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(*(step(n, loss=3.0 - n / 10) for n in range(20)))
    shown(qtbot, panel, Source("now", points))
    plot = panel.plots[0]
    plot.canvas.setXRange(2, 5, padding=0)
    plot.canvas.moved.emit()
    assert not panel.following
    assert panel.bar.follow.isVisible()
    points.on_event(step(50, loss=0.5))
    drawn(qtbot, panel)
    assert plot.canvas.viewRange()[0] == pytest.approx([2, 5])
    panel.bar.follow.click()
    qtbot.waitUntil(lambda: plot.canvas.viewRange()[0][1] > 49, timeout=LIMIT_MS)
    assert not panel.bar.follow.isVisible()


def test_all_plots_show_the_same_part_of_the_run_however_late_they_came(
    qtbot: QtBot, panel: ChartPanel
) -> None:
    points = run_of(*(step(n, loss=3.0, accuracy=0.5) for n in range(40)))
    shown(qtbot, panel, Source("now", points))
    for number in range(40, 90, 8):
        points.on_event(step(number, loss=2.0, accuracy=0.6))
        if number > 60:
            points.add_use(A, CPU_USE, float(number), 40.0)
        drawn(qtbot, panel)
        assert len({plot.range for plot in panel.all_plots}) == 1
    assert [plot.shown for plot in panel.all_plots] == ["loss", "accuracy", CPU_USE]


def test_keys_move_a_plot(qtbot: QtBot, panel: ChartPanel) -> None:
    from PySide6.QtCore import Qt

    shown(qtbot, panel, Source("now", run_of(*(step(n, loss=1.0) for n in range(20)))))
    plot = panel.plots[0]
    qtbot.keyClick(plot.canvas, Qt.Key.Key_Plus)
    left = plot.canvas.viewRange()[0][0]
    qtbot.keyClick(plot.canvas, Qt.Key.Key_Right)
    assert plot.canvas.viewRange()[0][0] > left
    assert not panel.following


def test_smoothing_log_scale_and_time_change_the_look(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(*(step(n, loss=10.0 ** (n - 5)) for n in range(10)))
    shown(qtbot, panel, Source("now", points))
    panel.bar.smoothing.setValue(0)
    panel.plots[0].log.click()
    panel.bar.axis.setCurrentIndex(2)
    drawn(qtbot, panel)
    plot = panel.plots[0]
    assert plot.curves[0].smooth is None
    assert plot.canvas.viewRange()[1][1] < 5
    assert plot.canvas.getPlotItem().getAxis("bottom").labelText == "time"


def test_epochs_are_an_axis_of_all_plots(qtbot: QtBot, panel: ChartPanel) -> None:
    points = RunPoints(plan())
    for number in range(80):
        told = step(number, loss=9.0 - number / 10, accuracy=number / 90)
        inside = replace(told.progress, epoch=number // 20, batch=number % 20, steps_in_epoch=20)
        points.on_event(replace(told, progress=inside))
    shown(qtbot, panel, Source("now", points))
    panel.bar.axis.setCurrentIndex(1)
    loss, accuracy = panel.plots
    qtbot.waitUntil(lambda: loss.range == accuracy.range == pytest.approx((0, 4), abs=0.1), timeout=LIMIT_MS)
    assert list(loss.curves[0].raw.x[:2]) == pytest.approx([0.05, 0.1])
    assert loss.canvas.getPlotItem().getAxis("bottom").labelText == "epoch"


@pytest.mark.parametrize(
    ("later", "said"), [((), "training is NaN from step 7 on"), ((0.5,), "training was NaN at step 7")]
)
def test_a_value_that_is_no_number_is_said_with_its_step(
    qtbot: QtBot, panel: ChartPanel, later: tuple[float, ...], said: str
) -> None:
    lost = (step(0, loss=1.0), step(7, loss=math.nan), *(step(9, loss=value) for value in later))
    shown(qtbot, panel, Source("now", run_of(*lost)))
    assert panel.plots[0].flag.isVisible()
    assert panel.plots[0].flag.text() == said


def test_two_runs_lie_over_each_other(qtbot: QtBot, panel: ChartPanel) -> None:
    one, two = run_of(step(0, loss=1.0), step(1, loss=0.5)), run_of(step(0, loss=2.0), step(1, loss=1.5))
    shown(qtbot, panel, Source("one", one), Source("two", two))
    assert panel.legend.names == ["one", "two"]
    assert [curve.name for curve in panel.plots[0].curves] == ["one, training", "two, training"]
    assert len({curve.colour for curve in panel.plots[0].curves}) == 2


def test_members_are_called_by_their_names_or_the_beginning_of_their_ids(
    qtbot: QtBot, panel: ChartPanel
) -> None:
    points = run_of(*(step(0, device, loss=1.0) for device in (A, B, C)), strategy="own")
    shown(qtbot, panel, Source("now", points, {A: "Ada", B: "<b>Bob</b>"}))
    assert panel.legend.names == ["Ada, training", "<b>Bob</b>, training", "cccccccc, training"]


def test_a_filter_leaves_the_metrics_with_these_letters(qtbot: QtBot, panel: ChartPanel) -> None:
    shown(qtbot, panel, Source("now", run_of(step(0, loss=1.0, accuracy=0.5, auc=0.5))))
    panel.bar.filter.setText(" AC")
    drawn(qtbot, panel)
    assert [plot.shown for plot in panel.plots] == ["accuracy"]
    panel.bar.filter.setText("none such")
    qtbot.waitUntil(panel.empty.isVisible, timeout=LIMIT_MS)
    assert panel.empty.text() == "No metric matches the filter."
    panel.bar.filter.clear()
    qtbot.waitUntil(lambda: len(panel.plots) == 3, timeout=LIMIT_MS)


def with_use(points: RunPoints) -> RunPoints:
    for device, percent in ((A, 80.0), (B, 40.0)):
        points.add_use(device, GPU_USE, 4.0, percent)
    return points


def test_gpu_use_stands_under_the_loss_over_the_same_axis(qtbot: QtBot, panel: ChartPanel) -> None:
    points = with_use(run_of(*(step(n, loss=9.0 - n) for n in range(9))))
    shown(qtbot, panel, Source("now", points, {A: "Ada", B: "Bob"}))
    (loss,), (use,) = panel.plots, panel.uses
    assert use.shown == GPU_USE
    assert use.legend.names == ["Ada", "Bob"]
    assert panel.legend.names == ["training"], "laptops are named at their own plot"
    assert use.mapTo(panel, use.rect().topLeft()).y() > loss.mapTo(panel, loss.rect().center()).y()
    assert use.range == pytest.approx(loss.range)
    assert use.canvas.viewRange()[1][1] >= 100
    loss.canvas.setXRange(2, 5, padding=0)
    loss.canvas.moved.emit()
    qtbot.waitUntil(lambda: use.range == pytest.approx((2, 5)), timeout=LIMIT_MS)
    panel.follow()
    qtbot.waitUntil(lambda: use.range[1] > 7, timeout=LIMIT_MS)
    assert use.range == pytest.approx(loss.range)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_line_is_as_thick_at_every_scale(
    qtbot: QtBot, panel: ChartPanel, monkeypatch: pytest.MonkeyPatch, scale: float
) -> None:
    from app.charts.canvas import Canvas

    monkeypatch.setattr(Canvas, "devicePixelRatioF", lambda self: scale)
    shown(qtbot, panel, Source("now", run_of(step(0, loss=2.0), step(9, loss=1.0))))
    line = panel.plots[0]._items[0][2]
    assert 1.5 <= line.opts["pen"].widthF() / scale <= 2.0


def test_smoothed_and_raw_are_told_apart(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(*(step(n, loss=9.0 - n) for n in range(9)), epoch(8, val_loss=3.0))
    shown(qtbot, panel, Source("now", points))
    assert panel.bar.look.smoothing == 0, "nothing is smoothed unasked"
    panel.bar.smoothing.setValue(60)
    _, faint, line, _ = panel.plots[0]._items[0]
    # The next drawing may have begun before.
    qtbot.waitUntil(lambda: len(faint.getData()[0]) == 9, timeout=LIMIT_MS)
    assert len(line.getData()[0]) == 9
    assert faint.opts["pen"].color().name() != line.opts["pen"].color().name()


def test_a_table_has_the_points_of_all_runs_that_are_shown(
    qtbot: QtBot, panel: ChartPanel, tmp_path: Path
) -> None:
    shown(qtbot, panel, *many(3))
    panel.legend.entries[1].click()
    drawn(qtbot, panel)
    with qtbot.waitSignal(panel.export.saved, timeout=LIMIT_MS):
        panel.export.save(tmp_path / "plots.csv")
    rows = list(csv.DictReader((tmp_path / "plots.csv").read_text().splitlines()))
    first, _, third = (f"'{source.label}" for source in many(3))  # no spreadsheet takes it for a formula
    assert [(row["run"], row["step"]) for row in rows] == [
        (run, str(at)) for run in (first, third) for at in range(30)
    ]
    assert rows[-1]["value"] == str(1 / 32)


@pytest.mark.parametrize("suffix", ["png", "svg", "csv"])
def test_it_is_exported(qtbot: QtBot, panel: ChartPanel, tmp_path: Path, suffix: str) -> None:
    shown(qtbot, panel, Source("=now", run_of(step(0, loss=1.0), step(3, loss=0.5))))
    path = tmp_path / f"plots.{suffix}"
    with qtbot.waitSignal(panel.export.saved, timeout=LIMIT_MS):
        panel.export.save(path)
    qtbot.waitUntil(panel.export.said.isVisible, timeout=LIMIT_MS)
    assert str(path) in panel.export.said.text().replace("\u200b", "")
    if suffix == "csv":
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert [(row["run"], row["metric"], row["step"], row["value"]) for row in rows] == [
            ("'=now", "loss", "0", "1.0"),
            ("'=now", "loss", "3", "0.5"),
        ]
    else:
        assert path.stat().st_size > 500


def test_one_point_gives_axes_that_a_person_would_draw(qtbot: QtBot, panel: ChartPanel) -> None:
    shown(qtbot, panel, Source("now", run_of(step(0, loss=0.0))))
    drawn(qtbot, panel)
    plot = panel.plots[0].canvas.getPlotItem()
    for side, pixels in (("left", 300), ("bottom", 300)):
        axis = plot.getAxis(side)
        labelled = axis.tickValues(*axis.range, pixels)[0][1]
        assert all(value >= 0 for value in labelled), side
        assert labelled[0] == 0.0
    assert plot.vb.viewRange()[1][1] > 0.9


@pytest.mark.parametrize("suffix", ["png", "csv"])
def test_an_export_that_fails_says_why(qtbot: QtBot, panel: ChartPanel, tmp_path: Path, suffix: str) -> None:
    shown(qtbot, panel, Source("now", run_of(step(0, loss=1.0))))
    panel.export.save(tmp_path / "no such folder" / f"plots.{suffix}")
    qtbot.waitUntil(panel.export.said.isVisible, timeout=LIMIT_MS)
    assert "could not be written" in panel.export.said.text()


def test_a_table_is_written_though_its_window_is_gone(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.charts import export

    panel = ChartPanel()
    panel.show_sources([Source("now", run_of(step(0, loss=1.0)))])
    gone = threading.Event()
    threads: list[threading.Thread] = []
    save = export.save_csv

    def late(sources: Any, path: Path, done: Any) -> threading.Thread:
        def told(problem: object) -> None:
            assert gone.wait(60)
            done(problem)

        threads.append(save(sources, path, told))
        return threads[-1]

    monkeypatch.setattr(export, "save_csv", late)
    panel.export.save(tmp_path / "plots.csv")
    shiboken6.delete(panel)
    gone.set()
    threads[0].join(60)
    assert not threads[0].is_alive()
    assert "now" in (tmp_path / "plots.csv").read_text()


def words_in(plot: Plot) -> list[QRectF]:
    plot.grab()
    return list(plot.marks._said)


@pytest.mark.parametrize("falling", [True, False], ids=["loss", "accuracy"])
def test_words_in_a_short_runs_plot_hide_neither_curves_nor_each_other(
    qtbot: QtBot, panel: ChartPanel, falling: bool
) -> None:
    """The best epoch's words lay over the end of the curve that they are about."""
    metric = "loss" if falling else "accuracy"
    points = RunPoints(plan())
    for number in range(240):
        value = math.exp(-number / 60)
        value = value if falling else 1 - value
        points.on_event(step(number, A, fit=0, **{metric: value}))
        if number % 20 == 19:
            logs = {f"val_{metric}": value * (1.02 if falling else 0.98)}
            end = EpochEnd(
                at_s=100.0 + number, epoch=number // 20, epochs=12, step=number, logs=logs, seconds=1
            )
            points.on_event(MemberEndedEpoch(run=RUN, device=A, epoch=end))
    points.add_turn(B, "away", 120.0, 120.0)
    points.add_turn(B, "back", 130.0, 130.0)
    panel.resize(500, 300)
    shown(qtbot, panel, Source("now", points, {A: "anna", B: "ben"}))
    plot = panel.plots[0]
    assert [turn.words for turn in plot.marks.turns] == ["ben away", "ben back"]
    assert plot.marks.best is not None
    said = words_in(plot)
    assert len(said) == 3, "two laptops' turns and the best epoch"
    assert not any(one.intersects(other) for one, other in combinations(said, 2))
    assert not any(any(plot.marks.covers([place.adjusted(6, 0, -6, 0)])) for place in said)
    assert all(plot.canvas.area.adjusted(-8, -1, 8, 1).contains(place) for place in said)
    bottom = plot.canvas.pixel(points.turns[0].step, 0.0)
    assert plot.marks.covers([QRectF(bottom.x() - 2, 0, 4, 1000)]) == [True], "it sees the curve where it is"


def test_turns_follow_the_axis_and_are_left_out_of_several_runs(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(step(0, loss=1.0), step(100, loss=0.5))
    points.add_turn(B, "left", 50.0, 40.0)
    shown(qtbot, panel, Source("one", points, {B: "ben"}))
    assert [(turn.x, turn.words) for turn in panel.plots[0].marks.turns] == [(40.0, "ben left")]
    panel.bar.axis.setCurrentIndex(2)
    qtbot.waitUntil(lambda: [turn.x for turn in panel.plots[0].marks.turns] == [50.0], timeout=LIMIT_MS)
    shown(qtbot, panel, Source("one", points), Source("two", run_of(step(0, loss=2.0))))
    assert panel.plots[0].marks.turns == ()


def test_a_past_runs_plots_have_the_use_below_over_the_same_axis_and_several_runs_none(
    qtbot: QtBot, panel: ChartPanel
) -> None:
    past = replace(
        world.details(world.entry(), steps=46),
        uses={ME: tuple(LaptopUsed(device=ME, second=n / 10, cpu_pct=20, gpu_pct=80) for n in range(46))},
    )
    points = RunPoints.of(past)
    shown(qtbot, panel, Source("past", points, {ME: "here"}))
    assert [plot.shown for plot in panel.uses] == [GPU_USE, CPU_USE]
    assert len({plot.range for plot in panel.all_plots}) == 1
    shown(qtbot, panel, Source("past", points, {ME: "here"}), Source("other", RunPoints.of(past)))
    assert panel.uses == []


def many(count: int) -> list[Source]:
    return [
        Source(
            f"--learning-rate {0.1 / (n + 1):.4f} --layers {n}",
            run_of(*(step(at, loss=1 / (at + n + 1)) for at in range(30))),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [2, 6, 12])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_has_all_that_the_screen_shows_and_nothing_lies_over_another(
    qtbot: QtBot, panel: ChartPanel, tmp_path: Path, count: int, suffix: str
) -> None:
    panel.resize(800, 430)  # the row above the plots needs two lines
    shown(qtbot, panel, *many(count))
    what, path = panel._picture(), tmp_path / f"plots.{suffix}"
    places = [entry.geometry().translated(panel.legend.pos()).toRectF() for entry in panel.legend.entries] + [
        slot.geometry().translated(panel.grid.pos()).toRectF() for slot in what.slots
    ]
    assert len(panel.legend.entries) == count
    assert not any(one.intersects(other) for one, other in combinations(places, 2))
    marks = panel.plots[0].marks
    height = marks.fontMetrics().height()
    tops = [marks._place(mark).y() for mark in marks.ends]
    assert len(tops) == count <= marks._canvas.area.height() / height
    with qtbot.waitSignal(panel.export.saved, timeout=LIMIT_MS) as saved:
        panel.export.save(path)
    assert saved.args[1] is None
    if suffix == "svg":
        drawing = path.read_text()
        assert QSvgRenderer(str(path)).isValid()
        assert all(f"--layers {n}" in drawing for n in range(count)), "names are words, not pictures"
        assert drawing.count("<polyline") + drawing.count("<path") > count, "and curves are lines"
        return
    image = QImage(str(path))
    assert (image.width(), image.height()) == (2 * what.size.width(), 2 * what.size.height())
    last = what.slots[-1]
    assert what.size.height() > what._top + last.geometry().bottom()
    for place in range(count):
        colour = QColor(theme.run_colour(place)).rgb()
        assert any(
            image.pixel(x, y) == colour for y in range(2 * what._top) for x in range(0, image.width(), 2)
        ), "its line in the legend"


def test_a_picture_has_the_plots_that_nobody_has_scrolled_to(qtbot: QtBot, tmp_path: Path) -> None:
    panel = ChartPanel()
    area = QScrollArea()
    area.setWidget(panel)
    area.setWidgetResizable(True)
    qtbot.addWidget(area)
    area.resize(500, 300)
    names = {f"metric{n}": 1.0 for n in range(12)}
    panel.show_sources([Source("now", run_of(*(step(at, A, fit=0, **names) for at in range(9))))])
    area.show()
    drawn(qtbot, panel)
    assert 0 < len(panel.plots) < 12, "those out of sight are not made"
    with qtbot.waitSignal(panel.export.saved, timeout=LIMIT_MS):
        panel.export.save(tmp_path / "plots.png")
    assert len(panel.plots) == 12
    assert all(len(plot._items[0][2].getData()[0]) == 9 for plot in panel.plots)
    area.verticalScrollBar().setValue(area.verticalScrollBar().maximum())
    drawn(qtbot, panel)
    area.hide()


# --- moving ------------------------------------------------------------------------------------------------


def zoomable(qtbot: QtBot, panel: ChartPanel) -> tuple[Plot, Plot]:
    steps = (step(n, loss=100.0 - n, accuracy=n / 100) for n in range(100))
    shown(qtbot, panel, Source("now", run_of(*steps)))
    drawn(qtbot, panel)
    first, second = panel.plots
    return first, second


def drag(plot: Plot, left: float, right: float) -> None:
    """Drags from one fraction of the width to another."""
    area, over = plot.canvas.area, plot.canvas.viewport()
    begin = QPoint(round(area.left() + left * area.width()), round(area.center().y()))
    end = QPoint(round(area.left() + right * area.width()), begin.y() + 9)
    QTest.mousePress(over, Qt.MouseButton.LeftButton, pos=begin)
    for at in (begin + QPoint(12, 0), (begin + end) / 2, end):
        QTest.mouseMove(over, at)
        QApplication.processEvents()
    QTest.mouseRelease(over, Qt.MouseButton.LeftButton, pos=end)


def test_a_move_during_a_drawing_is_drawn_right_after_it_however_long_drawings_take(
    qtbot: QtBot, panel: ChartPanel
) -> None:
    loss, accuracy = zoomable(qtbot, panel)
    drag(loss, 0.2, 0.8)
    panel._redraw()
    assert panel._pieces is not None, "a drawing is under way"
    panel.cost_s = 1e6
    loss.canvas.setXRange(30, 50, padding=0)
    loss.canvas.moved.emit()
    for _ in range(9):
        if not panel._pieces:
            break
        panel._timer.stop()
        panel._redraw()
    assert panel._timer.isActive() and panel._timer.remainingTime() < 15
    qtbot.waitUntil(lambda: accuracy.range == loss.range, timeout=LIMIT_MS)


def test_a_plot_beside_it_is_painted_once_for_each_move(qtbot: QtBot, panel: ChartPanel) -> None:
    loss, accuracy = zoomable(qtbot, panel)
    drag(loss, 0.2, 0.8)
    qtbot.waitUntil(lambda: accuracy.range == loss.range and not panel._timer.isActive(), timeout=LIMIT_MS)
    QApplication.processEvents()
    painted = Painted()
    accuracy.canvas.viewport().installEventFilter(painted)
    loss.canvas.setXRange(30, 50, padding=0)
    loss.canvas.moved.emit()
    qtbot.waitUntil(lambda: accuracy.range == loss.range and not panel._timer.isActive(), timeout=LIMIT_MS)
    QApplication.processEvents()
    assert painted.count == 1


class Painted(QObject):
    """Counts how often what it watches is painted."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.Paint
        return False


def test_nothing_can_be_seen_beyond_the_data(qtbot: QtBot, panel: ChartPanel) -> None:
    loss, _ = zoomable(qtbot, panel)
    whole = panel._range
    assert whole is not None
    for _ in range(40):
        qtbot.keyClick(loss.canvas, Qt.Key.Key_Minus)
        qtbot.keyClick(loss.canvas, Qt.Key.Key_Left)
    assert whole[0] <= loss.range[0] and loss.range[1] <= whole[1] + 1e-9


def test_a_plot_goes_to_full_size_and_back(qtbot: QtBot, panel: ChartPanel) -> None:
    loss, accuracy = zoomable(qtbot, panel)
    qtbot.mouseClick(accuracy.enlarge, Qt.MouseButton.LeftButton)
    assert accuracy.isVisible() and not loss.isVisible()
    qtbot.waitUntil(lambda: accuracy.width() > 0.9 * panel.grid.width(), timeout=LIMIT_MS)
    accuracy.canvas.setFocus()
    qtbot.keyClick(accuracy.canvas, Qt.Key.Key_Escape)
    assert accuracy.isVisible() and loss.isVisible()
    qtbot.mouseClick(loss.enlarge, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(loss.enlarge, Qt.MouseButton.LeftButton)
    assert accuracy.isVisible()


def test_a_curve_of_many_points_becomes_one_of_few_as_its_plot_grows(qtbot: QtBot, panel: ChartPanel) -> None:
    shown(qtbot, panel, Source("now", run_of(*(step(n, loss=n % 7) for n in range(2000)))))
    plot = panel.plots[0]
    band = plot._items[0][0]
    assert not band.boundingRect().isNull(), "an extent for each column"
    drag(plot, 0.45, 0.5)
    qtbot.waitUntil(lambda: band.boundingRect().isNull(), timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: 50 < len(plot._items[0][2].getData()[0]) < 300, timeout=LIMIT_MS)


def test_a_band_has_the_colour_and_the_extent_of_its_own_line(qtbot: QtBot, panel: ChartPanel) -> None:
    low, high = (run_of(*(step(n, loss=base + n % 7) for n in range(2000))) for base in (0, 20))
    shown(qtbot, panel, Source("low", low), Source("high", high))
    plot = panel.plots[0]
    found = [(items[0], curve.colour) for items, curve in zip(plot._items, plot.curves, strict=True)]
    assert len({colour for _, colour in found}) == 2
    for (band, colour), base in zip(found, (0, 20), strict=True):
        assert band._colour == QColor(theme.faded(colour))
        extent = band.boundingRect()
        assert (extent.top(), extent.bottom()) == (base, base + 6)
        assert extent.left() < 20 and extent.right() > 1980


def test_a_logarithmic_scale_is_one_plots_own(qtbot: QtBot, panel: ChartPanel) -> None:
    loss, accuracy = zoomable(qtbot, panel)
    qtbot.mouseClick(loss.log, Qt.MouseButton.LeftButton)
    drawn(qtbot, panel)
    assert loss.canvas.viewRange()[1][1] < 3
    assert (loss.look.log, accuracy.look.log) == (True, False)


def test_a_peak_may_be_left_out_of_the_value_axis(qtbot: QtBot, panel: ChartPanel) -> None:
    """A first step of a thousand times the loss leaves nothing else to see."""
    losses = [5_000.0, *(2.0 - n / 100 for n in range(100))]
    shown(qtbot, panel, Source("now", run_of(*(step(n, loss=loss) for n, loss in enumerate(losses)))))
    (plot,) = panel.plots
    assert plot.canvas.viewRange()[1][1] > 5_000
    qtbot.mouseClick(
        panel.bar.trimmed, Qt.MouseButton.LeftButton, pos=QPoint(8, panel.bar.trimmed.height() // 2)
    )
    assert panel.bar.trimmed.isChecked()
    qtbot.waitUntil(lambda: plot.canvas.viewRange()[1][1] < 3, timeout=LIMIT_MS)
    assert plot.canvas.viewRange()[1][0] < 1.01, "the newest values stay in sight"
    panel.bar.trimmed.click()
    qtbot.waitUntil(lambda: plot.canvas.viewRange()[1][1] > 5_000, timeout=LIMIT_MS)


def test_the_difference_to_a_run_is_drawn_and_saved_where_both_reach(
    qtbot: QtBot, panel: ChartPanel, tmp_path: Path
) -> None:
    long = run_of(*(step(n, loss=3.0) for n in range(20)))
    short = run_of(*(step(n, loss=2.0) for n in range(10)))
    shown(qtbot, panel, Source("long", long), Source("short", short))
    assert [panel.bar.base.itemText(n) for n in range(3)] == [
        "Values",
        "Difference to long",
        "Difference to short",
    ]
    panel.bar.base.setCurrentIndex(2)
    drawn(qtbot, panel)
    curve, base = panel.plots[0].curves
    assert list(curve.raw.y[:10]) == [1.0] * 10 and all(map(math.isnan, curve.raw.y[10:]))
    assert list(base.raw.y) == [0.0] * 10
    panel._point_at(5.0)
    cursor = panel.plots[0].marks.cursor_at
    assert cursor is not None and [mark.words for mark in cursor.marks] == [
        "long, training +1",
        "short, training +0",
    ]
    with qtbot.waitSignal(panel.export.saved, timeout=LIMIT_MS):
        panel.export.save(tmp_path / "plots.csv")
    rows = list(csv.DictReader((tmp_path / "plots.csv").read_text().splitlines()))
    differences = [(row["run"], row["difference to short"]) for row in rows]
    assert differences == [("long", "1.0")] * 10 + [("short", "0.0")] * 10


def test_values_that_are_no_numbers_are_marked_where_they_are(qtbot: QtBot, panel: ChartPanel) -> None:
    values = [1.0, 0.9, math.nan, math.inf, 0.7, -math.inf, 0.5]
    shown(qtbot, panel, Source("now", run_of(*(step(n, loss=value) for n, value in enumerate(values)))))
    plot = panel.plots[0]
    assert [mark.x for mark in plot.marks.bad] == [2.0, 3.0, 5.0]
    said, area = words_in(plot), plot.canvas.area
    low = [place for place in said if place.bottom() > area.bottom() - 12]
    high = [place for place in said if place.top() < area.top() + 6 and place.width() < 20]
    assert (len(low), len(high)) == (2, 1)


def test_the_smoothing_that_somebody_wants_is_kept_once(
    qtbot: QtBot, bridge: Bridge, core: FakeCore, panel: ChartPanel
) -> None:
    panel.bar.keep_in(bridge)
    panel.bar.show_smoothing(0.3)
    assert panel.bar.look.smoothing == 0.3
    for value in (40, 50, 60):
        panel.bar.smoothing.setValue(value)
    qtbot.waitUntil(lambda: bool(core.commands), timeout=LIMIT_MS)
    assert core.commands == [ChangeSettings(change=SettingsChange(smoothing=0.6))]
