"""Draws panels of curves as a PNG. Blocks for some tenths of a second: use a thread.

Pillow and no plotting library: a node needs a dozen lines and words at a run's end, not 30 MB of imports.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.run.report_curves import Curve, Panel, Points
from core.text import plain

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import BaseImageFont

WIDTH, HEIGHT = 1400, 520
"""Of one panel, in pixels."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 120, 40, 70, 70
_SMOOTH = 2
"""Drawn so many times larger and made smaller again: Pillow's lines have stairs."""
_INK, _GREY, _GRID = (32, 36, 44), (110, 116, 128), (228, 231, 236)
_COLOURS = ((31, 111, 214), (217, 95, 2), (27, 138, 90), (146, 73, 191))
_LOG_FROM = 100.0
"""Values that differ by more than this factor are drawn on a logarithmic scale."""

Box = tuple[float, float, float, float]


def png(panels: Sequence[Panel]) -> bytes:
    """The panels below each other."""
    # Late: a node that draws nothing loads nothing of it.
    from PIL import Image, ImageDraw

    size = (WIDTH * _SMOOTH, HEIGHT * max(1, len(panels)) * _SMOOTH)
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for number, panel in enumerate(panels):
        _Panel(draw, panel, number * HEIGHT).draw()
    image = image.resize((size[0] // _SMOOTH, size[1] // _SMOOTH), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``, at most ``most`` and one."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
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
    def __init__(self, draw: ImageDraw, panel: Panel, top: int) -> None:
        self._draw = draw
        self._panel = panel
        values = [y for curve in panel.curves for _, y in curve.points]
        steps = [x for curve in panel.curves for x, _ in curve.points]
        self._log = min(values) > 0 and max(values) / min(values) > _LOG_FROM
        self._x0, self._x1 = _widened(min(steps), max(steps), 0.0)
        if self._log:
            self._y0, self._y1 = _widened(math.log10(min(values)), math.log10(max(values)), 0.05)
        else:
            self._y0, self._y1 = _widened(min(values), max(values), 0.05)
        self._box: Box = (_LEFT, top + _TOP, WIDTH - _RIGHT, top + HEIGHT - _BOTTOM)

    def draw(self) -> None:
        self._grid()
        names = list(dict.fromkeys(curve.name for curve in self._panel.curves))
        colours = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}
        for curve in sorted(self._panel.curves, key=lambda curve: not curve.faint):
            self._curve(curve, colours[curve.name])
        self._words(plain(self._panel.title, 40), _LEFT, self._box[1] - 52, 28, _INK, "la")
        right = self._box[2]
        for name in reversed(names):
            shown = plain(name, 40)
            self._words(shown, right, self._box[1] - 44, 20, _INK, "ra")
            right -= self._draw.textlength(shown, font=_font(20)) / _SMOOTH + 12
            y = self._box[1] - 32
            self._line([(right - 28, y), (right, y)], colours[name], 4)
            right -= 56

    def _grid(self) -> None:
        left, _, right, bottom = self._box
        for value in (log_ticks if self._log else ticks)(self._y0, self._y1):
            y = self._y(value)
            self._line([(left, y), (right, y)], _GRID, 1)
            self._words(label(value), left - 12, y, 18, _GREY, "rm")
        for value in ticks(self._x0, self._x1, 8):
            x = self._x(value)
            self._line([(x, bottom), (x, bottom + 6)], _GREY, 1)
            self._words(label(value), x, bottom + 12, 18, _GREY, "ma")
        self._line([(left, bottom), (right, bottom)], _GREY, 1)
        self._words("step", right, bottom + 40, 18, _GREY, "ra")

    def _curve(self, curve: Curve, colour: tuple[int, int, int]) -> None:
        points: Points = [(self._x(x), self._y(y)) for x, y in curve.points]
        if curve.faint:
            self._line(points, _faded(colour), 2)
            return
        self._line(points, colour, 3)
        if len(points) <= 60:
            for x, y in points:
                self._dot(x, y, colour)

    def _x(self, value: float) -> float:
        return _between(value, self._x0, self._x1, self._box[0], self._box[2])

    def _y(self, value: float) -> float:
        value = math.log10(value) if self._log else value
        return _between(value, self._y0, self._y1, self._box[3], self._box[1])

    def _line(self, points: Points, colour: tuple[int, int, int], width: int) -> None:
        if len(points) > 1:
            scaled = [(x * _SMOOTH, y * _SMOOTH) for x, y in points]
            self._draw.line(scaled, fill=colour, width=width * _SMOOTH, joint="curve")

    def _dot(self, x: float, y: float, colour: tuple[int, int, int]) -> None:
        box = [(x - 4) * _SMOOTH, (y - 4) * _SMOOTH, (x + 4) * _SMOOTH, (y + 4) * _SMOOTH]
        self._draw.ellipse(box, fill=colour)

    def _words(
        self, words: str, x: float, y: float, size: int, colour: tuple[int, int, int], anchor: str
    ) -> None:
        self._draw.text((x * _SMOOTH, y * _SMOOTH), words, font=_font(size), fill=colour, anchor=anchor)


def _font(size: int) -> BaseImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size * _SMOOTH)


def _widened(low: float, high: float, part: float) -> tuple[float, float]:
    """A range that has a length, with a margin."""
    if high - low <= abs(high) * 1e-12:
        margin = abs(high) * 0.5 or 0.5
        return low - margin, high + margin
    return low - part * (high - low), high + part * (high - low)


def _between(value: float, low: float, high: float, start: float, end: float) -> float:
    return start + (value - low) / (high - low) * (end - start)


def _faded(colour: tuple[int, int, int]) -> tuple[int, int, int]:
    red, green, blue = ((channel + 3 * 255) // 4 for channel in colour)
    return red, green, blue
