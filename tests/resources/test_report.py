from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtQml import QJSEngine

from core.report.plots import script


def test_the_reports_script_can_be_read(qapp: QCoreApplication) -> None:
    read: Any = QJSEngine().evaluate(f"(function () {{{script().text}}})")
    assert not read.isError(), f"{read.toString()}, line {read.property('lineNumber').toInt()}"
