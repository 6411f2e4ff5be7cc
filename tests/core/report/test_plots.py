from __future__ import annotations

import json
import math
from typing import Any

from core.report.curves import Curve, Panel
from core.report.plots import data, script


def told(*panels: Panel) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(data(panels))
    return found


def test_steps_behind_their_epochs_have_their_colour_and_a_name_of_their_own() -> None:
    line, steps = [(10.0, 1.0), (20.0, 0.5)], [(5.0, 1.2), (15.0, 0.7)]
    curves = [
        Curve("loss", line, by_epoch=True),
        Curve("loss", steps, faint=True),
        Curve("val_loss", line, by_epoch=True),
    ]
    (panel,) = told(Panel("loss", curves, [(15.0, "Ben's away")]))
    assert [curve["name"] for curve in panel["curves"]] == ["loss", "loss, each step", "val_loss"]
    assert [curve["colour"] for curve in panel["curves"]] == [0, 0, 1]
    assert [curve["dashed"] for curve in panel["curves"]] == [False, False, True], "as in the window"
    assert [curve["byEpoch"] for curve in panel["curves"]] == [True, False, True]
    assert panel["curves"][1]["x"] == [5.0, 15.0]
    assert panel["curves"][1]["y"] == [1.2, 0.7]
    assert panel["turns"] == [[15.0, "Ben's away"]]


def test_values_far_apart_begin_on_a_logarithmic_scale_and_others_may_have_none() -> None:
    def panel(*values: float) -> Panel:
        return Panel("loss", [Curve("loss", list(enumerate(values)))])

    wide, narrow, mixed, empty = told(panel(1e-3, 1.0), panel(0.5, 1.0), panel(-1.0, 1000.0), panel())
    assert (wide["positive"], wide["log"]) == (True, True)
    assert (narrow["positive"], narrow["log"]) == (True, False)
    assert (mixed["positive"], mixed["log"]) == (False, False)
    assert (empty["positive"], empty["log"]) == (False, False)


def test_a_value_that_is_no_number_has_its_mark_and_its_word_where_it_is_the_last() -> None:
    bad = [(3.0, math.nan), (4.0, math.inf), (5.0, -math.inf)]
    (panel,) = told(Panel("loss", [Curve("loss", [(1.0, 0.5), (9.0, 0.4)], bad=bad)]))
    (curve,) = panel["curves"]
    assert curve["bad"] == [[3.0, "NaN"], [4.0, "up"], [5.0, "down"]] and curve["end"] == ""
    for last, word in ((math.nan, "NaN"), (math.inf, "infinite"), (-math.inf, "-infinite")):
        (panel,) = told(Panel("loss", [Curve("loss", [(1.0, 0.5)], bad=[(9.0, last)])]))
        assert panel["curves"][0]["end"] == word and panel["curves"][0]["y"] == [0.5]


def test_a_curve_of_very_many_points_is_thinned_and_keeps_the_last() -> None:
    (panel,) = told(Panel("loss", [Curve("loss", [(float(x), 1 / 3) for x in range(10_001)])]))
    (curve,) = panel["curves"]
    assert curve["x"] == [*map(float, range(0, 10_001, 3)), 10_000.0]
    assert set(curve["y"]) == {0.333333}


def test_the_script_on_the_page_names_its_licence_and_cannot_end_its_tag() -> None:
    text = script().text
    assert "The MIT License" in text and "Leon Sorokin" in text
    assert "</script" not in text.lower() and "<!--" not in text
    assert "innerHTML" not in text, "names are written as text"
