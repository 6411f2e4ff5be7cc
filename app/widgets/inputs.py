"""Input fields, and the dialogs that ask for a file."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QScrollBar,
    QWidget,
)

from app import theme

Field = TypeVar("Field", bound=QWidget)
NAME_BYTES = 63
"""Maximum bytes of a laptop's name, which goes into an mDNS label."""
_INSET = 4
"""Pixels between a spin box's number and its edge."""


class _PassWheel(QObject):
    """Ignores the wheel for a widget, so that Qt passes the event to its parent."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.Wheel:
            return False
        event.ignore()
        return True


def unscrolled(field: Field) -> Field:
    """``field``, whose value the mouse wheel does not change: it scrolls the page, wherever the mouse is.

    Every combo box, slider and spin box of the window goes through this. By default Qt's take the wheel even
    without focus: scrolling past one would change its value.
    """
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # not the wheel's
    field.installEventFilter(_PassWheel(field))
    if isinstance(field, QAbstractSpinBox):
        field.lineEdit().setTextMargins(_INSET, 0, 0, 0)  # a style sheet's padding does not reach it
    return field


class FileDialog(QFileDialog):
    """Wears the theme and is deleted once closed. Open it by ``open``, which does not block."""

    def __init__(self, parent: QWidget, title: str, suggested: str = "", *, saves: str = "") -> None:
        """``saves``: asks where to save a file with this suffix (``png``); else asks for an existing file."""
        super().__init__(parent, title, suggested)
        if saves:
            self.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
            self.setDefaultSuffix(saves)
            self.setNameFilter(f"*.{saves}")
        theme.wear(self)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for field in self.findChildren(QWidget):
            if takes_wheel(field):
                unscrolled(field)


def takes_wheel(widget: QWidget) -> bool:
    """Whether Qt would change its value by the wheel. Scroll bars don't count: that is their purpose."""
    kinds = (QComboBox, QAbstractSlider, QAbstractSpinBox)
    return isinstance(widget, kinds) and not isinstance(widget, QScrollBar)


class NameEdit(QLineEdit):
    """Limits a name to ``limit_bytes`` of UTF-8. Text typed or pasted beyond that is dropped, as Qt does
    with characters."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__()
        self._limit_bytes = limit_bytes
        self.textChanged.connect(self._fit)

    def _fit(self, text: str) -> None:
        if len(_utf8(text)) <= self._limit_bytes:
            return
        # New text ends at the cursor; its excess is dropped, in whole characters.
        at = self.cursorPosition()
        keep = at
        while keep and len(_utf8(text[:keep] + text[at:])) > self._limit_bytes:
            keep -= 1
        self.setText(text[:keep] + text[at:])
        self.setCursorPosition(keep)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
