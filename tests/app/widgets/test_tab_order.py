import shiboken6
from PySide6.QtCore import QLineF
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


def test_no_object_is_left_where_qt_has_deleted_an_item(qtbot: QtBot) -> None:
    """A plot's first line was allocated there, and drawn as the item that Python still knew."""
    screen = QWidget()
    qtbot.addWidget(screen)
    layout = QVBoxLayout(screen)
    gone = button("gone", lambda: None)
    layout.addWidget(gone)
    item = layout.itemAt(0)
    assert item is not None
    (address,) = shiboken6.getCppPointer(item)
    shiboken6.invalidate(item)
    tab_as_seen(gone)
    shiboken6.delete(gone)
    assert layout.count() == 0
    # pyqtgraph asks for this at an address; the memory is never read.
    assert type(shiboken6.wrapInstance(address, QLineF)) is QLineF


def chain(first: QWidget, count: int) -> list[QWidget]:
    found = [first]
    while len(found) < count:
        after = found[-1].nextInFocusChain()
        assert after is not None
        found.append(after)
    return found
