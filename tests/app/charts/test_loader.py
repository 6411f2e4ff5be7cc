"""pyqtgraph is loaded in small pieces, and only when requested."""

import subprocess
import sys

import pytest
import shiboken6
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.charts import loader

_SCRIPT = """
import sys, time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
app = QApplication([])
import app.charts.panel, app.charts.loader as loader
assert "pyqtgraph" not in sys.modules and "numpy" not in sys.modules
turns = []
timer = QTimer(interval=0)
timer.timeout.connect(lambda: turns.append("pyqtgraph" in sys.modules))
timer.start()
told = []
def then():
    told.append("pyqtgraph" in sys.modules)
    if len(told) == 2:
        QTimer.singleShot(0, QApplication.instance().quit)
loader.load(app, then)
loader.load(app, then)
QApplication.instance().exec()
assert told == [True, True], told
assert turns.count(True) > 2, "the window lived while pyqtgraph was imported"
"""

_LEAN = """
import sys
from PySide6.QtWidgets import QApplication
app = QApplication([])
import app.charts.loader as loader
loader.import_pyqtgraph()
import PySide6.QtCore
assert "QObject" in dir(PySide6.QtCore), "Qt's modules tell what they have"
import pyqtgraph
assert not hasattr(pyqtgraph, "ImageView") and not hasattr(pyqtgraph, "ROI")
assert not {"PySide6.QtTest", "PySide6.QtOpenGL", "PySide6.QtOpenGLWidgets", "cProfile"} & set(sys.modules)
import cProfile, PySide6.QtOpenGL
assert cProfile.Profile and PySide6.QtOpenGL.QOpenGLBuffer, "they are there for others"
assert "QDial" not in vars(pyqtgraph.QtWidgets), "Qt's classes are copied"
assert issubclass(pyqtgraph.PlotWidget, pyqtgraph.QtWidgets.QWidget)
"""


def test_only_what_plots_need_is_imported() -> None:
    subprocess.run([sys.executable, "-c", _LEAN], check=True, timeout=120)


@pytest.mark.real
def test_the_window_lives_while_pyqtgraph_is_imported() -> None:
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=120)


def test_once_loaded_it_is_reported_at_once(qapp: object) -> None:
    import pyqtgraph  # noqa: F401

    told: list[int] = []
    owner = QObject()
    loader.load(owner, lambda: told.append(1))
    assert told == [1]


def test_whoever_is_gone_meanwhile_is_not_told(qtbot: QtBot) -> None:
    made = loader.Loader()
    told: list[str] = []
    gone, stays = QObject(), QObject()
    made._loading = True
    made.load(gone, lambda: told.append("gone"))
    made.load(stays, lambda: told.append("stays"))
    shiboken6.delete(gone)
    made._import()
    assert told == ["stays"]
