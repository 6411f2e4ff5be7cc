"""Text to be read and copied, not changed: logs, tracebacks, TF_CONFIG. Always plain, in a fixed font."""

from __future__ import annotations

from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QPlainTextEdit

from app.widgets.labels import name_for_readers


class TextView(QPlainTextEdit):
    """``lines``: it is at least so many high. Tab leaves it."""

    def __init__(self, name: str, description: str = "", *, lines: int = 0, wraps: bool = False) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        if not wraps:
            self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        if lines:
            self.setMinimumHeight(self.fontMetrics().height() * lines)
        name_for_readers(self, name, description)
