"""Tells when the chosen script may be another one, or may run better: saved again, or looked at again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication

SETTLE_MS = 400
"""An editor writes a file in several steps."""


class ScriptWatch(QObject):
    """``changed``: the script was saved, replaced or removed, or its user came back to this program, perhaps
    from installing a package."""

    def __init__(self, parent: QObject, changed: Callable[[], None]) -> None:
        super().__init__(parent)
        self._script = ""
        self._files = QFileSystemWatcher(self)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(changed)
        self._files.fileChanged.connect(self._on_file)
        application = QGuiApplication.instance()
        assert isinstance(application, QGuiApplication)
        application.applicationStateChanged.connect(self._on_application)

    def follow(self, script: str) -> None:
        """Watch this file only. Editors replace a file by another of its name, which ends the watch."""
        self._script = script
        if watched := self._files.files():
            self._files.removePaths(watched)
        if Path(script).is_file():
            self._files.addPath(script)

    def _on_file(self, _: str) -> None:
        self._settle.start()

    def _on_application(self, now: Qt.ApplicationState) -> None:
        if now is Qt.ApplicationState.ApplicationActive and self._script:
            self._settle.start()
