"""The frame of a screen: a scrolling column with a title, as wide as is comfortable to read."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.labels import ElidedLabel, Label


class Page(QScrollArea):
    """``head`` is the row of the title, to which buttons may be added; ``body`` takes the content."""

    def __init__(self, title: str, lead: str = "", *, characters: int = 130, centred: bool = False) -> None:
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
