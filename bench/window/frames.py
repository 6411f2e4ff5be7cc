"""Draws four curves of few and of very many points in turn; prints the seconds of each frame as JSON."""

import json
import sys
import time

import numpy as np
from PySide6.QtWidgets import QApplication

from app import theme
from app.charts.curve import Look, PlotCurve
from app.charts.plot import Plot
from core.report.points import Points

CURVES = 4
SIZE = (900, 420)


def filled(count: int, seed: int) -> Points:
    """A loss like real ones: falling, with noise."""
    random = np.random.default_rng(seed)
    points = Points()
    at = np.arange(count, dtype=np.float64)
    points.steps.frombytes(at.tobytes())
    points.seconds.frombytes((at / 100).tobytes())
    points.values.frombytes((np.exp(-3 * at / count) + 0.05 * random.standard_normal(count)).tobytes())
    return points


def plot_of(count: int) -> Plot:
    plot = Plot("loss")
    plot.resize(*SIZE)
    plot.show()
    colours = theme.colours().curves
    curves = [
        PlotCurve(points=filled(count, seed), name=str(seed), colour=colours[seed % len(colours)])
        for seed in range(CURVES)
    ]
    plot.show_curves(curves, Look())
    while not plot.catch_up():
        pass
    return plot


def frame(plot: Plot) -> float:
    """Adds a point to each curve; all are taken in, drawn and painted."""
    for curve in plot.curves:
        points = curve.points
        points.add(points.steps[-1] + 1, points.seconds[-1] + 0.01, points.values[-1])
    began_s = time.perf_counter()
    plot.catch_up()
    plot.redraw()
    plot.canvas.viewport().repaint()
    return time.perf_counter() - began_s


def main(counts: list[int], frames: int) -> None:
    app = QApplication([])
    theme.use("light")
    plots = [plot_of(count) for count in counts]
    app.processEvents()
    for plot in plots * 3:
        frame(plot)
    took: list[list[float]] = [[] for _ in plots]
    for _ in range(frames):
        for plot, seconds in zip(plots, took, strict=True):
            seconds.append(frame(plot))
    print(json.dumps(took))


if __name__ == "__main__":
    main([int(count) for count in sys.argv[2:]], int(sys.argv[1]))
