from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.widgets.buttons import button
from app.widgets.sheet import Sheet


def test_the_tabulator_stays_within_the_sheet(qtbot: QtBot) -> None:
    under = QWidget()
    qtbot.addWidget(under)
    QVBoxLayout(under).addWidget(QLineEdit())
    sheet = Sheet(under, "A question")
    first, second = (button(name, lambda: None, name=name) for name in ("first", "second"))
    sheet.body.addWidget(first)
    sheet.body.addWidget(second)
    under.show()
    under.activateWindow()
    qtbot.waitUntil(under.isActiveWindow, timeout=30_000)
    sheet.open()
    reached = []
    for _ in range(3):
        qtbot.keyClick(under.focusWidget(), Qt.Key.Key_Tab)
        reached.append(under.focusWidget().objectName())
    assert reached == ["first", "second", "first"]
    qtbot.keyClick(under.focusWidget(), Qt.Key.Key_Backtab)
    assert under.focusWidget() is second


def test_buttons_that_decide_wait_a_moment(qtbot: QtBot) -> None:
    under = QWidget()
    qtbot.addWidget(under)
    sheet = Sheet(under, "A question")
    yes = button("Yes", lambda: None)
    sheet.body.addWidget(yes)
    sheet.enable_soon(yes)
    assert not yes.isEnabled()
    qtbot.waitUntil(yes.isEnabled, timeout=30_000)
    sheet.enable_soon(yes)
    sheet.disable(yes)
    assert not sheet._armed.isActive()


def test_enter_presses_the_button_that_has_the_focus(qtbot: QtBot) -> None:
    pressed: list[int] = []
    made = button("Yes", lambda: pressed.append(1))
    qtbot.addWidget(made)
    qtbot.keyClick(made, Qt.Key.Key_Return)
    assert pressed == [1]
