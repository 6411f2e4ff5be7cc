"""The panel of plots: what it shows, when it draws, what it writes."""

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
from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot

from app import theme
from app.charts.panel import ChartPanel
from app.charts.picture import paint, scene
from app.charts.plot import Plot
from app.charts.points import RunPoints, Source
from core.report.curves import CPU_USE, GPU_USE
from core.vocabulary.events import MemberEndedEpoch
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import LaptopUsed
from core.vocabulary.progress import EpochEnd
from tests.app import world
from tests.app.charts.test_points import RUN, A, B, epoch, plan, step
from tests.core.fake_node import ME

LIMIT_MS = 60_000


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[ChartPanel]:
    panel = ChartPanel()
    qtbot.addWidget(panel)
    panel.resize(800, 400)
    yield panel
    panel.hide()


def run_of(*events: object) -> RunPoints:
    points = RunPoints(plan())
    for event in events:
        points.hear(event)  # type: ignore[arg-type]
    return points


def drawn(qtbot: QtBot, panel: ChartPanel) -> None:
    """Waits until the next drawing."""
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


def test_loss_and_the_next_metric_have_a_plot(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(
        *(step(n, accuracy=n / 9, loss=9.0 - n, extra=1.0) for n in range(9)), epoch(8, val_loss=3.0)
    )
    shown(qtbot, panel, Source("now", points))
    assert [plot.shown for plot in panel.plots] == ["loss", "accuracy"]
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
    points.hear(step(1, loss=2.0))
    points.hear(epoch(1, val_loss=2.5))
    drawn(qtbot, panel)
    assert [len(curve.raw) for curve in panel.plots[0].curves] == [2, 1]


def test_nothing_is_drawn_while_it_is_hidden(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(step(0, loss=3.0))
    shown(qtbot, panel, Source("now", points))
    panel.hide()
    before = panel.redraws
    points.hear(step(1, loss=2.0))
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


def test_moving_pauses_and_follow_goes_on(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(*(step(n, loss=3.0 - n / 10) for n in range(20)))
    shown(qtbot, panel, Source("now", points))
    plot = panel.plots[0]
    plot.canvas.setXRange(2, 5, padding=0)
    plot.canvas.moved.emit()
    assert not panel.following
    assert panel.bar.follow.isVisible()
    points.hear(step(50, loss=0.5))
    drawn(qtbot, panel)
    assert plot.canvas.viewRange()[0] == pytest.approx([2, 5])
    panel.bar.follow.click()
    qtbot.waitUntil(lambda: plot.canvas.viewRange()[0][1] > 49, timeout=LIMIT_MS)
    assert not panel.bar.follow.isVisible()


def test_keys_move_a_plot(qtbot: QtBot, panel: ChartPanel) -> None:
    from PySide6.QtCore import Qt

    shown(qtbot, panel, Source("now", run_of(*(step(n, loss=1.0) for n in range(20)))))
    plot = panel.plots[0]
    left = plot.canvas.viewRange()[0][0]
    qtbot.keyClick(plot.canvas, Qt.Key.Key_Right)
    assert plot.canvas.viewRange()[0][0] > left
    assert not panel.following


def test_smoothing_log_scale_and_time_change_the_look(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(*(step(n, loss=10.0 ** (n - 5)) for n in range(10)))
    shown(qtbot, panel, Source("now", points))
    panel.bar.smoothing.setValue(0)
    panel.bar.log.setChecked(True)
    panel.bar.axis.setCurrentIndex(1)
    drawn(qtbot, panel)
    plot = panel.plots[0]
    assert plot.curves[0].smooth is None
    assert plot.canvas.viewRange()[1][1] < 5
    assert plot.canvas.getPlotItem().getAxis("bottom").labelText == "time"


def test_a_value_that_is_no_number_is_said_with_its_step(qtbot: QtBot, panel: ChartPanel) -> None:
    shown(qtbot, panel, Source("now", run_of(step(0, loss=1.0), step(7, loss=math.nan))))
    assert panel.plots[0].flag.isVisible()
    assert panel.plots[0].flag.text() == "training is NaN from step 7 on"


def test_two_runs_lie_over_each_other(qtbot: QtBot, panel: ChartPanel) -> None:
    one, two = run_of(step(0, loss=1.0), step(1, loss=0.5)), run_of(step(0, loss=2.0), step(1, loss=1.5))
    shown(qtbot, panel, Source("one", one), Source("two", two))
    assert panel.legend.names == ["one", "two"]
    assert [curve.name for curve in panel.plots[0].curves] == ["one, training", "two, training"]
    assert len({curve.colour for curve in panel.plots[0].curves}) == 2


def test_members_are_called_by_their_names(qtbot: QtBot, panel: ChartPanel) -> None:
    points = RunPoints(plan("own"))
    points.hear(step(0, A, loss=1.0))
    points.hear(step(0, B, loss=1.0))
    shown(qtbot, panel, Source("now", points, {A: "Ada", B: "<b>Bob</b>"}))
    assert panel.legend.names == ["Ada, training", "<b>Bob</b>, training"]


def test_other_metrics_can_be_chosen_and_one_always_stays(qtbot: QtBot, panel: ChartPanel) -> None:
    shown(qtbot, panel, Source("now", run_of(step(0, loss=1.0, accuracy=0.5, auc=0.5))))
    for action in panel.bar.menu.actions():
        if action.isChecked() and action.text() == "accuracy":
            action.trigger()
            break
    drawn(qtbot, panel)
    assert [plot.shown for plot in panel.plots] == ["loss"]
    next(action for action in panel.bar.menu.actions() if action.text() == "loss").trigger()
    drawn(qtbot, panel)
    assert [plot.shown for plot in panel.plots] == ["loss"]


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
    assert use.range == pytest.approx((2, 5))
    panel.follow()
    qtbot.waitUntil(lambda: use.range[1] > 7, timeout=LIMIT_MS)
    assert use.range == pytest.approx(loss.range)


def test_all_plots_have_one_crosshair(qtbot: QtBot, panel: ChartPanel) -> None:
    points = with_use(run_of(*(step(n, loss=9.0 - n, accuracy=0.5) for n in range(9))))
    shown(qtbot, panel, Source("now", points))
    loss, accuracy = panel.plots
    middle = loss.canvas.area.center().toPoint()
    qtbot.mouseMove(loss.canvas.viewport(), middle)
    qtbot.waitUntil(lambda: loss.marks.cursor_at is not None, timeout=LIMIT_MS)
    assert accuracy.marks.cursor_at is not None and loss.marks.cursor_at is not None
    assert accuracy.marks.cursor_at.x == loss.marks.cursor_at.x == 4.0
    assert loss.marks.cursor_at.head == "step 4 · 0:04"
    assert loss.marks.cursor_at.marks[0].words == "training 5"
    panel.grab()
    qtbot.mouseMove(loss.canvas.viewport(), QPoint(1, 1))
    qtbot.waitUntil(lambda: accuracy.marks.cursor_at is None, timeout=LIMIT_MS)


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
    drawn(qtbot, panel)
    assert panel.legend.names == ["training (smoothed)", "training", "validation"]


def test_a_picture_is_what_is_seen_with_title_legend_and_margins(
    qtbot: QtBot, panel: ChartPanel, tmp_path: Path
) -> None:
    from app.charts.picture import scene

    points = with_use(run_of(*(step(n, loss=9.0 - n) for n in range(9)), epoch(8, val_loss=3.0)))
    shown(qtbot, panel, Source("digits.py", points, {A: "Ada", B: "Bob"}))
    panel.bar.smoothing.setValue(50)
    drawn(qtbot, panel)
    panel.plots[0].canvas.setXRange(2, 5, padding=0)
    panel.plots[0].canvas.moved.emit()
    seen = scene("digits.py", panel.all_plots)
    assert seen.title == "digits.py"
    assert [panel.title for panel in seen.panels] == ["loss", GPU_USE]
    assert seen.panels[0].x == pytest.approx((2, 5))
    names = [(line.name, line.faint, line.dashed) for line in seen.panels[0].lines]
    assert names == [
        ("training", True, False),
        ("training (smoothed)", False, False),
        ("validation", False, True),
    ]
    path = tmp_path / "plots.png"
    with qtbot.waitSignal(panel.export.saved, timeout=LIMIT_MS):
        panel.export.save(path)
    image = QImage(str(path))
    assert (image.width(), image.height()) == (2 * seen.size.width(), 2 * seen.size.height())
    white = QColor("#ffffff")
    for at in range(0, image.height(), 7):
        assert image.pixelColor(2, at) == image.pixelColor(image.width() - 3, at) == white, "a margin"
    title = [image.pixelColor(x, y).lightness() for x in range(240, 500) for y in range(40, 100)]
    assert min(title) < 100, "the title"


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


def test_where_it_was_saved_is_said_for_a_while(qtbot: QtBot, panel: ChartPanel, tmp_path: Path) -> None:
    panel.export.said.shown_ms = 50
    shown(qtbot, panel, Source("now", run_of(step(0, loss=1.0))))
    panel.export.save(tmp_path / "plots.png")
    qtbot.waitUntil(lambda: "plots.png" in panel.export.said.text().replace("\u200b", ""), timeout=LIMIT_MS)
    qtbot.waitUntil(panel.export.said.isHidden, timeout=LIMIT_MS)


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


def test_member_ids_that_nobody_named_are_shortened(qtbot: QtBot, panel: ChartPanel) -> None:
    points = RunPoints(plan("own"))
    points.hear(step(0, DeviceId("c" * 64), loss=1.0))
    shown(qtbot, panel, Source("now", points))
    assert panel.legend.names == ["cccccccc, training"]


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
        points.hear(step(number, A, fit=0, **{metric: value}))
        if number % 20 == 19:
            logs = {f"val_{metric}": value * (1.02 if falling else 0.98)}
            end = EpochEnd(
                at_s=100.0 + number, epoch=number // 20, epochs=12, step=number, logs=logs, seconds=1
            )
            points.hear(MemberEndedEpoch(run=RUN, device=A, epoch=end))
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
    assert not any(plot.marks.covers(place.adjusted(6, 0, -6, 0)) for place in said)
    assert all(plot.canvas.area.adjusted(-8, -1, 8, 1).contains(place) for place in said)
    bottom = plot.canvas.pixel(points.turns[0].step, 0.0)
    assert plot.marks.covers(QRectF(bottom.x() - 2, 0, 4, 1000)), "it sees the curve where it is"


def test_turns_follow_the_axis_and_are_left_out_of_several_runs(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(step(0, loss=1.0), step(100, loss=0.5))
    points.add_turn(B, "left", 50.0, 40.0)
    shown(qtbot, panel, Source("one", points, {B: "ben"}))
    assert [(turn.x, turn.words) for turn in panel.plots[0].marks.turns] == [(40.0, "ben left")]
    panel.bar.axis.setCurrentIndex(1)
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


def test_a_saved_picture_has_the_turns_that_are_seen(qtbot: QtBot, panel: ChartPanel) -> None:
    points = run_of(*(step(n, loss=1.0 - n / 200) for n in range(100)))
    points.add_turn(B, "away", 50.0, 50.0)
    points.add_turn(B, "back", 60.0, 60.0)
    shown(qtbot, panel, Source("one", points, {B: "ben"}))
    found = scene("one", panel.plots).panels[0]
    assert [(x, words) for x, words, _ in found.turns] == [(50.0, "ben away"), (60.0, "ben back")]
    assert found.turns[0][2] == theme.LIGHT.warning, "light, whatever the screen is"
    image = QImage(scene("one", panel.plots).size, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    paint(scene("one", panel.plots), painter)
    painter.end()
    amber = QColor(theme.LIGHT.warning).rgb()
    columns = {
        x for x in range(image.width()) for y in range(300, image.height() - 80) if image.pixel(x, y) == amber
    }
    assert columns and max(columns) - min(columns) <= 3, "one dotted line"
