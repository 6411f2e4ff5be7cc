"""Tab order that follows a screen's layout. Qt's default is the order of creation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

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
        return
    children = widget.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
    layout = widget.layout()
    # Without a layout it lays out its own children, in their order.
    for child in children if layout is None else _in_order(layout, children):
        yield from _stops(child)


def _in_order(layout: QLayout, widgets: Sequence[QWidget]) -> Iterator[QWidget]:
    """Those of ``widgets`` that are in ``layout``, as it lays them out.

    Asks where each is: what ``itemAt`` returns stays in memory as long as the layout, anew with each call.
    """
    places: list[tuple[int, QWidget | QLayout]] = [(layout.indexOf(each), each) for each in widgets]
    places += [(layout.indexOf(each), each) for each in layout.children() if isinstance(each, QLayout)]
    for place, each in sorted(places, key=itemgetter(0)):
        if isinstance(each, QLayout):
            yield from _in_order(each, widgets)
        elif place >= 0:
            yield each
