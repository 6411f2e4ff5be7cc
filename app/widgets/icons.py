"""Tandem's own icons, drawn from SVG in the colours of the present theme."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).parents[2] / "resources" / "icons"
APPLICATION = FOLDER / "tandem.svg"


def image(svg: bytes, size: int) -> QImage:
    """A square picture of ``size`` pixels with a transparent ground."""
    picture = QImage(QSize(size, size), QImage.Format.Format_ARGB32_Premultiplied)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    QSvgRenderer(QByteArray(svg)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return picture


def screen_icon(name: str, colour: str, size: int) -> QIcon:
    """An icon of ``resources/icons/screens`` with its lines in ``colour``."""
    svg = (FOLDER / "screens" / f"{name}.svg").read_bytes().replace(b"currentColor", colour.encode())
    icon = QIcon()
    for ratio in (1, 2):
        pixmap = QPixmap.fromImage(image(svg, size * ratio))
        pixmap.setDevicePixelRatio(ratio)
        icon.addPixmap(pixmap)
    return icon


def application_icon(sizes: tuple[int, ...] = (16, 32, 64, 128)) -> QIcon:
    svg = APPLICATION.read_bytes()
    icon = QIcon()
    for size in sizes:
        icon.addPixmap(QPixmap.fromImage(image(svg, size)))
    return icon
