"""Parts of the tour, without a screen."""

import msgspec
import pytest
from PySide6.QtCore import QStringListModel
from PySide6.QtWidgets import QLabel, QListView, QPushButton, QScrollArea, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tests.tour import programs
from tests.tour.eyes import look
from tests.tour.story import STORY
from tests.tour.thing import Spot, Thing


@pytest.fixture
def page(qtbot: QtBot) -> QWidget:
    """A window with a button, a list, and a button that needs scrolling."""
    page = QWidget()
    qtbot.addWidget(page)
    layout = QVBoxLayout(page)
    go, lines = QPushButton("Go"), QListView()
    go.setObjectName("go")
    lines.setModel(QStringListModel(["one", "two"], lines))
    far, column = QPushButton("Far"), QVBoxLayout()
    for piece in (QLabel("top"), far):
        piece.setMinimumHeight(400)
        column.addWidget(piece)
    inner, area = QWidget(), QScrollArea()
    inner.setLayout(column)
    area.setWidget(inner)
    for widget in (go, lines, area):
        layout.addWidget(widget)
    page.resize(400, 500)
    with qtbot.waitExposed(page):
        page.show()
    return page


def find(text: str) -> Thing:
    return next(thing for thing in look() if thing.text == text)


def test_it_tells_where_a_button_is_and_that_it_can_be_clicked(page: QWidget) -> None:
    go = find("Go")
    assert go.is_called("go") and go.is_called("Go") and not go.is_called("Far")
    assert go.enabled and go.reachable
    assert page.geometry().contains(*go.spot.middle)


def test_what_is_scrolled_away_cannot_be_reached(page: QWidget) -> None:
    far = find("Far")
    assert not far.reachable
    assert far.scroller is not None
    assert far.seen.height < far.spot.height


def test_it_tells_the_lines_of_a_list(page: QWidget) -> None:
    assert [thing.text for thing in look() if thing.kind == "row"] == ["one", "two"]


def test_nothing_is_seen_of_a_hidden_window(page: QWidget) -> None:
    page.hide()
    assert look() == []


def test_what_is_seen_travels_as_a_line(page: QWidget) -> None:
    line = msgspec.json.encode(look())
    assert b"\n" not in line
    assert msgspec.json.decode(line, type=list[Thing]) == look()


def test_the_middle_of_a_spot() -> None:
    assert Spot(10, 20, 5, 7).middle == (12, 23)


def test_every_part_of_the_story_says_what_it_shows() -> None:
    assert all(part.__doc__ for part in STORY)


def test_what_is_missing_is_named_by_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    assert programs.missing_packages() == sorted({*programs.PROGRAMS.values(), *programs.LIBRARIES.values()})
