"""pyqtgraph comes in small bites, and only when asked for."""

import subprocess
import sys

import pytest

_SCRIPT = """
import sys, time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
app = QApplication([])
import app.charts.panel, app.charts.loading as loading
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
loading.load(then)
loading.load(then)
QApplication.instance().exec()
assert told == [True, True], told
assert turns.count(True) > 2, "the window lived while pyqtgraph was imported"
"""


@pytest.mark.real
def test_the_window_lives_while_pyqtgraph_is_imported() -> None:
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=120)


def test_once_loaded_it_is_told_at_once(qapp: object) -> None:
    import pyqtgraph  # noqa: F401

    from app.charts import loading

    told: list[int] = []
    loading.load(lambda: told.append(1))
    assert told == [1]
