"""Tab order that follows a screen's layout. Qt's default is the order of creation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QScrollArea, QStackedWidget, QWidget


def tab_as_seen(inside: QWidget) -> None:
    """Orders the whole screen that contains ``inside``. Call after adding widgets to a visible screen."""
    for before, after in pairwise(_stops(_screen(inside))):
        QWidget.setTabOrder(before, after)


def _screen(inside: QWidget) -> QWidget:
    """The page of the innermost stack; without one, everything."""
    screen = inside
    while (parent := screen.parentWidget()) is not None and not isinstance(parent, QStackedWidget):
        screen = parent
    return screen


def _stops(widget: QWidget) -> Iterator[QWidget]:
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield widget
        if not isinstance(widget, QScrollArea):
            return
    if isinstance(widget, QScrollArea):
        content = widget.widget()
        if content is not None:
            yield from _stops(content)
    elif (layout := widget.layout()) is not None:
        yield from _stops_in(layout)
    else:  # it lays out its own children, in their order
        for child in widget.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
            yield from _stops(child)


def _stops_in(layout: QLayout) -> Iterator[QWidget]:
    for index in range(layout.count()):
        item = layout.itemAt(index)
        if item is None:
            continue
        widget, inner = item.widget(), item.layout()
        if inner is None:
            # Qt deletes the item with its widget without telling Python, whose object would then stand for
            # whatever is later allocated at that address: pyqtgraph, which makes objects by address, draws
            # with it.
            shiboken6.invalidate(item)
        if widget is not None:
            yield from _stops(widget)
        elif inner is not None:
            yield from _stops_in(inner)
