"""Labels and texts that show words exactly as given: text from a peer is never parsed as markup.

Kinds (see ``app.theme``): title, subtitle, heading, faint, good, good-heading, warning, bad, code, mono.
"""

from __future__ import annotations

import html
import re

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, QTimer
from PySide6.QtGui import QFontDatabase, QFontInfo, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QSizePolicy, QWidget

from core.vocabulary import text as safe

LIMIT = 2_000
"""Maximum characters of a label; nobody reads more, and a peer may send megabytes."""

SHOWN_MS = 8_000
"""Long enough to read a path twice."""
WIDEST = 48
"""Maximum width a label demands, in average characters; longer text that does not wrap is cut off."""
_LONG_WORD = re.compile(r"\S{25,}")


class Label(QLabel):
    """Plain text only. Change it by ``say``, which costs nothing while the words stay the same."""

    def __init__(self, text: str = "", kind: str = "", *, wraps: bool = False) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wraps)
        self._said: str | None = None
        if kind:
            self.setProperty("kind", kind)
        self.say(text)

    def say(self, text: str) -> None:
        if text == self._said:
            return
        self._said = text
        words = safe.plain(text, LIMIT)
        if self.wordWrap():
            words = _LONG_WORD.sub(_breakable, words)
        if words != self.text():
            self.setText(words)

    def say_or_hide(self, text: str) -> None:
        """Without words it takes no room."""
        self.say(text)
        self.setVisible(bool(text))

    def minimumSizeHint(self) -> QSize:
        """A long word must not widen the window: whoever sent it could push the buttons out of view."""
        hint = super().minimumSizeHint()
        return QSize(min(hint.width(), self.fontMetrics().averageCharWidth() * WIDEST), hint.height())

    def make(self, kind: str) -> None:
        """Changes the label's kind (colour, size)."""
        set_kind(self, kind)


class BriefLabel(Label):
    """News, such as where something was saved: shown for a while. Errors stay."""

    def __init__(self, *, shown_ms: int = SHOWN_MS) -> None:
        super().__init__(wraps=True)
        self.shown_ms = shown_ms
        self._gone = QTimer(self, singleShot=True)
        self._gone.timeout.connect(self.hide)
        self.hide()

    def tell(self, text: str, kind: str) -> None:
        self.make(kind)
        self.say(text)
        self.show()
        if kind == "bad":
            self._gone.stop()
        else:
            self._gone.start(self.shown_ms)


class ElidedLabel(QWidget):
    """One line, elided with ``…`` if too long; the whole text is then its tooltip.

    ``least``: minimum width in average characters, whatever is beside it. ``steady``: its room only grows, so
    that words which change all the time do not lay out the page again.
    """

    def __init__(
        self,
        text: str = "",
        kind: str = "",
        *,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        least: int = 6,
        steady: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._room = 0 if steady else None
        self._text = ""
        self._said = ""
        self._mode = mode
        self._least = least
        # A label of the same kind supplies font and colour: the style sheet only addresses labels.
        self._like = QLabel(self)
        self._like.hide()
        self._like.setTextFormat(Qt.TextFormat.PlainText)
        if kind:
            self._like.setProperty("kind", kind)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.say(text)

    def text(self) -> str:
        return self._text

    def say(self, text: str) -> None:
        if text == self._said:
            return
        self._said = text
        words = safe.plain(text, LIMIT)
        if words != self._text:
            self._text = words
            self.setAccessibleName(words)
            self._like.setText(words)
            self._show_tooltip()
            if self._room is None or self._metrics_width() > self._room:
                self.updateGeometry()
            self.update()

    def make(self, kind: str) -> None:
        """Changes the label's kind (colour, size)."""
        set_kind(self._like, kind)
        self.update()

    @property
    def elided(self) -> bool:
        """True while the text does not fit."""
        return self._metrics_width() > self.width()

    def sizeHint(self) -> QSize:
        self._like.ensurePolished()
        metrics = self._like.fontMetrics()
        width = self._metrics_width()
        if self._room is not None:
            self._room = width = max(width, self._room)
        return QSize(min(width, metrics.averageCharWidth() * 60), metrics.height())

    def minimumSizeHint(self) -> QSize:
        self._like.ensurePolished()
        metrics = self._like.fontMetrics()
        width = max(self._metrics_width(), self._room or 0)
        return QSize(min(width, metrics.averageCharWidth() * self._least), metrics.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._like.ensurePolished()
        painter.setFont(self._like.font())
        painter.setPen(self._like.palette().color(QPalette.ColorRole.WindowText))
        metrics = self._like.fontMetrics()
        shown = metrics.elidedText(self._text, self._mode, self.width())
        # On the font's own baseline: a letter from a taller fallback font would push the whole line down, out
        # of sight.
        from_right = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        left = self.width() - metrics.horizontalAdvance(shown) if from_right else 0
        base = (self.height() - metrics.height()) / 2 + metrics.ascent()
        painter.drawText(QPointF(left, base), shown)

    def resizeEvent(self, event: object) -> None:
        self._show_tooltip()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.updateGeometry()
        super().changeEvent(event)

    def _metrics_width(self) -> int:
        self._like.ensurePolished()
        return self._like.fontMetrics().horizontalAdvance(self._text) + 1

    def _show_tooltip(self) -> None:
        set_tooltip(self, self._text if self.elided else "")


class TextView(QPlainTextEdit):
    """Text to read and copy, not to edit: logs, tracebacks, TF_CONFIG. Always plain, in a monospaced font.

    ``lines``: minimum height. Tab leaves it.
    """

    def __init__(self, name: str, description: str = "", *, lines: int = 0, wraps: bool = False) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        fixed.setPointSizeF(QFontInfo(self.font()).pointSizeF())  # as large as the text around it
        self.setFont(fixed)
        if not wraps:
            self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        if lines:
            self.setMinimumHeight(self.fontMetrics().height() * lines)
        name_for_readers(self, name, description)


def _breakable(word: re.Match[str]) -> str:
    """Zero-width spaces let Qt break a very long word."""
    return "\u200b".join(word[0][at : at + 12] for at in range(0, len(word[0]), 12))


def faint(text: str = "", *, wraps: bool = False) -> Label:
    return Label(text, "faint", wraps=wraps)


def heading(text: str = "") -> Label:
    return Label(text, "heading")


def title(text: str = "") -> Label:
    return Label(text, "title")


def set_tooltip(widget: QWidget, text: str) -> None:
    """Qt guesses whether a tooltip is markup; these words never are."""
    words = safe.plain(text, LIMIT)
    widget.setToolTip(f"<p>{html.escape(words)}</p>" if words else "")


def set_kind(widget: QWidget, kind: str) -> None:
    """Qt evaluates a style sheet's property selectors only when a widget is polished again."""
    set_property(widget, "kind", kind)


def set_property(widget: QWidget, name: str, value: object) -> None:
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def name_for_readers(widget: QWidget, name: str, description: str = "") -> None:
    """A screen reader's name and description of a widget."""
    widget.setAccessibleName(safe.plain(name, LIMIT))
    if description:
        widget.setAccessibleDescription(safe.plain(description, LIMIT))
