"""Widgets that wrap into the next row if there is no room."""

from typing import Any

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.flow import Flow
from app.widgets.labels import Label


def laid(qtbot: QtBot, flow: Flow, width: int) -> QWidget:
    qtbot.addWidget(flow)
    flow.resize(width, flow.heightForWidth(width))
    flow.show()
    return flow


def test_buttons_stand_in_one_line_where_there_is_room(qtbot: QtBot) -> None:
    buttons = [button(f"Choose {name}", lambda: None) for name in ("one", "two", "three")]
    host = laid(qtbot, Flow(*buttons), 1000)
    assert len({each.y() for each in buttons}) == 1
    assert buttons[1].x() == buttons[0].geometry().right() + 1 + GAP
    host.hide()


def test_and_below_each_other_where_there_is_none(qtbot: QtBot) -> None:
    buttons = [button(f"Choose {name}", lambda: None) for name in ("one", "two", "three")]
    width = max(each.sizeHint().width() for each in buttons) + 5
    host = laid(qtbot, Flow(*buttons), width)
    assert len({each.y() for each in buttons}) == 3
    assert all(each.geometry().right() < width for each in buttons)
    assert host.height() >= buttons[2].geometry().bottom()


def test_in_the_middle_of_the_line(qtbot: QtBot) -> None:
    made = button("Choose", lambda: None)
    flow = Flow(made)
    flow.centre(True)
    host = laid(qtbot, flow, 600)
    assert abs(made.geometry().center().x() - 300) <= 1
    host.hide()


def test_equal_ones_have_one_width_and_one_height_in_a_line(qtbot: QtBot) -> None:
    labels = [Label(words, wraps=True) for words in ("short", "much longer words " * 8, "short", "short")]
    for label in labels:
        label.setMinimumWidth(100)
    host = laid(qtbot, Flow(*labels, equal=True), 600)
    assert len({label.width() for label in labels}) == 1
    assert len({label.height() for label in labels if label.y() == 0}) == 1
    assert max(label.geometry().right() for label in labels) < 600
    host.hide()


def test_what_is_hidden_takes_no_room(qtbot: QtBot) -> None:
    buttons = [button(name, lambda: None) for name in ("one", "two")]
    buttons[0].hide()
    host = laid(qtbot, Flow(*buttons), 600)
    assert buttons[1].x() == 0
    host.hide()


class Counted(Flow):
    """Notes each width for which it works out the places."""

    def __init__(self, *pieces: QWidget) -> None:
        super().__init__(*pieces)
        self.worked_out: list[int] = []

    def _arranged(self, items: Any, width: int) -> Any:
        self.worked_out.append(width)
        return super()._arranged(items, width)


def test_places_are_worked_out_once_for_each_width_until_a_hint_changes(qtbot: QtBot) -> None:
    """Qt asks hundreds of times in one pass, and does not tell a hidden widget what its children want."""
    buttons = [button(name, lambda: None) for name in ("one", "two")]
    flow = Counted(*buttons)
    qtbot.addWidget(flow)
    one_line = [flow.heightForWidth(width) for width in (600, 200, 600, 200, 600)]
    assert flow.worked_out == [600, 200]
    assert len(set(one_line)) == 1
    buttons[0].setText("a name that leaves no room beside it")
    assert flow.heightForWidth(200) > one_line[0]
    buttons[1].hide()
    assert flow.heightForWidth(200) == one_line[0]
    flow.add(button("three", lambda: None))
    assert flow.heightForWidth(200) > one_line[0]
    assert flow.worked_out == [600, 200, 200, 200, 200]


def test_the_height_of_words_that_wrap_is_asked_for_each_time(qtbot: QtBot) -> None:
    """It may change while the hints stay."""
    label = Label("words " * 40, wraps=True)
    flow = Flow(label)
    qtbot.addWidget(flow)
    before = flow.heightForWidth(200)
    assert before == label.heightForWidth(200)
    label.say("words " * 80)
    assert flow.heightForWidth(200) == label.heightForWidth(200) > before
