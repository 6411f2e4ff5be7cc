"""The table of a run's laptops, painted by hand."""

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.models.laptop_rows import LaptopRow, Use
from app.widgets.laptop_table import COLUMNS, LaptopTable, _folded, placed
from tests.core.fake_node import ME, OTHER

ROW = LaptopRow(
    name="anna " * 30,
    role="chief:0 · this laptop",
    share="32 of 64 rows",
    gpu=Use(0.62, "62 %", "5 GB of 8 GB · 71 °C · 60 W"),
    cpu=Use(float("nan"), "nan %"),
    network=("↑ 1 MB/s", "↓ 1 MB/s"),
    waiting="4 of 11 ms",
    state="Training",
    detail="back after 40 s",
    troubled=False,
    about="anna (chief:0) trains",
)


def test_where_there_is_room_every_column_has_its_place() -> None:
    places = placed(1000, 7)
    assert list(places) == [column.name for column in COLUMNS]
    rights = [left + width for left, width in places.values()]
    assert all(right <= left for right, (left, _) in zip(rights, list(places.values())[1:], strict=False))
    assert rights[-1] <= 1000


@pytest.mark.parametrize(
    ("width", "gone"),
    [(650, {"Network"}), (570, {"Network", "Share"}), (440, {"Network", "Share", "Waits"})],
)
def test_where_there_is_none_the_least_wanted_leave(width: int, gone: set[str]) -> None:
    assert {column.name for column in COLUMNS} - set(placed(width, 7)) == gone


def test_nothing_is_left_out_that_has_to_be_there_however_narrow() -> None:
    assert list(placed(10, 7)) == ["Laptop", "GPU", "CPU", "State"]


def test_a_row_is_a_sentence_for_who_does_not_see_it(qtbot: QtBot) -> None:
    table = LaptopTable()
    qtbot.addWidget(table)
    table.resize(500, 200)
    table.show_rows({ME: ROW, OTHER: ROW._replace(about="ben trains", troubled=True)})
    table.grab()
    assert [line.accessibleName() for line in table.lines.values()] == ["anna (chief:0) trains", "ben trains"]
    table.show_rows({OTHER: ROW})
    assert list(table.lines) == [OTHER]
    assert table.lines[OTHER].text() == "anna (chief:0) trains"


def test_a_state_that_has_no_room_goes_on_in_the_next_line(qtbot: QtBot) -> None:
    line = QWidget()
    qtbot.addWidget(line)
    width = line.fontMetrics().horizontalAdvance("Waiting for A")
    assert _folded("Training", line, width) == ("Training", "")
    assert _folded("Waiting for Allow", line, width) == ("Waiting for", "Allow")
    assert _folded("Donaudampfschifffahrt", line, width) == ("Donaudampfschifffahrt", "")
