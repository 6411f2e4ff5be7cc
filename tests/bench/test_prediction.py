"""How expectation and outcome become rows."""

import pytest

from bench import prediction


def test_an_expectation_is_off_in_either_direction_alike() -> None:
    step, off = prediction.rows("free, model", [(0.9, 1.0), (1.1, 1.0), (2.0, 1.0)])
    assert step.value == 1000.0
    assert off.value == pytest.approx(0.1)
    assert off.kept
    _, far = prediction.rows("free, model", [(0.75, 1.0)])
    assert far.kept is False
