"""A plot's numbers in words."""

import math

import pytest

from app.charts.curve import Look, PlotCurve
from app.charts.marks import apart
from app.charts.readout import bad_words, best_mark, brief, cursor_at, end_marks
from core.report.points import Points

LOG = Look(log=True)


def curve(
    *values: float, name: str = "training", apart: float = 1.0, look: Look | None = None, epochs: bool = False
) -> PlotCurve:
    points = Points()
    for number, value in enumerate(values):
        points.add(number * apart, number * apart / 10, value, number if epochs else None)
    made = PlotCurve(points, name, "#123456", dashed=epochs)
    made.begin(look or Look())
    while not made.catch_up("step"):
        pass
    return made


def test_a_line_ends_with_its_last_value() -> None:
    (mark,) = end_marks([curve(3.0, 2.0, 0.17923)], Look())
    assert (mark.x, mark.y, mark.words) == (2.0, 0.17923, "0.179")


def test_thousands_are_written_out() -> None:
    assert [brief(value) for value in (12.345, 2850.4, 28_504.0, 3e7)] == [
        "12.35",
        "2,850",
        "28,504",
        "3e+07",
    ]
    assert brief(999.7, digits=3) == "1,000"


def test_a_line_that_ends_in_what_is_no_number_says_the_last_that_is() -> None:
    (mark,) = end_marks([curve(3.0, 2.0, math.nan)], Look())
    assert (mark.x, mark.words) == (1.0, "2")


def test_a_smoothed_line_ends_with_its_own_value() -> None:
    look = Look(smoothing=0.5)
    (mark,) = end_marks([curve(1.0, 0.0, look=look)], look)
    assert mark.y == pytest.approx(1 / 3)


def test_smoothing_measures_how_far_points_are_apart_as_they_come() -> None:
    look, made = Look(smoothing=0.9), curve(1.0, look=Look(smoothing=0.9))
    for number in range(1, 64):
        made.points.add(100.0 * number, 10.0 * number, 1.0 if number < 60 else 0.0)
        made.catch_up("step")
    assert made.smooth is not None
    assert len(made.smooth) == 64
    assert made._unit == pytest.approx(100.0)
    (mark,) = end_marks([made], look)
    assert 0.6 < mark.y < 0.7, "four of sixty-four values, each a unit apart"


def test_on_a_logarithmic_scale_marks_stand_at_powers() -> None:
    (mark,) = end_marks([curve(1.0, 0.01)], LOG)
    assert (mark.y, mark.words) == (-2.0, "0.01")
    assert end_marks([curve(1.0, -0.01)], LOG) == []


def test_the_best_epoch_is_the_lowest_loss_and_the_highest_accuracy() -> None:
    validation = curve(0.5, 0.2, 0.4, epochs=True)
    loss, accuracy = best_mark("loss", [validation], Look()), best_mark("accuracy", [validation], Look())
    assert loss is not None and accuracy is not None
    assert (loss.x, loss.words) == (1.0, "best 0.2, epoch 2")
    assert (accuracy.x, accuracy.words) == (0.0, "best 0.5, epoch 1")


def test_no_epoch_is_called_best_where_nobody_can_tell() -> None:
    validation = curve(0.5, 0.2, epochs=True)
    assert best_mark("wombat", [validation], Look()) is None
    assert best_mark("loss", [validation, curve(0.1, 0.2, epochs=True)], Look()) is None, "of two runs"
    assert best_mark("loss", [curve(0.5, 0.2)], Look()) is None, "steps are no epochs"
    assert best_mark("loss", [curve(math.nan, math.nan, epochs=True)], Look()) is None


def test_the_crosshair_says_the_values_nearest_to_it() -> None:
    look = Look(smoothing=0.5)
    training = curve(1.0, 0.0, 0.5, apart=10, look=look)
    validation = curve(0.9, name="validation", epochs=True)
    found = cursor_at(11.0, [training, validation], look)
    assert found is not None
    assert (found.x, found.head) == (10.0, "step 10 · 0:01")
    assert [mark.words for mark in found.marks] == ["training 0, smoothed 0.3333", "validation 0.9"]
    assert cursor_at(11.0, [], look) is None


def test_what_is_no_number_is_said_and_not_drawn() -> None:
    found = cursor_at(0.0, [curve(math.inf)], Look())
    assert found is not None
    assert found.marks[0].words == "training infinite"
    assert math.isnan(found.marks[0].y)
    assert (brief(math.nan), brief(-math.inf)) == ("NaN", "-infinite")


def test_a_value_that_is_no_number_again_was_one_in_between() -> None:
    said = [bad_words("loss", [curve(1.0, *later)]) for later in ((math.nan, 0.5, math.inf), (math.nan, 0.5))]
    assert said == ["training is infinite from step 3 on", "training was NaN at step 1"]


def test_last_values_keep_apart_and_inside() -> None:
    assert apart([10.0, 12.0, 50.0], 10.0, 100.0) == [10.0, 20.0, 50.0]
    assert apart([80.0, 89.0, 95.0], 10.0, 100.0) == [70.0, 80.0, 90.0]
    assert apart([], 10.0, 100.0) == []


def test_the_pointer_finds_the_curves_that_reach_there() -> None:
    short, long = curve(3.0, 2.0, name="short"), curve(3.0, 2.0, 1.0, 0.5, name="long")
    found = cursor_at(3.0, [short, long], Look(), near=0.5)
    assert found is not None and [mark.words for mark in found.marks] == ["long 0.5"]
    assert cursor_at(9.0, [short, long], Look(), near=0.5) is None


def test_the_validations_last_values_are_printed_among_many_lines() -> None:
    lines = [curve(1.0, 0.5, name=str(number), epochs=number % 2 == 1) for number in range(8)]
    assert len(end_marks(lines[:6], Look())) == 6
    assert len(end_marks(lines, Look())) == 4
    lines[1].hidden = True
    assert len(end_marks(lines, Look())) == 3
