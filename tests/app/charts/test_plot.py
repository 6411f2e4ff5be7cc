import math

import pytest
from pytestqt.qtbot import QtBot

from app.charts.axes import RunAxis, ValueAxis
from core.report.points import Axis


def labels(numbers: list[float]) -> list[str]:
    return ValueAxis().logTickStrings([math.log10(number) for number in numbers], 1.0, None)


def test_a_decade_has_three_labels(qtbot: QtBot) -> None:
    decade = [0.01 * number for number in range(1, 11)]
    assert [text for text in labels(decade) if text] == ["0.01", "0.02", "0.05", "0.1"]


def test_a_part_of_a_decade_has_every_label(qtbot: QtBot) -> None:
    assert labels([0.6, 0.7, 0.8, 0.9]) == ["0.6", "0.7", "0.8", "0.9"]


def ticks(left: float, right: float, *, pixels: float = 600.0, axis: Axis = "step") -> list[float]:
    made = RunAxis()
    made.axis = axis
    return [value for _, values in made.tickValues(left, right, pixels) for value in values]


def test_one_point_has_its_own_step_below_it_and_nothing_else(qtbot: QtBot) -> None:
    assert ticks(-0.51, 0.51) == [0.0]
    assert ticks(6.49, 7.51) == [7.0]


def test_no_second_is_less_than_zero(qtbot: QtBot) -> None:
    assert ticks(-0.51, 0.51, axis="time")[0] == 0.0


def test_nineteen_steps_have_a_few_labels(qtbot: QtBot) -> None:
    assert len(ticks(0.82, 19.18)) < 10
    assert len(ticks(0.82, 19.18, pixels=1050.0)) < 15


@pytest.mark.parametrize("last", [3, 40, 999, 123_456, 10**9])
@pytest.mark.parametrize("pixels", [120.0, 500.0, 1900.0])
def test_labels_have_room_and_stand_at_whole_steps(qtbot: QtBot, last: int, pixels: float) -> None:
    found = ticks(0.0, float(last), pixels=pixels)
    assert all(value == int(value) for value in found)
    assert 1 <= len(found) <= 1 + pixels / RunAxis().room


def test_a_range_that_is_none_does_no_harm(qtbot: QtBot) -> None:
    assert ticks(5.0, 5.0) in ([], [5.0])


@pytest.mark.parametrize("last", [40, 700, 920, 9_200, 123_456, 10**8])
@pytest.mark.parametrize("pixels", [330.0, 600.0, 1050.0])
def test_a_long_run_has_enough_labels_to_read_it(qtbot: QtBot, last: int, pixels: float) -> None:
    assert 3 <= len(ticks(0.0, float(last), pixels=pixels)) <= 10


def test_time_is_labelled_as_a_clock_shows_it(qtbot: QtBot) -> None:
    axis = RunAxis()
    axis.axis = "time"
    ((spacing, values),) = axis.tickValues(0.0, 400.0, 400.0)
    assert axis.tickStrings(values, 1.0, spacing) == ["0:00", "1:00", "2:00", "3:00", "4:00", "5:00", "6:00"]
    assert RunAxis().tickStrings([20_000.0, 3_000_000.0], 1.0, 1.0) == ["20k", "3000k"]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.31, 2.7e-3), (1e-8, 3e-8), (0.5, 123_456.0)])
@pytest.mark.parametrize("pixels", [80.0, 170.0, 900.0])
def test_numbers_of_the_value_axis_have_room_between_them(
    qtbot: QtBot, low: float, high: float, pixels: float
) -> None:
    axis = ValueAxis()
    ((spacing, values),) = axis.tickValues(low, high, pixels)
    assert values and all(low <= value <= high for value in values)
    assert spacing / (high - low) * pixels >= axis._line
    assert len(set(axis.tickStrings(values, 1.0, spacing))) == len(values)
