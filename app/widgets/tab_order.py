"""The order in which Tab goes through a screen: as it is laid out. Qt takes the order of making instead."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QScrollArea, QStackedWidget, QWidget


def tab_as_seen(inside: QWidget) -> None:
    """Orders the whole screen that ``inside`` belongs to. For whoever adds widgets to one that is shown."""
    for before, after in pairwise(_stops(_screen(inside))):
        QWidget.setTabOrder(before, after)


def _screen(inside: QWidget) -> QWidget:
    """The page of the innermost stack; where there is none, everything."""
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
    else:  # it lays out its children itself, in their order
        for child in widget.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
            yield from _stops(child)


def _stops_in(layout: QLayout) -> Iterator[QWidget]:
    for index in range(layout.count()):
        item = layout.itemAt(index)
        if item is None:
            continue
        widget, inner = item.widget(), item.layout()
        if widget is not None:
            yield from _stops(widget)
        elif inner is not None:
            yield from _stops_in(inner)
