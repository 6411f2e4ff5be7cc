"""The report's own script, with the plotting library, in a browser of a few elements."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import quickjs

from core.report.curves import Curve, Panel
from core.report.plots import FOLDER, data

BROWSER = Path(__file__).with_name("browser.js").read_text(encoding="utf-8")
STEPS = [float(step) for step in range(1, 101)]
LOSS = Panel(
    "loss",
    [
        Curve("loss", [(step, 1.0 + step % 2) for step in STEPS]),
        Curve("val_loss", [(25.0, 0.9), (50.0, 0.5), (75.0, 0.7), (100.0, 0.25)], by_epoch=True),
    ],
    [(30.0, "ben left")],
)
LOST = Panel("accuracy", [Curve("accuracy", [(10.0, -1.0), (40.0, 0.5)], bad=[(90.0, math.nan)])])
Page = Callable[[str], Any]


@pytest.fixture
def page() -> Page:
    """The page of a run with these two panels: runs a piece of script there, and returns its value."""
    browser = quickjs.Context()
    browser.eval(BROWSER)
    browser.eval((FOLDER / "uplot.js").read_text(encoding="utf-8"))
    browser.eval(f"watch(); byId.curves.textContent = {json.dumps(data([LOSS, LOST]))};")
    browser.eval((FOLDER / "plots.js").read_text(encoding="utf-8"))
    browser.eval("settle()")

    def asked(text: str) -> Any:
        said = browser.eval(f"JSON.stringify((() => {{ {text} }})())")
        return None if said is None else json.loads(said)

    return asked


def test_each_metric_has_a_plot_with_the_last_values_beside_its_names(page: Page) -> None:
    assert page("return plots().map(names)") == [["step", "loss", "val_loss"], ["step", "accuracy"]]
    assert page("return values(plots()[0])") == ["last", "1", "0.25"]
    assert page("return values(plots()[1])") == ["last", "NaN"], "the last one, though no point of the line"
    assert page("return plots().map(range)") == [[1, 100], [1, 100]], "linked, where a metric ends early, too"
    assert page("return byId.smoothing.hidden") is False
    said = page("return plots().map(plot => plot.ctx.said)")
    assert all("ben left" in words for words in said[:1]) and "ben left" not in said[1]


def test_the_pointer_shows_the_values_at_a_step_in_all_plots(page: Page) -> None:
    page("mouse(plots()[0], 'mousemove', plots()[0].valToPos(40, 'x'))")
    step, loss, _ = page("return values(plots()[0])")
    assert (step, loss) == ("40", "1")
    assert page("return values(plots()[1])")[0] == "40"


def test_a_drag_zooms_all_plots_and_a_double_click_shows_everything(page: Page) -> None:
    page("const plot = plots()[0]; drag(plot, plot.valToPos(20, 'x'), plot.valToPos(60, 'x'))")
    (left, right), other = page("return plots().map(range)")
    assert (left, right) == (pytest.approx(20, abs=1), pytest.approx(60, abs=1))
    assert other == [left, right]
    page("mouse(plots()[1], 'dblclick', 100)")
    assert page("return plots().map(range)") == [[1, 100], [1, 100]]


def test_a_click_on_a_name_hides_its_curve_and_it_stays_hidden(page: Page) -> None:
    page("click(plots()[0].root.all('u-series')[1].children[0])")
    assert page("return plots()[0].series.map(one => one.show)") == [True, False, True]
    page("slider.oninput({target: {value: '0.5'}}); settle()")
    assert page("return plots()[0].series.map(one => one.show)") == [True, False, True]
    page("click(plots()[0].root.all('u-series')[1].children[0])")
    assert page("return plots()[0].series[1].show") is True


def test_smoothing_leaves_epochs_as_they_are(page: Page) -> None:
    before = page("return plots()[0].data")
    page("slider.oninput({target: {value: '0.9'}}); settle()")
    steps, loss, validation = page("return plots()[0].data")
    assert (steps, validation) == (before[0], before[2])
    assert max(before[1]) - min(before[1]) == 1.0 and max(loss[50:]) - min(loss[50:]) < 0.2
    assert loss[0] == before[1][0], "its first value has no bias"
    page("slider.oninput({target: {value: '0'}}); settle()")
    assert page("return plots()[0].data") == before


def test_only_positive_values_have_a_logarithmic_scale(page: Page) -> None:
    buttons = "byId.plots.children.map(box => box.children[0].children.filter(each => each.tag === 'button'))"
    assert page(f"return {buttons}.map(each => each.length)") == [1, 0]
    press = f"const [[log]] = {buttons}; log.onclick(); settle(); "
    assert page(press + "return [log.attributes['aria-pressed'], plots()[0].scales.y.distr]") == ["true", 3]
    assert page(press + "return [log.attributes['aria-pressed'], plots()[0].scales.y.distr]") == ["false", 1]


def test_the_page_follows_the_systems_colours_and_the_windows_size(page: Page) -> None:
    light = page("return plots()[0].series[1].stroke()")
    page("scheme.matches = true; scheme.onchange(); settle()")
    assert page("return plots()[0].series[1].stroke()") != light
    page("for (const box of byId.plots.children) box.children[0].style.width = '300px'; onresize(); settle()")
    assert page("return plots().map(plot => plot.width)") == [300, 300]
