"""What is kept is looked at, and removed after a question."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.settings import SettingsView
from core.vocabulary.answers import KeptList, Refused
from core.vocabulary.commands import ListKept, RemoveKept
from core.vocabulary.holdings import Kept, KeptProject, KeptRun
from tests.app.fake_core import FakeCore
from tests.app.laptops import BEN, PROBLEM, linked, paired
from tests.core.samples import sample

SOME = Kept(projects=(sample(KeptProject),), runs=(sample(KeptRun), sample(KeptRun)), bytes=3 << 20)


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> SettingsView:
    view = SettingsView(bridge)
    view.network._present = dict
    qtbot.addWidget(view)
    bridge.changed.connect(lambda events, state: view.show_state(state, events))
    view.resize(900, 700)
    view.show()
    core.happen(paired())
    core.happen(linked())
    core.flush()
    return view


def press(view: SettingsView, name: str) -> None:
    (found,) = (each for each in view.kept.findChildren(QPushButton, name) if each.isVisible())
    found.click()


def words(view: SettingsView) -> list[str]:
    (line,) = view.kept._lines.values()
    return [side.words.text() for side in line.sides.values() if side.isVisible()]


def test_what_is_kept_is_told_for_both_laptops_and_removed_after_a_question(
    view: SettingsView, core: FakeCore
) -> None:
    core.answers[ListKept] = KeptList(device=BEN, here=Kept(), there=SOME)
    core.answers[RemoveKept] = KeptList(device=BEN, here=Kept(), there=Kept())
    assert words(view) == []
    press(view, "look")
    core.flush()
    assert core.commands == [ListKept(device=BEN)]
    assert words(view) == ["ben's here: Nothing.", "Yours on ben: 1 project and 2 runs, 3 MB."]
    press(view, "remove-there")
    assert len(core.commands) == 1, "it is asked first"
    press(view, "keep-there")
    press(view, "remove-there")
    press(view, "really-there")
    core.flush()
    assert core.commands[-1] == RemoveKept(device=BEN, where="there")
    assert all("Nothing." in each for each in words(view))
    assert not view.kept.findChildren(QPushButton, "remove-there")[0].isVisible()


def test_the_other_laptops_projects_can_be_removed_from_here(view: SettingsView, core: FakeCore) -> None:
    away = KeptList(device=BEN, here=SOME, problem=PROBLEM)
    core.answers[ListKept], core.answers[RemoveKept] = away, replace(away, here=Kept())
    press(view, "look")
    core.flush()
    (line,) = view.kept._lines.values()
    assert line.words.text() == str(PROBLEM) and len(words(view)) == 1
    press(view, "remove-here")
    press(view, "really-here")
    core.flush()
    assert core.commands[-1] == RemoveKept(device=BEN, where="here")
    assert "Nothing." in words(view)[0]


def test_a_refusal_is_said_beside_its_laptop(view: SettingsView, core: FakeCore) -> None:
    core.answers[ListKept] = Refused(problem=PROBLEM)
    press(view, "look")
    core.flush()
    (line,) = view.kept._lines.values()
    assert line.words.text() == str(PROBLEM) and line.look.isEnabled()
