"""The frame of a screen: a scrolling column with a title, equally wide on all screens."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QWidget

from app.theme import GAP
from app.widgets.card import Piece, column, fill, row
from app.widgets.labels import ElidedLabel, Label

WIDEST = 200
"""Maximum width in average characters: in longer lines the eye loses its place."""


class Page(QScrollArea):
    """``head`` is the title's row, to which buttons may be added; ``add`` takes the content.

    The content is equally wide with and without a scroll bar.
    """

    def __init__(
        self, title: str, lead: str = "", *, characters: int = WIDEST, centred: bool = False
    ) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inner = QWidget()
        inner.setObjectName("page")
        outer = QHBoxLayout(inner)
        outer.setContentsMargins(GAP * 2, GAP * 2, GAP * 2, GAP * 2)
        content = QWidget()
        content.setMaximumWidth(self.fontMetrics().averageCharWidth() * characters)
        if centred:
            outer.addStretch(1)
        outer.addWidget(content, 30)
        outer.addStretch(1 if centred else 0)
        self.title = ElidedLabel(title, "title")
        self.head = row(self.title)
        self.head.setStretchFactor(self.title, 1)
        self.lead = Label(lead, "faint", wraps=True)
        self.body = column(self.head, self.lead, spacing=GAP)
        content.setLayout(self.body)
        self.lead.setVisible(bool(lead))
        self.setWidget(inner)
        # Always on: a bar that appears makes lines wrap, and a page that just fits would lose and regain it.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.verticalScrollBar().rangeChanged.connect(self._on_range)
        self.verticalScrollBar().setEnabled(False)

    def add(self, *pieces: Piece) -> None:
        """Adds from top to bottom; a number is a stretch."""
        fill(self.body, *pieces)

    def add_first(self, piece: QWidget) -> None:
        """Adds it above the content so far."""
        self.body.insertWidget(self.body.indexOf(self.lead) + 1, piece)

    def _on_range(self, _: int, most: int) -> None:
        # Asked for anew each time: PySide may drop its object of a bar that Qt still has.
        self.verticalScrollBar().setEnabled(most > 0)  # else the handle is not drawn
