"""Draws how a loss falls on a slow network: on two laptops, exactly and rarely, and on one of them alone.

``python -m bench.curves`` takes about five minutes, and writes the picture of docs/slow-networks.md. A
transformer of 1.3 million parameters learns the text of resources/examples; each laptop is a process with a
core.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from bench.engine.pair import Pair
from bench.wire.link import Link

WORK, EPOCHS, MBIT = "learn-gpt", 2, 240
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "slow-network.svg"
ALONE, EXACT, RARE = "one laptop", "two laptops, exact", "two laptops, rare meetings"
COLOURS = {ALONE: "#6b7280", EXACT: "#2563eb", RARE: "#d9480f"}
POINTS = 60
"""Points of a curve; each is a mean."""
WIDTH, HEIGHT = 720, 360
Curve = Sequence[tuple[float, float]]


def measure() -> dict[str, Curve]:
    """Seconds since the first step, and the loss, by way."""
    with Link(MBIT) as link:
        return {
            ALONE: _trained(Pair("tandem", WORK, shares=(1,))),
            EXACT: _trained(Pair("tandem", WORK, link=link)),
            RARE: _trained(Pair("tandem", WORK, link=link, sync="rare")),
        }


def _trained(pair: Pair) -> Curve:
    with pair:
        pair.order(f"train {EPOCHS}")
        return smooth(pair.answered().losses)


def smooth(points: Curve) -> Curve:
    """At most ``POINTS`` means over equal times."""
    ends_s = max((at_s for at_s, _ in points), default=0.0)
    parts: dict[int, list[tuple[float, float]]] = {}
    for at_s, loss in points:
        parts.setdefault(min(POINTS - 1, int(POINTS * at_s / (ends_s or 1.0))), []).append((at_s, loss))
    return [(fmean(at_s for at_s, _ in part), fmean(loss for _, loss in part)) for part in parts.values()]


def draw(curves: Mapping[str, Curve], path: Path) -> None:
    """Writes an SVG. Needs a QApplication."""
    import pyqtgraph as pg
    from PySide6.QtCore import QRectF, QSize, Qt
    from PySide6.QtGui import QPainter
    from PySide6.QtSvg import QSvgGenerator
    from PySide6.QtWidgets import QApplication

    pg.setConfigOptions(background="w", foreground="#1f2937", antialias=True)
    plot = pg.PlotWidget()
    plot.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    plot.resize(WIDTH, HEIGHT)
    plot.getAxis("bottom").setHeight(48)
    plot.getAxis("left").setWidth(56)
    plot.setLabel("bottom", f"seconds since the first step, at {MBIT} Mbit/s")
    plot.setLabel("left", "training loss")
    plot.addLegend(offset=(-20, 20))
    for way, points in curves.items():
        times_s, losses = zip(*points, strict=True)
        plot.plot(times_s, losses, pen=pg.mkPen(COLOURS[way], width=2), name=way)
    plot.show()
    QApplication.processEvents()  # only a visible one lays out its axes
    drawing = QSvgGenerator()
    drawing.setFileName(str(path))
    drawing.setResolution(plot.logicalDpiX())
    drawing.setSize(QSize(WIDTH, HEIGHT))
    drawing.setViewBox(QRectF(0, 0, WIDTH, HEIGHT))
    drawing.setTitle("How the loss falls on a slow network")
    painter = QPainter(drawing)
    plot.scene().prepareForPaint()
    plot.render(painter)
    painter.end()
    plot.close()


def main() -> None:
    from PySide6.QtWidgets import QApplication

    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QApplication([])
    draw(measure(), PICTURE)
    application.quit()


if __name__ == "__main__":
    main()
