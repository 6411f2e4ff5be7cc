import math

from pytestqt.qtbot import QtBot

from app.charts.value_axis import ValueAxis


def labels(numbers: list[float]) -> list[str]:
    return ValueAxis("left").logTickStrings([math.log10(number) for number in numbers], 1.0, None)


def test_a_decade_has_three_labels(qtbot: QtBot) -> None:
    decade = [0.01 * number for number in range(1, 11)]
    assert [text for text in labels(decade) if text] == ["0.01", "0.02", "0.05", "0.1"]


def test_a_part_of_a_decade_has_every_label(qtbot: QtBot) -> None:
    assert labels([0.6, 0.7, 0.8, 0.9]) == ["0.6", "0.7", "0.8", "0.9"]
