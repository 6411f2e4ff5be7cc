"""Rules for every screen: one width, no sideways scrolling, everything reachable, at any text size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QItemSelectionModel, QPoint, QRect, Qt
from PySide6.QtGui import QScreen
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QGraphicsView,
    QLineEdit,
    QScrollArea,
    QSlider,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app import theme
from app.views.consent import ConsentSheet
from app.views.lifecycle import ShutdownSheet
from app.views.pairing import PairingSheet
from app.views.runs import RunsView
from app.views.settings import SettingsView
from app.views.train import TrainView
from app.views.welcome import WelcomeView
from app.widgets.flow import Flow
from app.widgets.navigation import DEVICES, MACHINES, RUNS, SCREENS, SETTINGS, TRAIN
from app.widgets.page import Page
from app.window import Window
from core.sweep.kept import entry_of
from core.vocabulary import events as ev
from core.vocabulary.access import Grant
from core.vocabulary.answers import Answer, RunDetails, RunList
from core.vocabulary.commands import AnalyseScript, Command, GetRun, ListRuns
from core.vocabulary.phases import Finished
from tests.app import world
from tests.app.cli.test_sweep import BEGUN, finished
from tests.app.fake_core import FakeCore
from tests.app.laptops import code_shown, consent_asked, pairing_began
from tests.core.fake_node import ME, OTHER

LONG = "Donaudampfschifffahrtsgesellschaft 笔记本电脑 кэмпъютар"
SIZES = ((1120, 760), (1000, 720))
SMALL = (1024, 640)
LIMIT_MS = 60_000
CONTROLS = (QAbstractButton, QLineEdit, QComboBox, QSlider, QAbstractSpinBox)
Show = Callable[[int], QWidget]


@pytest.fixture
def window(window: Window, core: FakeCore) -> Window:
    """With a script and a paired laptop, whose names have maximum length."""
    core.answers[AnalyseScript] = world.script_read("a_rather_long_name_of_a_script_that_trains_digits.py")
    window.resize(*SIZES[0])
    core.happen(*world.linked(name=LONG))
    return window


@pytest.fixture
def train(window: Window) -> TrainView:
    view = window.view(TRAIN)
    assert isinstance(view, TrainView)
    return view


@pytest.fixture
def running(window: Window, train: TrainView, core: FakeCore, qtbot: QtBot) -> TrainView:
    """A run with laptop readings, in front."""
    window.go_to(TRAIN)
    members = ((ME, "here", 48), (OTHER, LONG, 16))
    core.happen(*world.begun(world.plan(members=members)))
    for step in range(40):
        core.happen(*(world.progressed(device, world.progress(step)) for device in (ME, OTHER)))
    core.happen(*(world.told(device, world.reading(gpus=(world.gpu(),))) for device in (ME, OTHER)))
    core.happen(world.logged(ME, "x" * 400), world.logged(OTHER, "here", task="worker:0"))
    qtbot.waitUntil(lambda: bool(train.live.charts.plots), timeout=LIMIT_MS)
    return train


@pytest.fixture
def large_text(qapp: QApplication) -> Iterator[None]:
    """Text at 200 %."""
    before = qapp.font()
    font = qapp.font()
    font.setPointSizeF(before.pointSizeF() * 2)
    qapp.setFont(font)
    theme.paint()
    yield
    qapp.setFont(before)
    theme.paint()


def settle(qtbot: QtBot) -> None:
    for _ in range(4):
        qtbot.wait(5)
        QApplication.processEvents()  # all of them: on a busy machine the wait may end before any


def bars(window: QWidget) -> list[str]:
    """Areas that scroll sideways."""
    return [
        f"{type(area).__name__} {area.accessibleName()}"
        for area in window.findChildren(QAbstractScrollArea)
        if area.isVisible()
        and area.horizontalScrollBar().maximum() > 0
        and not isinstance(area, QGraphicsView)  # a plot: it has none
    ]


def beyond(window: QWidget) -> list[str]:
    """Interactive widgets that extend beyond the window's right edge."""
    return [
        f"{type(each).__name__} {each.objectName()} {each.accessibleName()}"
        for kind in (QAbstractButton, QLineEdit, QSlider)
        for each in window.findChildren(kind)
        if each.isVisible() and each.mapTo(window, QPoint(each.width(), 0)).x() > window.width() + 1
    ]


def cut(window: QWidget) -> list[str]:
    """Widgets of a flow's further row that are cut off."""
    return [
        f"{type(piece).__name__} {piece.objectName()}"
        for flow in window.findChildren(Flow)
        if flow.isVisible()
        for piece in flow.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        if piece.isVisible() and not flow.rect().contains(piece.geometry())
    ]


def column(view: QWidget) -> int:
    """The width of a screen's content."""
    page = next(page for page in view.findChildren(Page) if page.isVisible())
    return page.body.geometry().width()


def out_of_reach(window: QWidget) -> list[str]:
    """Enabled controls in front that no scrolling brings into the window."""
    found = []
    for each in (each for kind in CONTROLS for each in window.findChildren(kind)):
        if not (each.isVisible() and each.isEnabled()):
            continue
        seen, above = window.rect(), each.parentWidget()
        while above is not None and above is not window:
            if isinstance(above, QScrollArea):
                above.ensureWidgetVisible(each, 0, each.height() // 2)  # of a field Qt shows only the cursor
            above = above.parentWidget()
        above = each.parentWidget()
        while above is not None and above is not window:
            seen &= QRect(above.mapTo(window, QPoint()), above.size())
            above = above.parentWidget()
        if not seen.adjusted(-1, -1, 1, 1).contains(QRect(each.mapTo(window, QPoint()), each.size())):
            words = each.text() if isinstance(each, QAbstractButton | QLineEdit) else ""
            found.append(f"{type(each).__name__} {each.objectName()} {each.accessibleName()} {words}")
    return found


def test_every_page_is_as_wide_as_the_others_with_a_scroll_bar_and_without(
    qtbot: QtBot, window: Window, running: TrainView
) -> None:
    scrolled = set()
    for size in (*SIZES, *((1120, height) for height in range(480, 1100, 60)), (1600, 900)):
        window.resize(*size)
        widths = {}
        for index in (DEVICES, TRAIN, MACHINES, SETTINGS):
            window.go_to(index)
            settle(qtbot)
            view = window.view(index)
            assert view is not None
            widths[index] = column(view)
            page = next(page for page in view.findChildren(Page) if page.isVisible())
            scrolled.add(page.verticalScrollBar().maximum() > 0)
        assert len(set(widths.values())) == 1, (size, widths)
    assert scrolled == {True, False}, "one page has to be longer than the window, another one not"


def test_the_window_fits_a_small_screen(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QScreen, "availableGeometry", lambda _: QRect(0, 24, *SMALL))
    window = Window(SCREENS)
    qtbot.addWidget(window, before_close_func=lambda window: setattr(window, "may_close", True))
    assert window.width() == SMALL[0] and window.pos() == QPoint(0, 24)
    frame = SMALL[1] - window.height()
    assert window.fontMetrics().height() <= frame <= 4 * window.fontMetrics().height()


def test_every_control_can_be_reached_on_a_small_screen(
    qtbot: QtBot, window: Window, train: TrainView, core: FakeCore
) -> None:
    window.resize(*SMALL)
    for index in range(len(SCREENS)):
        window.go_to(index)
        settle(qtbot)
        assert not out_of_reach(window), index
    window.go_to(TRAIN)
    train.setup.choose("/home/ada/digits/digits.py")
    for head in (train.setup.ready.more.head, train.setup.roles.tf_config.head, train.setup.options.head):
        head.setChecked(True)
    settle(qtbot)
    assert not out_of_reach(window)
    core.happen(*world.begun())
    core.happen(world.progressed(ME, world.progress(3)))
    train.show_live()
    train.live.log.head.setChecked(True)
    settle(qtbot)
    assert train.live.isVisible() and not out_of_reach(window)
    core.happen(world.phase(Finished()))
    settle(qtbot)
    assert train.live.outcome.isVisible() and not out_of_reach(window)


def test_runs_and_sweeps_can_be_used_on_a_small_screen(qtbot: QtBot, window: Window, core: FakeCore) -> None:
    entries = tuple(
        replace(world.entry(n, devices=("here", LONG), folder="/runs"), name=f"{n} {LONG}", note=LONG)
        for n in range(3)
    )
    sweep = replace(BEGUN.having(finished(1, 0.5)).having(finished(2, 0.25)), phase="stopped")
    swept = entry_of(sweep, Path("/sweeps"), ())
    core.answers[ListRuns] = RunList(runs=entries, sweeps=(swept,))

    def details(command: Command) -> Answer:
        assert isinstance(command, GetRun)
        if command.run == swept.run:
            return RunDetails(entry=swept, sweep=sweep)
        found = next((entry for entry in entries if entry.run == command.run), entries[0])  # or a trial
        return world.details(found, steps=46)

    core.answers[GetRun] = details
    window.resize(*SMALL)
    window.go_to(RUNS)
    view = window.view(RUNS)
    assert isinstance(view, RunsView)
    core.flush()
    for chosen in (), (0,), (0, 1, 2):
        view.show_list()
        view.table.clearSelection()
        for row in chosen:
            choose_too(view, entries[row].run)
        settle(qtbot)
        assert not out_of_reach(window) and not bars(window), chosen
        if chosen:
            (view.open if len(chosen) == 1 else view.compare).click()
            core.flush()
            qtbot.waitUntil(lambda: bool(view.past.charts.plots), timeout=LIMIT_MS)
            settle(qtbot)
            assert view.past.isVisible() and not out_of_reach(window) and not bars(window), chosen
    view.show_list()
    view.table.clearSelection()
    choose_too(view, swept.run)
    view.open.click()
    core.flush()
    assert view.swept is not None and view.swept.isVisible()
    charts = view.swept.card.curves.charts

    def drawn() -> bool:
        core.flush()
        return len(charts.sources) == 2 and bool(charts.plots)

    qtbot.waitUntil(drawn, timeout=LIMIT_MS)
    settle(qtbot)
    assert not out_of_reach(window) and not bars(window)
    view.swept.card.adds.click()
    settle(qtbot)
    assert not out_of_reach(window)


def choose_too(view: RunsView, run: str) -> None:
    row = next(row for row in range(view.sorted.rowCount()) if view.sorted.entry(row).run == run)
    flag = QItemSelectionModel.SelectionFlag
    view.table.selectionModel().select(view.sorted.index(row, 0), flag.Select | flag.Rows)


def test_a_question_can_be_answered_on_a_small_screen(qtbot: QtBot, window: Window, core: FakeCore) -> None:
    window.resize(*SMALL)
    sheet = ConsentSheet(core.bridge, window.sheet_parent())
    core.bridge.changed.connect(lambda events, state: sheet.show_state(state))
    asked = replace(
        consent_asked(),
        arguments=("--name", LONG * 20),
        checkpoint_bytes=5 << 20,
        opened=tuple(Grant(asked=f"~/{n}", path=f"/home/ada/{n}/{LONG}", write=n > 2) for n in range(5)),
        changed=True,
    )
    core.happen(asked)
    settle(qtbot)
    assert sheet.isVisible() and not out_of_reach(sheet) and not out_of_reach(window)
    sheet.details.head.click()
    settle(qtbot)
    assert sheet.files.isVisible() and not out_of_reach(sheet)


def test_the_first_steps_pairing_and_closing_can_be_used_on_a_small_screen(
    qtbot: QtBot, window: Window, core: FakeCore
) -> None:
    window.resize(*SMALL)
    welcome = WelcomeView(core.bridge)
    window.show_page(welcome)
    for step in range(welcome.steps.count()):
        welcome.steps.setCurrentIndex(step)
        welcome.show_state(core.state, ())
        settle(qtbot)
        assert welcome.isVisible() and not out_of_reach(window), step
    pairing = PairingSheet(core.bridge, window.sheet_parent())
    core.happen(pairing_began(), code_shown())
    pairing.show_state(core.state, ())
    qtbot.waitUntil(pairing.same.isEnabled, timeout=LIMIT_MS)
    assert pairing.same.isVisible() and not out_of_reach(pairing) and not out_of_reach(window)
    pairing.shut()
    closing = ShutdownSheet(window.sheet_parent())
    closing.ask(tray=True)
    settle(qtbot)
    assert closing.stay.isVisible() and not out_of_reach(closing) and not out_of_reach(window)


@pytest.mark.parametrize("size", SIZES)
def test_nothing_scrolls_sideways(
    qtbot: QtBot, window: Window, running: TrainView, size: tuple[int, int]
) -> None:
    window.resize(*size)
    running.live.log.head.setChecked(True)
    for index in (DEVICES, TRAIN, MACHINES, SETTINGS):
        window.go_to(index)
        settle(qtbot)
        assert not bars(window), index
    running.show_setup()
    running.setup.choose("/home/ada/digits/digits.py")
    running.setup.ready.more.head.setChecked(True)
    running.setup.roles.tf_config.head.setChecked(True)
    running.setup.options.head.setChecked(True)
    window.go_to(TRAIN)
    settle(qtbot)
    assert not bars(window)


def test_the_log_says_whose_it_is(qtbot: QtBot, window: Window, running: TrainView) -> None:
    window.resize(*SIZES[1])
    log = running.live.log
    log.head.setChecked(True)
    settle(qtbot)
    assert [log.pages.itemText(at)[:3] for at in range(2)] == ["her", "Don"], "nobody chose roles"
    log.pages.setCurrentIndex(1)
    assert log.pages.width() > log.pages.fontMetrics().horizontalAdvance("Donaudampfschiff")
    assert log.copy.mapTo(window, QPoint(log.copy.width(), 0)).x() < window.width()


def test_what_is_usual_in_the_table_of_laptops_is_not_cut_off(
    qtbot: QtBot, window: Window, running: TrainView
) -> None:
    window.resize(*SIZES[1])
    settle(qtbot)
    line = running.live.progress.table.lines[ME]
    places, metrics = line.places(), line.fontMetrics()
    for name, words in (
        ("Share", "of each batch"),
        ("GPU", "5.4 of 8.6 GB · 71 °C · 60 W"),
        ("CPU", "15.3 of 25.3 GB"),
        ("Network", "↑ 2.4 MB/s"),
        ("Waits", "of 100 ms"),
        ("State", "the others"),
    ):
        assert metrics.horizontalAdvance(words) <= places[name][1], name


def test_stop_is_as_wide_as_its_word(qtbot: QtBot, window: Window, running: TrainView) -> None:
    settle(qtbot)
    assert running.live.stop.width() <= running.live.stop.sizeHint().width()


@pytest.mark.parametrize("size", [(1000, 720), (720, 480)])
def test_the_slider_for_smoothing_can_be_used_however_small_the_window(
    qtbot: QtBot, window: Window, running: TrainView, size: tuple[int, int]
) -> None:
    window.resize(*size)
    settle(qtbot)
    bar = running.live.charts.bar
    slider = bar.smoothing
    assert slider.width() >= 16 * slider.fontMetrics().averageCharWidth()
    assert slider.height() >= slider.sizeHint().height()
    for piece in (bar.filter, slider, bar.axis, running.live.charts.export.button):
        assert piece.mapTo(window, QPoint(piece.width(), 0)).x() <= window.width()
    assert not cut(window)


def test_the_title_of_a_plot_stays_whole_beside_long_names(
    qtbot: QtBot, window: Window, running: TrainView
) -> None:
    window.resize(*SIZES[1])
    settle(qtbot)
    plots = running.live.charts.plots
    qtbot.waitUntil(lambda: len([plot for plot in plots if plot.isVisible()]) >= 2, timeout=LIMIT_MS)
    titles = [plot._title for plot in plots if plot.isVisible()]
    assert not [title.text() for title in titles if title.elided]


@pytest.mark.parametrize("addresses", [("127.0.0.1:27600",), ("192.168.1.2:27600", "[::1]:27600")])
def test_no_address_is_shown_under_which_nobody_else_gets_here(
    qtbot: QtBot, window: Window, core: FakeCore, addresses: tuple[str, ...]
) -> None:
    core.happen(ev.AddressesChanged(addresses=addresses))
    settings = window.view(SETTINGS)
    assert isinstance(settings, SettingsView)
    settings.show_state(core.state, ())
    for index in (DEVICES, SETTINGS):
        window.go_to(index)
        view = window.view(index)
        assert view is not None
        shown = [
            str(text())
            for each in view.findChildren(QWidget)
            if (text := getattr(each, "text", None)) is not None
        ]
        assert shown
        assert not [text for text in shown if "127.0.0.1" in text or "::1]" in text or text.startswith("lo ")]


@pytest.mark.parametrize("size", SIZES)
def test_at_twice_the_size_of_text_everything_can_be_reached(
    qtbot: QtBot, large_text: None, window: Window, running: TrainView, size: tuple[int, int]
) -> None:
    window.resize(*size)
    for index in (DEVICES, TRAIN, MACHINES, SETTINGS):
        window.go_to(index)
        settle(qtbot)
        assert not beyond(window), index
        assert not bars(window), index
        assert not cut(window), index
    running.show_setup()
    window.go_to(TRAIN)
    settle(qtbot)
    assert not beyond(window)
    running.setup.choose("/home/ada/digits/digits.py")
    running.setup.ready.more.head.setChecked(True)
    running.setup.options.head.setChecked(True)
    settle(qtbot)
    assert not beyond(window)
    assert not bars(window)
