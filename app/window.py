"""The one window: navigation on the left, one screen at a time on the right, notices above it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QMainWindow, QStackedWidget, QWidget

from app.bridge import Bridge
from app.views.view import View
from core.events import Event
from core.state import State


class Window(QMainWindow):
    """Shows ``views`` in order; Ctrl+1… goes to them. ``close_asked`` leaves the decision to its owner."""

    close_asked = Signal()

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.setWindowTitle("Tandem")
        self.resize(QSize(1120, 760))
        self.setMinimumSize(QSize(720, 480))
        self.may_close = False
        self._views: list[View] = []
        self._navigation = QListWidget()
        self._navigation.setObjectName("navigation")
        self._navigation.setAccessibleName("Screens")
        self._navigation.setFixedWidth(self.fontMetrics().averageCharWidth() * 24)
        self._navigation.setFrameShape(QListWidget.Shape.NoFrame)
        self._stack = QStackedWidget()
        self._navigation.currentRowChanged.connect(self._stack.setCurrentIndex)
        body = QWidget()
        layout = QHBoxLayout(body)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._navigation)
        layout.addWidget(self._stack, 1)
        self.setCentralWidget(body)
        bridge.changed.connect(self._on_changed)
        self._bridge = bridge

    def add(self, view: View) -> None:
        """Puts a screen at the end of the navigation."""
        number = len(self._views) + 1
        item = QListWidgetItem(view.title)
        item.setToolTip(f"Ctrl+{number}")
        self._navigation.addItem(item)
        self._stack.addWidget(view)
        self._views.append(view)
        shortcut = QShortcut(QKeySequence(f"Ctrl+{number}"), self)
        shortcut.activated.connect(lambda: self.go_to(view))
        view.show_state(self._bridge.state, ())
        if number == 1:
            self._navigation.setCurrentRow(0)

    def go_to(self, view: View) -> None:
        """Brings a screen to the front, and the keyboard to it."""
        self._navigation.setCurrentRow(self._views.index(view))
        view.setFocus(Qt.FocusReason.OtherFocusReason)

    def come_forward(self) -> None:
        """Shows the window in front of others, also from the tray."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.may_close:
            event.accept()
        else:
            event.ignore()
            self.close_asked.emit()

    def _on_changed(self, events: Sequence[Event], state: State) -> None:
        for view in self._views:
            view.show_state(state, events)
