"""Gestures over plots by a mouse in front of a window: Qt decides which widget gets its events."""

from __future__ import annotations

from collections.abc import Iterator

import pyqtgraph as pg
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.charts.panel import ChartPanel
from app.charts.plot import Plot
from app.charts.sources import Source
from tests.app.charts.test_panel import LIMIT_MS, drawn, many, run_of
from tests.core.report.test_points import step

LEFT, NO_BUTTON = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
CTRL, SHIFT, NO_KEY = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.NoModifier,
)


class Desk:
    """A page of plots, longer than its window, and a mouse."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot = qtbot
        self.page = QScrollArea()
        qtbot.addWidget(self.page)
        self.page.setWidgetResizable(True)
        inner = QWidget()
        layout = QVBoxLayout(inner)
        self.panel = ChartPanel()
        self.panel.setFixedHeight(500)
        layout.addWidget(self.panel)
        layout.addStretch(1)
        inner.setMinimumHeight(2000)
        self.page.setWidget(inner)
        self.page.resize(900, 700)

    def show(self, *sources: Source) -> None:
        self.panel.show_sources(sources)
        self.page.show()
        drawn(self.qtbot, self.panel)
        drawn(self.qtbot, self.panel)

    def place(self, over: QWidget, at: QPointF) -> QPoint:
        return over.mapTo(self.page, at.toPoint())

    def part(self, plot: Plot, part: float) -> QPoint:
        """The middle of the plot's height, at this part of its width."""
        area = plot.canvas.area
        at = QPointF(area.left() + part * area.width(), area.center().y())
        return self.place(plot.canvas.viewport(), at)

    def drag(self, plot: Plot, begin: float, end: float, held: Qt.KeyboardModifier = NO_KEY) -> None:
        window, first, last = self.page.windowHandle(), self.part(plot, begin), self.part(plot, end)
        QTest.mouseMove(window, first)
        QTest.mousePress(window, LEFT, held, first)
        for at in (first + QPoint(12, 0), (first + last) / 2, last + QPoint(0, 9)):
            # QTest.mouseMove tells no keys.
            where = QPointF(at), QPointF(window.mapToGlobal(at))
            QApplication.sendEvent(window, QMouseEvent(QEvent.Type.MouseMove, *where, NO_BUTTON, LEFT, held))
        QTest.mouseRelease(window, LEFT, held, last + QPoint(0, 9))

    def turn_wheel(self, at: QPoint, held: Qt.KeyboardModifier = NO_KEY, by: int = 240) -> None:
        QTest.wheelEvent(self.page.windowHandle(), QPointF(at), QPoint(0, by), QPoint(), held)

    def click(self, over: QWidget, held: Qt.KeyboardModifier = NO_KEY) -> None:
        at = self.place(over, QPointF(over.rect().center()))
        QTest.mouseClick(self.page.windowHandle(), LEFT, held, at)


@pytest.fixture
def desk(qtbot: QtBot) -> Iterator[Desk]:
    limit = pg.getConfigOption("mouseRateLimit")
    pg.setConfigOption("mouseRateLimit", 0)  # Moves that follow within 10 ms would be ignored.
    desk = Desk(qtbot)
    yield desk
    desk.page.hide()
    pg.setConfigOption("mouseRateLimit", limit)


def two(desk: Desk) -> tuple[Plot, Plot]:
    """Plots of a run of 100 steps."""
    desk.show(Source("now", run_of(*(step(n, loss=100.0 - n, accuracy=n / 100) for n in range(100)))))
    first, second = desk.panel.plots
    return first, second


def test_a_drag_selects_for_all_plots_and_a_double_click_shows_everything(qtbot: QtBot, desk: Desk) -> None:
    loss, accuracy = two(desk)
    whole = loss.range
    desk.drag(loss, 0.2, 0.6)
    qtbot.waitUntil(lambda: not desk.panel.following, timeout=LIMIT_MS)
    assert loss.range == pytest.approx((20, 60), abs=2)
    qtbot.waitUntil(lambda: accuracy.range == loss.range, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: loss.canvas.viewRange()[1][0] > 30, timeout=LIMIT_MS)
    low, high = loss.canvas.viewRange()[1]
    assert 30 < low < 42 and 78 < high < 88, "the values fit what is seen"
    QTest.mouseDClick(desk.page.windowHandle(), LEFT, NO_KEY, desk.part(accuracy, 0.5))
    qtbot.waitUntil(lambda: desk.panel.following, timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: loss.range == pytest.approx(whole, abs=1), timeout=LIMIT_MS)


def test_a_shaky_click_selects_nothing_and_a_drag_with_shift_moves_along(qtbot: QtBot, desk: Desk) -> None:
    loss, _ = two(desk)
    whole = loss.range
    QTest.mouseClick(desk.page.windowHandle(), LEFT, NO_KEY, desk.part(loss, 0.5))
    assert loss.range == whole
    desk.drag(loss, 0.2, 0.6)
    qtbot.waitUntil(lambda: not desk.panel.following, timeout=LIMIT_MS)
    left, right = loss.range
    desk.drag(loss, 0.75, 0.25, SHIFT)
    qtbot.waitUntil(lambda: loss.range[0] > left + 3, timeout=LIMIT_MS)
    assert loss.range[1] - loss.range[0] == pytest.approx(right - left)


def test_ctrl_and_the_wheel_zoom_about_the_pointer_and_the_wheel_alone_scrolls_the_page(
    qtbot: QtBot, desk: Desk
) -> None:
    loss, accuracy = two(desk)
    before, bar = loss.range, desk.page.verticalScrollBar()
    desk.turn_wheel(desk.part(loss, 0.25), CTRL)
    qtbot.waitUntil(lambda: loss.range != before, timeout=LIMIT_MS)
    pointed = before[0] + 0.25 * (before[1] - before[0])
    left, right = loss.range
    assert right - left < 0.9 * (before[1] - before[0])
    assert left + 0.25 * (right - left) == pytest.approx(pointed, abs=1.5)
    qtbot.waitUntil(lambda: accuracy.range == loss.range, timeout=LIMIT_MS)
    assert bar.value() == 0
    zoomed = loss.range
    desk.turn_wheel(desk.part(loss, 0.25), by=-240)
    assert bar.value() > 0 and loss.range == zoomed


def test_the_pointer_shows_the_values_under_it_in_all_plots_until_it_leaves(qtbot: QtBot, desk: Desk) -> None:
    loss, accuracy = two(desk)
    window = desk.page.windowHandle()
    QTest.mouseMove(window, desk.part(loss, 0.5))
    qtbot.waitUntil(lambda: accuracy.marks.cursor_at is not None, timeout=LIMIT_MS)
    cursor = loss.marks.cursor_at
    assert cursor is not None and cursor.x == pytest.approx(50, abs=1)
    assert cursor.marks[0].words == f"training {100 - cursor.x:g}"
    assert cursor.head.startswith(f"step {cursor.x:g} · 0:")
    QTest.mouseMove(window, desk.place(desk.panel.bar, QPointF(3, 3)))
    qtbot.waitUntil(lambda: accuracy.marks.cursor_at is loss.marks.cursor_at is None, timeout=LIMIT_MS)


def test_a_click_on_the_legend_hides_a_run_and_shows_it_and_with_ctrl_it_is_alone(
    qtbot: QtBot, desk: Desk
) -> None:
    desk.show(*many(3))
    plot = desk.panel.plots[0]

    def hidden() -> list[bool]:
        return [curve.hidden for curve in plot.curves]

    _, second, _ = desk.panel.legend.entries
    desk.click(second)
    qtbot.waitUntil(lambda: hidden() == [False, True, False], timeout=LIMIT_MS)
    qtbot.waitUntil(lambda: len(plot.marks.ends) == 2, timeout=LIMIT_MS)
    assert [items[2].isVisible() for items in plot._items] == [True, False, True]
    assert second.name not in {run for run, *_ in desk.panel._table().curves}
    desk.click(second)
    qtbot.waitUntil(lambda: not any(hidden()), timeout=LIMIT_MS)
    desk.click(second, CTRL)
    qtbot.waitUntil(lambda: hidden() == [True, False, True], timeout=LIMIT_MS)
    desk.click(second, CTRL)
    qtbot.waitUntil(lambda: not any(hidden()), timeout=LIMIT_MS)
