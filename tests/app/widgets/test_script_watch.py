"""The watch over a chosen script, with real files."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt
from pytestqt.qtbot import QtBot

from app.widgets.script_watch import ScriptWatch


@pytest.fixture
def script(tmp_path: Path) -> Path:
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    return script


def test_a_script_that_is_saved_or_replaced_is_reported_each_time(qtbot: QtBot, script: Path) -> None:
    owner, changes = QObject(), list[str]()
    watch = ScriptWatch(owner, lambda: changes.append(script.read_text()))
    watch.follow(str(script))

    script.write_text("print(2)\n")
    qtbot.waitUntil(lambda: changes == ["print(2)\n"])

    for number in (3, 4):  # as editors do
        watch.follow(str(script))
        other = script.with_suffix(".new")
        other.write_text(f"print({number})\n")
        with qtbot.waitSignal(watch._settle.timeout):
            other.replace(script)
        assert changes[-1] == f"print({number})\n"


def test_only_the_script_that_was_chosen_last_is_watched(qtbot: QtBot, script: Path) -> None:
    owner, changes = QObject(), list[int]()
    watch = ScriptWatch(owner, lambda: changes.append(1))
    other = script.with_name("other.py")
    other.write_text("print(1)\n")
    watch.follow(str(script))
    watch.follow(str(other))
    assert watch._files.files() == [str(other)]
    watch.follow(str(script.with_name("removed.py")))
    assert watch._files.files() == [] and not changes


def test_its_users_return_is_a_reason_to_read_it_again(qtbot: QtBot, script: Path) -> None:
    owner, changes = QObject(), list[int]()
    watch = ScriptWatch(owner, lambda: changes.append(1))
    watch._on_application(Qt.ApplicationState.ApplicationActive)
    assert not watch._settle.isActive(), "nothing is chosen"
    watch.follow(str(script))
    watch._on_application(Qt.ApplicationState.ApplicationInactive)
    assert not watch._settle.isActive()
    watch._on_application(Qt.ApplicationState.ApplicationActive)
    qtbot.waitUntil(lambda: changes == [1])
