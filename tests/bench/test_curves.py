"""How runs become a picture."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from bench import curves


def test_many_points_become_means_over_equal_times() -> None:
    points = [(at / 10, float(at % 2)) for at in range(1, 1201)]
    found = curves.smooth(points)
    assert len(found) == curves.POINTS
    assert all(loss == pytest.approx(0.5, abs=0.05) for _, loss in found)
    assert [at_s for at_s, _ in found] == sorted(at_s for at_s, _ in found)
    assert curves.smooth([(0.0, 2.0)]) == [(0.0, 2.0)]


def test_each_way_is_a_line_of_a_small_drawing(qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    found = {way: [(0.0, 4.0), (at_s, 2.0)] for at_s, way in enumerate(curves.COLOURS, 30)}
    curves.draw(found, path)
    text = path.read_text(encoding="utf-8")
    for way, colour in curves.COLOURS.items():
        assert way in text and colour in text
    assert len(text) < 100_000
