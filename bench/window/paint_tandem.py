"""Tandem's window until its first paint: reports when that was and what was loaded, and ends."""

import sys
import time

from PySide6.QtWidgets import QApplication

from app import desktop


def after_first_paint(*_: object) -> None:
    heavy = [name for name in ("tensorflow", "keras", "pyqtgraph") if name in sys.modules]
    print(time.process_time(), *heavy, flush=True)
    QApplication.exit()  # a quit would first ask the window, in which nobody can answer yet


desktop._begin = after_first_paint  # type: ignore[assignment]
sys.exit(desktop.main(["--home", sys.argv[1]]))
