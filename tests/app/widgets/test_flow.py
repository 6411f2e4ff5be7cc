"""Widgets that go on in the next row."""

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.widgets.flow import Flow


class Block(QWidget):
    def sizeHint(self) -> QSize:
        return QSize(100, 20)


def places(blocks: list[Block]) -> list[tuple[int, int]]:
    return [(block.x(), block.y()) for block in blocks]


def test_what_has_no_room_goes_on_in_the_next_row(qtbot: QtBot) -> None:
    blocks = [Block() for _ in range(4)]
    page = QWidget()
    qtbot.addWidget(page)
    page.setLayout(Flow(*blocks[:3], last=blocks[3], spacing=10))
    page.resize(450, 100)
    page.show()
    assert places(blocks) == [(0, 0), (110, 0), (220, 0), (350, 0)], "the last one at the right end"
    page.resize(330, 100)
    assert places(blocks) == [(0, 0), (110, 0), (220, 0), (230, 30)]
    blocks[1].hide()
    page.resize(331, 100)
    assert places(blocks)[2:] == [(110, 0), (231, 0)], "who is hidden takes no room"
    page.resize(50, 100)
    assert [y for _, y in places(blocks)][2:] == [30, 60], "never less than one a row"
    assert page.heightForWidth(50) == 80
