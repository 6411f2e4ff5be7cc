"""Draws four curves of few and of very many points in turn, and a page of many metrics; prints the seconds of
each frame as JSON."""

import json
import sys
import time

import numpy as np
from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication

from app import theme
from app.charts.curve import Look, PlotCurve
from app.charts.panel import ChartPanel
from app.charts.plot import Plot
from app.charts.sources import Source
from app.widgets.page import Page
from core.report.points import CurveKey, Points, RunPoints
from core.vocabulary.ids import DeviceId

CURVES = 4
SIZE = (900, 420)
METRICS, STEPS = 20, 100_000
PAGE = (1366, 768)
DRAWN_S = 120.0


def filled(count: int, seed: int) -> Points:
    """A loss like real ones: falling, with noise."""
    random = np.random.default_rng(seed)
    points = Points()
    at = np.arange(count, dtype=np.float64)
    points.steps.frombytes(at.tobytes())
    points.seconds.frombytes((at / 100).tobytes())
    points.places.frombytes((at / count).tobytes())
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


def page_of(app: QApplication) -> tuple[Page, ChartPanel]:
    """The plots of a run with many metrics on a page as large as a small screen; those in view are drawn."""
    run = RunPoints()
    for place in range(METRICS):
        run.curves[CurveKey(DeviceId(""), f"metric_{place}", False)] = filled(STEPS, place)
    page, panel = Page("Run"), ChartPanel()
    page.add(panel)
    page.resize(*PAGE)
    page.show()
    panel.show_sources([Source("train.py", run, {})])
    until_s = time.monotonic() + DRAWN_S
    while not panel.redraws:
        app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        if time.monotonic() > until_s:
            raise TimeoutError("the page was not drawn")
    return page, panel


def page_frame(panel: ChartPanel, at: int) -> float:
    """A point for every metric while somebody drags: all plots in view show another part and are painted."""
    for curve in panel.sources[0].points.curves.values():
        curve.add(curve.steps[-1] + 1, curve.seconds[-1] + 0.01, curve.values[-1])
    left = at * STEPS / 1000
    began_s = time.perf_counter()
    for plot in panel.plots:
        plot.catch_up()
        plot.show_range(left, left + STEPS / 2)
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
    _page, panel = page_of(app)
    for at in range(3):
        page_frame(panel, at)
    took.append([page_frame(panel, at) for at in range(frames)])
    print(json.dumps({"frames": took, "in_view": len(panel.plots)}))


if __name__ == "__main__":
    main([int(count) for count in sys.argv[2:]], int(sys.argv[1]))
