"""The panel of plots: what it shows, when it draws, what it writes."""

import csv
import math
import threading
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import shiboken6
from pytestqt.qtbot import QtBot

from app.charts.panel import ChartPanel
from app.charts.points import RunPoints, Source
from core.vocabulary.ids import DeviceId
from tests.app.charts.test_points import A, B, epoch, plan, step

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
    assert plot.canvas.getPlotItem().getAxis("bottom").labelText == "seconds"


def test_a_value_that_is_no_number_is_said_with_its_step(qtbot: QtBot, panel: ChartPanel) -> None:
    shown(qtbot, panel, Source("now", run_of(step(0, loss=1.0), step(7, loss=math.nan))))
    assert panel.plots[0].flag.isVisible()
    assert panel.plots[0].flag.text() == "training is NaN from step 7 on"


def test_two_runs_lie_over_each_other(qtbot: QtBot, panel: ChartPanel) -> None:
    one, two = run_of(step(0, loss=1.0), step(1, loss=0.5)), run_of(step(0, loss=2.0), step(1, loss=1.5))
    shown(qtbot, panel, Source("one", one), Source("two", two))
    assert panel.legend.names == ["one, training", "two, training"]
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
