"""Tandem's own icons, drawn from SVG in the colours of the present theme."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).parents[2] / "resources" / "icons"
APPLICATION = FOLDER / "tandem.svg"


def image(svg: bytes, size: int) -> QImage:
    """A square picture of ``size`` pixels with a transparent ground."""
    # Not fill: it would load Qt's hundred enums, 20 ms before the first paint.
    ground = bytes(size * size * 4)
    picture = QImage(ground, size, size, QImage.Format.Format_ARGB32_Premultiplied).copy()
    painter = QPainter(picture)
    QSvgRenderer(QByteArray(svg)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return picture


def screen_icon(name: str, colour: str, size: int, ratio: float = 1.0) -> QIcon:
    """An icon of ``resources/icons/screens`` with its lines in ``colour``; ``ratio``: pixels of the screen
    to one of the window."""
    return QIcon(_drawn(FOLDER / "screens" / f"{name}.svg", colour, size, ratio))


def example_picture(name: str, colour: str, size: int, ratio: float = 1.0) -> QPixmap:
    """What an example learns, of ``resources/icons/examples``."""
    return _drawn(FOLDER / "examples" / f"{name}.svg", colour, size, ratio)


def drop_picture(colour: str, size: int, ratio: float = 1.0) -> QPixmap:
    """Here something may be dropped."""
    return _drawn(FOLDER / "drop.svg", colour, size, ratio)


def _drawn(path: Path, colour: str, size: int, ratio: float) -> QPixmap:
    svg = path.read_bytes().replace(b"currentColor", colour.encode())
    pixmap = QPixmap.fromImage(image(svg, round(size * ratio)))
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def application_icon(sizes: tuple[int, ...] = (16, 32, 64, 128)) -> QIcon:
    svg = APPLICATION.read_bytes()
    icon = QIcon()
    for size in sizes:
        icon.addPixmap(QPixmap.fromImage(image(svg, size)))
    return icon
