"""The shipped examples to choose from: a picture, a name and a line each."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.examples import EXAMPLES
from app.widgets.flow import Flow
from app.widgets.icons import example_picture
from app.widgets.labels import Label, name_for_readers

LEAST_CHARACTERS = 17
"""Of a card's line, before there are fewer cards beside each other."""


class ExampleCards(QWidget):
    """``chosen(name)``: a folder in resources/examples."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.cards = [_ExampleCard(name, *words) for name, words in EXAMPLES.items()]
        cards = Flow(*self.cards, equal=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, theme.GAP, 0, 0)
        layout.setSpacing(theme.GAP // 2)
        layout.addWidget(Label("Or try an example", "heading"))
        layout.addWidget(cards)
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
        self._drawn: tuple[str, int, float] | None = None
        self._picture = QLabel()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.GAP, theme.GAP, theme.GAP, theme.GAP)
        layout.setSpacing(theme.GAP // 3)
        self._words = Label(what, "faint", wraps=True)
        for piece in (self._picture, Label(title, "heading"), self._words):
            piece.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            layout.addWidget(piece)
        layout.addStretch(1)
        self._draw()

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        wide = self._words.fontMetrics().averageCharWidth() * LEAST_CHARACTERS + 2 * theme.GAP
        return QSize(wide, self.heightForWidth(wide))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self._draw()
        super().changeEvent(event)

    def _draw(self) -> None:
        wanted = (theme.colours().accent, self.fontMetrics().height() * 3, self.devicePixelRatioF())
        if wanted != self._drawn:
            self._drawn = wanted
            self._picture.setPixmap(example_picture(self.example, *wanted))
