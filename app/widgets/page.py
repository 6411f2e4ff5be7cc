"""The frame of a screen: a scrolling column with a title, of the same width on all screens."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.labels import ElidedLabel, Label

WIDEST = 200
"""Average characters: beyond, nobody finds what stands at the other end of a line."""


class Page(QScrollArea):
    """``head`` is the row of the title, to which buttons may be added; ``body`` takes the content.

    What stands in it is as wide with a scroll bar beside it as without.
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
        column = QWidget()
        column.setMaximumWidth(self.fontMetrics().averageCharWidth() * characters)
        self.body = QVBoxLayout(column)
        self.body.setContentsMargins(0, 0, 0, 0)
        self.body.setSpacing(GAP)
        if centred:
            outer.addStretch(1)
        outer.addWidget(column, 30)
        outer.addStretch(1 if centred else 0)
        self.head = QHBoxLayout()
        self.head.setSpacing(GAP)
        self.title = ElidedLabel(title, "title")
        self.head.addWidget(self.title, 1)
        self.body.addLayout(self.head)
        self.lead = Label(lead, "faint", wraps=True)
        self.lead.setVisible(bool(lead))
        self.body.addWidget(self.lead)
        self.setWidget(inner)
        self.verticalScrollBar().rangeChanged.connect(lambda *_: self._keep_room())
        self._keep_room()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._keep_room()

    def _keep_room(self) -> None:
        """For the scroll bar, while there is none."""
        bar = self.verticalScrollBar()
        bar.ensurePolished()
        self.setViewportMargins(0, 0, 0 if bar.maximum() else bar.sizeHint().width(), 0)
