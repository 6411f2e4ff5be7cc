from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.report.curves import MOST, Curve, Panel, Point
from core.report.svg import HEIGHT, WIDTH, label, log_ticks, svg, ticks

GOLDEN = Path(__file__).parents[2] / "golden" / "plot.svg"
SVG = "{http://www.w3.org/2000/svg}"
LEFT, RIGHT, TOP, BOTTOM = 120, WIDTH - 40, 70, HEIGHT - 70
"""The first panel's curve area."""


def drawn(panels: Sequence[Panel]) -> ElementTree.Element:
    picture = ElementTree.fromstring(svg(panels))
    assert picture.get("viewBox") == f"0 0 {WIDTH} {HEIGHT * len(panels)}"
    return picture


def panel(*points: tuple[float, float]) -> Panel:
    return Panel("loss", [Curve("loss", list(points))])


def lines(picture: ElementTree.Element) -> list[ElementTree.Element]:
    """The lines of curves: axes and grid are thinner."""
    return [line for line in picture.iter(f"{SVG}polyline") if line.get("stroke-width") != "1"]


def curves(picture: ElementTree.Element) -> list[list[Point]]:
    """The corners of each curve."""
    corners = [[pair.split(",") for pair in str(line.get("points")).split()] for line in lines(picture)]
    return [[(float(x), float(y)) for x, y in line] for line in corners]


def words(picture: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def test_each_panel_is_drawn_below_the_other_and_a_falling_curve_falls() -> None:
    picture = drawn([panel((1, 2.0), (50, 1.0), (100, 0.5)), panel((1, 0.5), (100, 1.0))])
    falling, rising = curves(picture)
    assert [x for x, _ in falling] == sorted(x for x, _ in falling)
    assert (falling[0][0], falling[-1][0]) == (LEFT, RIGHT)
    assert [y for _, y in falling] == sorted(y for _, y in falling), "down is larger"
    assert rising[0][1] > rising[1][1] > HEIGHT
    assert len(list(picture.iter(f"{SVG}circle"))) == 5


def test_a_curve_over_many_sizes_is_drawn_on_a_logarithmic_scale() -> None:
    ((_, middle, _),) = curves(drawn([panel((0, 1.0), (50, 1e-4), (100, 1e-8))]))
    assert middle == pytest.approx(((LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2)), "a straight line"


def test_steps_lie_faint_behind_the_epochs() -> None:
    both = Panel(
        "loss", [Curve("loss", [(1, 1.0), (2, 0.5)]), Curve("loss", [(1, 2.0), (2, 0.4)], faint=True)]
    )
    picture = drawn([both])
    assert [line.get("opacity") for line in lines(picture)] == ["0.25", "1"]
    assert len({line.get("stroke") for line in lines(picture)}) == 1
    assert sum("loss" in text for text in words(picture)) == 2, "the title, and the curve once in the legend"


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
        [(0.0, 0.0), (1.0, 5e-324)],
        [(0.0, -MOST), (1.0, -MOST)],
    ],
)
def test_any_finite_numbers_are_drawn_inside_the_panel(points: list[Point]) -> None:
    (line,) = curves(drawn([panel(*points)]))
    assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y in line)


@given(st.text(max_size=60))
def test_names_from_anywhere_stay_words(name: str) -> None:
    picture = drawn([Panel(name, [Curve(name, [(1.0, 1.0), (2.0, 2.0)])])])
    assert {element.tag.removeprefix(SVG) for element in picture.iter()} == {
        *("svg", "rect", "polyline", "circle", "text", "tspan")
    }


def test_markup_in_a_name_is_shown_and_a_long_one_is_cut() -> None:
    name = "<script>alert(1)</script>\x1b[31m" + "x" * 500
    title, legend = (
        text for text in words(drawn([Panel(name, [Curve(name, [(1.0, 1.0)])])])) if "alert" in text
    )
    assert title.startswith("<script>alert(1)</script>x")
    assert len(title) == 40
    assert legend.endswith(title)


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


def test_panels_have_one_axis_and_say_who_came_and_went() -> None:
    long, short = panel((0, 2.0), (100, 1.0)), panel((50, 1.0), (75, 2.0))
    long.turns = [(25, "Ben away"), (100, "Ben & Co left")]
    picture = drawn([long, short])
    upper, lower = curves(picture)
    assert (upper[0][0], upper[-1][0]) == (LEFT, RIGHT)
    assert lower[0][0] == pytest.approx((LEFT + RIGHT) / 2), "where step 50 is above it, too"
    turns = [line for line in picture.iter(f"{SVG}line") if line.get("stroke-dasharray")]
    assert [float(str(line.get("x1"))) for line in turns] == [LEFT + (RIGHT - LEFT) / 4, RIGHT]
    assert {"Ben away", "Ben & Co left"} <= set(words(picture))


LOOKED_AT = [
    Panel(
        "loss",
        [
            Curve("loss", [(1, 2.3), (10, 1.1), (100, 0.45), (200, 0.25)]),
            Curve("val_loss", [(100, 0.6), (200, 0.4)]),
            Curve(
                "loss", [(step, 2.3 - step / 100 + (step % 7) / 10) for step in range(1, 200, 3)], faint=True
            ),
        ],
        turns=[(60, "Ben's away"), (80, "Ben's back"), (199, "a <laptop> left")],
    ),
    Panel("learning_rate", [Curve("learning_rate", [(0, 1.0), (5, 1e-3), (10, 1e-6)])]),
    Panel("a flat <line>", [Curve("a flat <line>", [(step, 3.0) for step in range(300)])]),
]


def test_a_picture_stays_as_it_was_when_somebody_looked_at_it() -> None:
    """After an intended change: run ``python -m tests.core.report.test_svg``, and inspect it again."""
    assert svg(LOOKED_AT) == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text(svg(LOOKED_AT), encoding="utf-8")
