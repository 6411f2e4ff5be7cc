from PySide6.QtWidgets import QVBoxLayout, QWidget
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


def chain(first: QWidget, count: int) -> list[QWidget]:
    found = [first]
    while len(found) < count:
        after = found[-1].nextInFocusChain()
        assert after is not None
        found.append(after)
    return found
