"""A question over the whole window: everything under it is dimmed and disabled until answered."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QGridLayout, QScrollArea, QVBoxLayout, QWidget

from app import theme
from app.widgets.card import Card

ARM_MS = 400
"""A sheet may appear under the mouse: a click meant for something else must not answer it."""


class Sheet(QWidget):
    """``body`` takes the content. No button has the focus when it opens: Enter alone decides nothing."""

    def __init__(self, parent: QWidget, title: str, *, characters: int = 84, tall: bool = False) -> None:
        """``characters``: maximum width of the card; ``tall``: as high as possible."""
        super().__init__(parent)
        self._over = parent
        self.setAccessibleName(title)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._before: QWidget | None = None
        self._arming: tuple[QWidget, ...] = ()
        self._armed = QTimer(self, singleShot=True, interval=ARM_MS)
        self._armed.timeout.connect(self._arm)
        self.card = Card()
        self.card.setObjectName("sheet")
        self.card.setMaximumWidth(self.fontMetrics().averageCharWidth() * characters)
        self.body: QVBoxLayout = self.card.body
        self.body.setContentsMargins(theme.GAP * 2, theme.GAP * 2, theme.GAP * 2, theme.GAP * 2)
        self.body.setSpacing(theme.GAP)
        grid = QGridLayout(self)
        grid.setContentsMargins(theme.GAP * 2, theme.GAP * 2, theme.GAP * 2, theme.GAP * 2)
        for outer in (0, 2):
            grid.setRowStretch(outer, int(not tall))
            grid.setColumnStretch(outer, 1)
        grid.setRowStretch(1, int(tall))
        grid.setColumnStretch(1, 30)
        grid.addWidget(self.card, 1, 1)
        theme.wear(self)
        parent.installEventFilter(self)
        self.hide()

    @property
    def is_open(self) -> bool:
        return not self.isHidden()

    def open(self) -> None:
        """Covers everything in the parent. Opening an open sheet changes nothing."""
        if self.is_open:
            return
        self._before = QApplication.focusWidget()
        self.setGeometry(self._over.rect())
        self.show()
        self.raise_()
        self.setFocus(Qt.FocusReason.PopupFocusReason)

    def shut(self) -> None:
        """Returns the focus to where it was."""
        if not self.is_open:
            return
        self.hide()
        before, self._before = self._before, None
        try:
            if before is not None and before.isVisible():
                before.setFocus(Qt.FocusReason.PopupFocusReason)
        except RuntimeError:
            pass  # the widget went while the sheet was open

    def enable_soon(self, *buttons: QWidget) -> None:
        """Enables the deciding buttons after a moment."""
        self.disable(*buttons)
        self._arming = buttons
        self._armed.start()

    def disable(self, *buttons: QWidget) -> None:
        self._armed.stop()
        for made in buttons:
            if made.hasFocus():
                self.setFocus()  # Qt would move it to the next button
            made.setEnabled(False)

    def on_escape(self) -> None:
        """The effect of Esc; none unless overridden."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.on_escape()
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def focusNextPrevChild(self, forward: bool) -> bool:
        reachable = [widget for widget in self._chain() if _takes_tab(widget)]
        if not reachable:
            return True
        focused = QApplication.focusWidget()
        at = reachable.index(focused) if focused in reachable else (-1 if forward else len(reachable))
        reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
        reachable[(at + (1 if forward else -1)) % len(reachable)].setFocus(reason)
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        try:
            over = self._over
        except AttributeError:  # Qt may still ask for parts that Python has already deleted
            return False
        if watched is over and event.type() == QEvent.Type.Resize:
            self.setGeometry(over.rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(0, 0, 0, 150 if theme.is_dark() else 90))

    def _arm(self) -> None:
        for made in self._arming:
            made.setEnabled(True)

    def _chain(self) -> list[QWidget]:
        """Everything in the sheet, in tab order."""
        found: list[QWidget] = []
        widget = self.nextInFocusChain()
        while widget is not None and widget is not self:
            if self.isAncestorOf(widget):
                found.append(widget)
            widget = widget.nextInFocusChain()
        return found


def _takes_tab(widget: QWidget) -> bool:
    takes = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
    return takes and widget.isVisible() and widget.isEnabled() and not isinstance(widget, QScrollArea)
