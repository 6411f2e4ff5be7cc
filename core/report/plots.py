"""The plots on a report's page: the curves as data, and the script that draws them. Pure.

Security invariant: names come from scripts and other laptops. They reach the page as JSON in which no tag can
begin, and the script writes them only as text. The page's policy allows only this script, identified by its
hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from core.report.curves import Curve, Panel
from core.vocabulary.progress import not_finite
from core.vocabulary.text import plain
from core.vocabulary.versions import ROOT

FOLDER = ROOT / "resources" / "report"
MOST_NAME = 80
MOST_POINTS = 4_000
"""Points of a curve, evenly chosen where it has more, with the last one."""
LOG_FROM = 100.0
"""Positive values that differ by more than this factor are first shown on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Script:
    """``policy``: its hash in the form of a Content-Security-Policy."""

    text: str
    style: str
    policy: str


@cache
def script() -> Script:
    """uPlot and the code that draws with it. Raises ``OSError``."""
    text = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in ("uplot.js", "plots.js"))
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return Script(text, (FOLDER / "uplot.css").read_text(encoding="utf-8"), f"'sha256-{digest}'")


def data(panels: Sequence[Panel]) -> str:
    """The plots for ``plots.js``, as JSON that is safe inside a tag."""
    text = msgspec.json.encode([_panel(panel) for panel in panels]).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _panel(panel: Panel) -> dict[str, object]:
    names = list(dict.fromkeys(curve.name for curve in panel.curves))
    values = [value for curve in panel.curves for _, value in curve.points]
    positive = min(values, default=0.0) > 0
    return {
        "title": plain(panel.title, MOST_NAME),
        "positive": positive,
        "log": positive and max(values) / min(values) > LOG_FROM,
        "turns": [(step, plain(words, MOST_NAME)) for step, words in panel.turns],
        "curves": [_curve(curve, names.index(curve.name)) for curve in panel.curves],
    }


def _curve(curve: Curve, colour: int) -> dict[str, object]:
    points = curve.points[:: max(1, -(-len(curve.points) // MOST_POINTS))]
    if points and points[-1] != curve.points[-1]:
        points.append(curve.points[-1])
    return {
        "name": plain(curve.name, MOST_NAME) + (", each step" if curve.faint else ""),
        "colour": colour,
        "faint": curve.faint,
        "dashed": curve.name.startswith("val_"),
        "byEpoch": curve.by_epoch,
        "x": [step for step, _ in points],
        "y": [float(f"{value:.6g}") for _, value in points],
        "bad": [
            (step, "NaN" if value != value else "up" if value > 0 else "down") for step, value in curve.bad
        ],
        "end": _end(curve),
    }


def _end(curve: Curve) -> str:
    """What the curve has become, if its last value is no finite number."""
    if not curve.bad or (curve.points and curve.points[-1][0] >= curve.bad[-1][0]):
        return ""
    return not_finite(curve.bad[-1][1])
