"""The shipped examples to choose from: a picture, a name and a line each."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app import theme
from app.models.examples import EXAMPLES
from app.widgets.canvas import Illustration
from app.widgets.card import column
from app.widgets.flow import Flow
from app.widgets.labels import Label, name_for_readers

LEAST_CHARACTERS = 17
"""Minimum width of a card's line; below it, fewer cards go side by side."""


class ExampleCards(QWidget):
    """``chosen(name)``: a folder in resources/examples."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.cards = [_ExampleCard(name, *words) for name, words in EXAMPLES.items()]
        layout = column(Label("Or try an example", "heading"), Flow(*self.cards, equal=True))
        layout.setContentsMargins(0, theme.GAP, 0, 0)
        self.setLayout(layout)
        for card in self.cards:
            card.clicked.connect(lambda _=False, name=card.example: self.chosen.emit(name))


class _ExampleCard(QPushButton):
    def __init__(self, name: str, title: str, what: str) -> None:
        super().__init__()
        self.example = name
        self.setObjectName(f"example-{name}")
        self.setProperty("kind", "example")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAutoDefault(True)
        name_for_readers(self, f"Example: {title}", what)
        self._picture = Illustration(f"examples/{name}")
        self._words = Label(what, "faint", wraps=True)
        pieces = (self._picture, Label(title, "heading"), self._words)
        for piece in pieces:
            piece.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        layout = column(*pieces, 1, spacing=theme.GAP // 3)
        layout.setContentsMargins(theme.GAP, theme.GAP, theme.GAP, theme.GAP)
        self.setLayout(layout)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        wide = self._words.fontMetrics().averageCharWidth() * LEAST_CHARACTERS + 2 * theme.GAP
        return QSize(wide, self.heightForWidth(wide))
