"""Draws panels of curves as an SVG: lines and text, which costs the node next to nothing. Pure.

No drawing library: drawing a picture in a thread blocks all others, including the window's, for a tenth of a
second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from core.report.curves import Curve, Panel, Point
from core.vocabulary.text import plain

WIDTH, HEIGHT = 1400, 520
"""Size of one panel; a page scales the picture."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 120, 40, 70, 70
_INK, _GREY, _GRID = "#20242c", "#6e7480", "#e4e7ec"
_COLOURS = ("#1f6fd6", "#d95f02", "#1b8a5a", "#9249bf")
_FAINT = 0.25
_LOG_FROM = 100.0
"""Values that differ by more than this factor are drawn on a logarithmic scale."""
_MOST_DOTS = 60

Box = tuple[float, float, float, float]


def svg(panels: Sequence[Panel]) -> str:
    """The panels below each other."""
    height = HEIGHT * len(panels)
    # One axis for all, so that panels line up by step.
    steps = [x for panel in panels for curve in panel.curves for x, _ in curve.points]
    span = (min(steps), max(steps)) if steps else (0.0, 1.0)
    drawn = "".join(
        line for number, panel in enumerate(panels) for line in _Panel(panel, number * HEIGHT, span).draw()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n{drawn}</svg>\n'
    )


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``, at most ``most`` + 1."""
    span = high - low
    if not 1e-300 < span < math.inf:
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten with exponents from ``low`` to ``high``, thinned where there are many."""
    first, last = math.ceil(max(low, -307.0) - 1e-9), math.floor(min(high, 308.0) + 1e-9)
    every = max(1, -(-(last - first + 1) // 7))
    return [10.0**power for power in range(first, last + 1, every)]


def label(value: float) -> str:
    return f"{value:.6g}" if 1e-4 <= abs(value) < 1e7 or value == 0 else f"{value:.0e}"


class _Panel:
    def __init__(self, panel: Panel, top: int, span: tuple[float, float]) -> None:
        self._panel = panel
        self._first = top == 0
        values = [y for curve in panel.curves for _, y in curve.points]
        self._log = min(values) > 0 and max(values) / min(values) > _LOG_FROM
        self._x0, self._x1 = _widened(*span, 0.0)
        if self._log:
            self._y0, self._y1 = _widened(math.log10(min(values)), math.log10(max(values)), 0.05)
        else:
            self._y0, self._y1 = _widened(min(values), max(values), 0.05)
        self._box: Box = (_LEFT, top + _TOP, WIDTH - _RIGHT, top + HEIGHT - _BOTTOM)

    def draw(self) -> Iterator[str]:
        """Lines of SVG."""
        yield from self._grid()
        yield from self._turns()
        names = list(dict.fromkeys(curve.name for curve in self._panel.curves))
        colours = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}
        for curve in sorted(self._panel.curves, key=lambda curve: not curve.faint):
            yield from self._curve(curve, colours[curve.name])
        left, top, right, _ = self._box
        yield _words(self._panel.title, left, top - 28, 28)
        # A single right-aligned text: its width is unknown here.
        legend = "".join(
            f'<tspan fill="{colours[name]}" font-weight="bold">   \u2014 </tspan>{_safe(name)}'
            for name in names
        )
        where = f'x="{right}" y="{top - 28}" text-anchor="end" xml:space="preserve"'
        yield f'<text {where} font-size="20" fill="{_INK}">{legend}</text>\n'

    def _grid(self) -> Iterator[str]:
        left, _, right, bottom = self._box
        for value in (log_ticks if self._log else ticks)(self._y0, self._y1):
            y = self._y(value)
            yield _line([(left, y), (right, y)], _GRID, 1)
            yield _words(label(value), left - 12, y + 6, 18, _GREY, "end")
        for value in ticks(self._x0, self._x1, 8):
            x = self._x(value)
            yield _line([(x, bottom), (x, bottom + 6)], _GREY, 1)
            yield _words(label(value), x, bottom + 28, 18, _GREY, "middle")
        yield _line([(left, bottom), (right, bottom)], _GREY, 1)
        yield _words("step", right, bottom + 56, 18, _GREY, "end")

    def _turns(self) -> Iterator[str]:
        _, top, right, bottom = self._box
        for number, (step, words) in enumerate(self._panel.turns):
            x = self._x(step)
            yield (
                f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{_GREY}"'
                ' stroke-width="2" stroke-dasharray="2 5"/>\n'
            )
            if self._first:  # the panels below continue its lines
                near_end = x > right - 200
                where, anchor = (x - 6, "end") if near_end else (x + 6, "start")
                yield _words(words, where, top + 18 + 22 * (number % 3), 18, _GREY, anchor)

    def _curve(self, curve: Curve, colour: str) -> Iterator[str]:
        points: Sequence[Point] = [(self._x(x), self._y(y)) for x, y in curve.points]
        if curve.faint:
            yield _line(points, colour, 2, _FAINT)
            return
        yield _line(points, colour, 3)
        if len(points) <= _MOST_DOTS:
            for x, y in points:
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>\n'

    def _x(self, value: float) -> float:
        return _between(value, self._x0, self._x1, self._box[0], self._box[2])

    def _y(self, value: float) -> float:
        value = math.log10(value) if self._log else value
        return _between(value, self._y0, self._y1, self._box[3], self._box[1])


def _line(points: Sequence[Point], colour: str, width: int, opacity: float = 1.0) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="{width}"'
        f' opacity="{opacity:g}" stroke-linejoin="round"/>\n'
    )


def _words(words: str, x: float, y: float, size: int, colour: str = _INK, anchor: str = "start") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} font-size="{size}" fill="{colour}">{_safe(words)}</text>\n'


def _safe(words: str) -> str:
    """Names come from scripts and other laptops."""
    return escape(plain(words, 40))


def _widened(low: float, high: float, part: float) -> tuple[float, float]:
    """A range of non-zero length, with a margin."""
    if high - low <= abs(high) * 1e-12:
        margin = abs(high) * 0.5 or 0.5
        return low - margin, high + margin
    return low - part * (high - low), high + part * (high - low)


def _between(value: float, low: float, high: float, start: float, end: float) -> float:
    return start + (value - low) / (high - low) * (end - start)
