import gc

from PySide6.QtWidgets import QLayout, QLayoutItem, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.page import Page
from app.widgets.tab_order import tab_as_seen


def test_the_tabulator_goes_as_the_screen_is_laid_out(qtbot: QtBot) -> None:
    page = Page("Screen")
    qtbot.addWidget(page)
    last = button("last", lambda: None)
    first, second = button("first", lambda: None), button("second", lambda: None)
    card = Card()
    card.body.addLayout(row(first, second))
    page.body.addWidget(card)
    page.body.addWidget(last)
    tab_as_seen(second)
    assert chain(first, 3) == [first, second, last]


def test_what_comes_later_gets_its_place(qtbot: QtBot) -> None:
    screen = QWidget()
    qtbot.addWidget(screen)
    layout = QVBoxLayout(screen)
    above, below = button("above", lambda: None), button("below", lambda: None)
    layout.addWidget(above)
    layout.addWidget(below)
    between = button("between", lambda: None)
    layout.insertWidget(1, between)
    tab_as_seen(between)
    assert chain(above, 3) == [above, between, below]


def test_no_object_is_left_of_what_a_layout_holds(qtbot: QtBot) -> None:
    """A layout's item is Qt's to delete: a Python object of it would stay as long as the layout, and then
    stand for whatever is later allocated there."""
    screen = QWidget()
    qtbot.addWidget(screen)
    layout = QVBoxLayout(screen)
    layout.addWidget(button("one", lambda: None))
    layout.addLayout(row(button("two", lambda: None), 1))
    before = items()
    tab_as_seen(screen)
    assert items() == before
    assert layout.itemAt(0) is not None
    assert items() == before + 1, "one would be found"


def items() -> int:
    gc.collect()
    return sum(isinstance(each, QLayoutItem) and not isinstance(each, QLayout) for each in gc.get_objects())


def chain(first: QWidget, count: int) -> list[QWidget]:
    found = [first]
    while len(found) < count:
        after = found[-1].nextInFocusChain()
        assert after is not None
        found.append(after)
    return found
