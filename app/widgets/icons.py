"""Tandem's own icons, drawn from SVG in the present theme's colours."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).parents[2] / "resources" / "icons"
APPLICATION = FOLDER / "tandem.svg"


def image(svg: bytes, size: int) -> QImage:
    """A square picture of ``size`` pixels with a transparent background."""
    # Not fill: it would load Qt's hundred enums, 20 ms before the first paint.
    ground = bytes(size * size * 4)
    picture = QImage(ground, size, size, QImage.Format.Format_ARGB32_Premultiplied).copy()
    painter = QPainter(picture)
    QSvgRenderer(QByteArray(svg)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return picture


def screen_icon(name: str, colour: str, size: int, ratio: float = 1.0) -> QIcon:
    """An icon from ``resources/icons/screens`` with its lines in ``colour``; ``ratio``: screen pixels per
    window pixel."""
    return QIcon(drawn(f"screens/{name}", colour, size, ratio))


def drawn(name: str, colour: str, size: int, ratio: float = 1.0) -> QPixmap:
    """A drawing from ``resources/icons``, like ``screen_icon``."""
    svg = (FOLDER / f"{name}.svg").read_bytes().replace(b"currentColor", colour.encode())
    pixmap = QPixmap.fromImage(image(svg, round(size * ratio)))
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def application_icon(sizes: tuple[int, ...] = (16, 32, 64, 128)) -> QIcon:
    svg = APPLICATION.read_bytes()
    icon = QIcon()
    for size in sizes:
        icon.addPixmap(QPixmap.fromImage(image(svg, size)))
    return icon
