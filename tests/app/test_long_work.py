"""Long work in pieces: in order, one per turn of the event loop, whatever a piece does."""

import pytest
from PySide6.QtCore import QObject, QTimer
from pytestqt.exceptions import capture_exceptions
from pytestqt.qtbot import QtBot

from app.long_work import Turns

LIMIT_MS = 60_000


@pytest.fixture
def owner(qapp: object) -> QObject:
    return QObject()


def test_each_piece_has_a_turn_of_its_own(qtbot: QtBot, owner: QObject) -> None:
    turns, happened = Turns(owner), []
    between = QTimer(owner, interval=0)
    between.timeout.connect(lambda: happened.append("turn"))
    between.start()
    turns.then(lambda: happened.append("one"), lambda: happened.append("two"))
    assert happened == [], "nothing is done within the call"
    qtbot.waitUntil(lambda: "two" in happened, timeout=LIMIT_MS)
    assert "turn" in happened[happened.index("one") : happened.index("two")]


def test_what_a_piece_puts_first_comes_before_the_rest(qtbot: QtBot, owner: QObject) -> None:
    turns, happened = Turns(owner), []
    turns.then(lambda: turns.first(lambda: happened.append("first")), lambda: happened.append("rest"))
    qtbot.waitUntil(lambda: len(happened) == 2, timeout=LIMIT_MS)
    assert happened == ["first", "rest"]


def test_a_piece_that_fails_takes_no_other_with_it(qtbot: QtBot, owner: QObject) -> None:
    turns, happened = Turns(owner), []
    with capture_exceptions() as caught:
        turns.then(lambda: 1 / 0, lambda: happened.append("rest"))
        qtbot.waitUntil(lambda: happened == ["rest"], timeout=LIMIT_MS)
    assert [kind for kind, _, _ in caught] == [ZeroDivisionError]
