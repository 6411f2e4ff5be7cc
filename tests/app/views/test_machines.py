"""The machines screen: live bars, missing readings and their reasons, age, stragglers."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.models.stragglers import SAY_AFTER_S
from app.views.machines import MachinesView
from app.widgets.history import KEPT_S
from app.widgets.page import Page
from core.vocabulary import events as ev
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.app.seat import on_screen
from tests.core.fake_node import ME, OTHER


@pytest.fixture
def now_s() -> list[float]:
    return [100.0]


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore, now_s: list[float]) -> Iterator[MachinesView]:
    view = on_screen(qtbot, bridge, MachinesView(bridge, clock=lambda: now_s[0]), 900, 600)
    yield view
    view.hide()


def words(view: MachinesView, device: str) -> dict[str, str]:
    return {name: bar.words for name, bar in view.cards[device].bars.items()}  # type: ignore[index]


def test_this_laptop_alone_is_shown_with_a_hint(core: FakeCore, view: MachinesView) -> None:
    core.happen(world.told(ME, world.reading(43.0)))
    assert list(view.cards) == [ME]
    assert words(view, ME)["CPU"] == "43 %"
    assert words(view, ME)["Memory"] == "9.7 GB of 17.2 GB"
    assert view.alone.isVisible()


def test_a_laptop_without_a_gpu_says_so_and_why(core: FakeCore, view: MachinesView) -> None:
    core.happen(world.told(ME, world.reading(no_gpu="CPU only: no driver was found")))
    assert words(view, ME)["GPU"] == "none: no driver was found"
    assert view.cards[ME].bars["GPU"].part is None


def test_a_gpu_that_does_not_say_its_use_says_why(core: FakeCore, view: MachinesView) -> None:
    core.happen(world.told(ME, world.reading(gpus=(world.gpu(None, "the driver needs root"),))))
    assert words(view, ME)["GPU"] == "Use unknown: the driver needs root"


def test_gpu_use_memory_and_temperature_are_shown(core: FakeCore, view: MachinesView) -> None:
    core.happen(*world.linked(), world.told(OTHER, world.reading(gpus=(world.gpu(80),))))
    found = words(view, OTHER)
    assert (found["GPU"], found["GPU memory"], found["GPU temp."]) == ("80 %", "5.4 GB of 8.6 GB", "71 °C")
    assert not view.alone.isVisible()


def test_a_laptop_that_falls_silent_turns_grey_with_its_age(
    core: FakeCore, view: MachinesView, now_s: list[float]
) -> None:
    core.happen(*world.linked(), world.told(OTHER, world.reading()))
    assert not view.cards[OTHER].missing.isVisible()
    now_s[0] += 12
    core.happen(world.lost())
    assert view.cards[OTHER].missing.isVisible()
    assert view.cards[OTHER].missing.text().startswith("No reading for 12 s. It fell silent 9 s ago.")
    assert all(bar._stale for bar in view.cards[OTHER].bars.values())


def test_a_laptop_that_comes_back_is_live_again(
    core: FakeCore, view: MachinesView, now_s: list[float]
) -> None:
    core.happen(*world.linked(), world.told(OTHER, world.reading()))
    now_s[0] += 12
    core.happen(world.lost())
    core.happen(*world.linked(), world.told(OTHER, world.reading(7.0)))
    assert not view.cards[OTHER].missing.isVisible()
    assert not any(bar._stale for bar in view.cards[OTHER].bars.values())


def test_who_waits_for_whom_is_said(core: FakeCore, view: MachinesView, now_s: list[float]) -> None:
    core.happen(*world.linked(), *world.begun())
    core.happen(world.told(ME, world.reading()))
    core.happen(world.progressed(ME, world.progress(3, wait_s=0.04)))
    core.happen(world.progressed(OTHER, world.progress(3, wait_s=0.0)))
    now_s[0] += SAY_AFTER_S
    core.happen(world.told(ME, world.reading()))
    assert view.waiting.isVisible()
    assert view.waiting.text().startswith("here waits for Bob's laptop 40 % of each step.")
    core.happen(world.told(ME, world.reading()))
    assert words(view, ME)["Step"] == "60 ms, 40 ms waiting"
    assert words(view, ME)["Share"] == "75 % of each batch"
    core.happen(*world.finished())
    assert not view.waiting.isVisible()


def test_the_wires_part_of_a_step_and_each_ones_rows_are_shown(core: FakeCore, view: MachinesView) -> None:
    core.happen(*world.linked(), *world.begun(), world.told(ME, world.reading()))
    assert not view.wire.isVisible(), "nobody has told yet"
    core.happen(world.measured())
    step = replace(world.progress(3), wire_s=0.02, wire_bytes=2_400_000, share=46)
    core.happen(world.progressed(ME, step), world.told(ME, world.reading(41.0)))
    assert view.wire.isVisible()
    assert view.wire.text() == "20 % of each step is network transfer (2.4 MB each way)."
    assert words(view, ME)["Share"] == "46 of 64 rows"
    last = replace(step, step=22, share=4, samples_s=50.0)
    core.happen(world.progressed(ME, last), world.told(ME, world.reading(42.0)))
    assert words(view, ME)["Share"] == "46 of 64 rows", "an epoch's last batch is a small one"
    core.happen(*world.finished())
    assert not view.wire.isVisible()


def test_the_keyboard_scrolls_what_has_no_room(qtbot: QtBot, core: FakeCore, view: MachinesView) -> None:
    core.happen(*world.linked(), world.told(ME, world.reading()), world.told(OTHER, world.reading()))
    view.resize(700, 200)
    page = view.findChild(Page)
    assert page is not None
    qtbot.waitUntil(lambda: page.verticalScrollBar().maximum() > 0, timeout=60_000)
    assert view.focusProxy() is page
    qtbot.keyClick(page, Qt.Key.Key_PageDown)
    assert page.verticalScrollBar().value() > 0


def test_the_last_ten_minutes_are_there_when_it_is_first_opened(
    qtbot: QtBot, bridge: Bridge, core: FakeCore
) -> None:
    now_s = [100.0]
    view = MachinesView(bridge, clock=lambda: now_s[0])
    qtbot.addWidget(view)
    bridge.changed.connect(lambda events, state: view.show_state(state, events))
    core.happen(*world.linked())
    for second in range(3):
        now_s[0] = 100.0 + second
        core.happen(world.told(OTHER, world.reading(second)))
    now_s[0] = 160.0
    view.show()
    assert view.cards[OTHER].history.pieces("CPU") == [[(60, 0.0), (59, 0.01), (58, 0.02)]], "none since then"
    view.hide()


def test_a_forgotten_laptop_leaves(core: FakeCore, view: MachinesView) -> None:
    core.happen(*world.linked())
    assert list(view.cards) == [ME, OTHER]
    core.happen(ev.LinkDown(device=OTHER, problem=world.lost().problem), ev.DeviceForgotten(device=OTHER))
    assert list(view.cards) == [ME]


def test_hidden_it_keeps_the_history_and_does_no_more(core: FakeCore, view: MachinesView) -> None:
    core.happen(world.told(ME, world.reading(10.0)))
    view.hide()
    core.happen(world.told(ME, world.reading(20.0)))
    assert [round(parts["CPU"], 2) for _, parts in view.cards[ME].history.kept] == [0.1, 0.2]
    assert not view._age_timer.isActive()


def test_the_last_ten_minutes_are_drawn_with_gaps_where_nothing_came(
    core: FakeCore, view: MachinesView, now_s: list[float]
) -> None:
    for second in (0, 1, 2, 30, 31):
        now_s[0] = 100.0 + second
        core.happen(world.told(ME, world.reading(float(second))))
    history = view.cards[ME].history
    assert history.names == ["CPU", "Memory"], "no GPU here, and the network has no whole"
    assert history.pieces("CPU") == [[(31, 0.0), (30, 0.01), (29, 0.02)], [(1, 0.3), (0, 0.31)]]
    assert history.isVisible()
    view.grab()
    now_s[0] = 100.0 + 31 + KEPT_S
    core.happen(world.told(ME, world.reading(50.0)))
    assert history.pieces("CPU") == [[(600.0, 0.31)], [(0.0, 0.5)]], "what is older is forgotten"
