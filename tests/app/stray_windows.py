"""Finds widgets shown before they have a parent: each flashes as a window and takes the focus."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget

from app.window import Window


class StrayWindows(QObject):
    """Watches from its creation to ``end``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        """Class names of everything shown besides Tandem's window, dialogs, menus and tooltips."""
        self._app().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.Show
            and isinstance(watched, QWidget)
            and watched.windowType() == Qt.WindowType.Window
            and not isinstance(watched, Window)
        ):
            self.on_found(type(watched).__name__)
        return False

    def on_found(self, name: str) -> None:
        self.found.append(name)

    def end(self) -> None:
        self._app().removeEventFilter(self)

    @staticmethod
    def _app() -> QObject:
        app = QApplication.instance()
        assert app is not None
        return app
