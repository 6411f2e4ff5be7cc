from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence

import pytest
from PIL import Image

from core.run.report_curves import Curve, Panel, Points
from core.run.report_plot import HEIGHT, WIDTH, label, log_ticks, png, ticks


def drawn(panels: Sequence[Panel]) -> Image.Image:
    image = Image.open(io.BytesIO(png(panels)))
    image.load()
    return image


def panel(*points: tuple[float, float]) -> Panel:
    return Panel("loss", [Curve("loss", list(points))])


def blue(image: Image.Image) -> list[tuple[int, int]]:
    """Pixels of the first curve, below the legend."""
    pixels = image.load()
    assert pixels is not None
    return [
        (x, y)
        for x in range(0, image.width, 5)
        for y in range(80, image.height)
        if pixels[x, y][2] > 180 and pixels[x, y][0] < 80  # type: ignore[index]
    ]


def test_each_panel_is_drawn_below_the_other_and_a_falling_curve_falls() -> None:
    image = drawn([panel((1, 2.0), (50, 1.0), (100, 0.5)), panel((1, 0.5), (100, 1.0))])
    assert image.size == (WIDTH, 2 * HEIGHT)
    first = [(x, y) for x, y in blue(image) if y < HEIGHT]
    assert len(first) > 200
    assert min(first)[1] < max(first)[1], "down is larger"


def test_a_curve_over_many_sizes_is_drawn_on_a_logarithmic_scale() -> None:
    image = drawn([panel((0, 1.0), (50, 1e-4), (100, 1e-8))])
    middle = [y for x, y in blue(image) if abs(x - (120 + WIDTH - 40) / 2) < 6]
    assert middle
    assert abs(sum(middle) / len(middle) - (70 + HEIGHT - 70) / 2) < 10, "a straight line"


@pytest.mark.parametrize(
    "points",
    [
        [(1.0, 1.0)],
        [(1.0, 0.0), (2.0, 0.0)],
        [(1.0, -3.0), (1.0, 3.0)],
        [(1.0, 1e300), (2.0, -1e300)],
        [(1.0, 1e-300), (2.0, 2e-300)],
        [(1.0, 1e-300), (2.0, 1e300)],
        [(0.0, 5.0), (1e12, 5.0 + 1e-15)],
    ],
)
def test_any_finite_numbers_can_be_drawn(points: Points) -> None:
    assert drawn([panel(*points)]).size == (WIDTH, HEIGHT)


def test_names_from_anywhere_can_be_written() -> None:
    name = "потеря 损失 🙂\x1b[31m" + "x" * 500
    assert drawn([Panel(name, [Curve(name, [(1.0, 1.0), (2.0, 2.0)])])]).size == (WIDTH, HEIGHT)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 6.0, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        (3.0, 3.0, [3.0]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_powers_of_ten_are_thinned() -> None:
    assert log_ticks(-0.5, 2.5) == pytest.approx([1.0, 10.0, 100.0])
    assert len(log_ticks(-90.0, 0.0)) <= 7
    assert [label(value) for value in (0.0, 0.25, 1e-7, 123456.0)] == ["0", "0.25", "1e-07", "123456"]


@pytest.mark.real
def test_the_drawing_library_is_loaded_by_drawing_alone() -> None:
    code = "import sys, core.run.keeping; sys.exit('PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
