"""A viewer for source code and diffs: plain text with some colour, filled in one piece per turn."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection
from typing import Literal

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextCursor, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit

from app import theme
from app.widgets.labels import TextView

Language = Literal["python", "diff", ""]

LINES_A_TURN = 120
"""Colouring this many takes some milliseconds."""
_QUOTES = ('"""', "'''")
_TOKEN = re.compile(
    r"(?P<comment>\#.*)"
    r"|(?P<opening>(?i:\b[rbuf]{1,2})?(?:\"\"\"|'''))"
    r"|(?P<string>(?i:\b[rbuf]{1,2})?(?:\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'?))"
    rf"|\b(?P<keyword>{'|'.join(keyword.kwlist)})\b"
    rf"|\b(?P<builtin>{'|'.join(name for name in dir(builtins) if name.islower())})\b(?=\()"
    r"|\b(?P<number>\d[\w.]*)"
)


class CodeView(TextView):
    """``show_code`` takes whole texts of any length; the window stays responsive. Long lines are wrapped,
    so that nothing lies beyond the edge."""

    def __init__(self, name: str) -> None:
        super().__init__(name, lines=5, wraps=True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._highlighter = _Highlighter(self.document())
        self._lines: list[str] = []
        self._at = 0
        self._text = ""
        self._turn = QTimer(self, singleShot=True, interval=0)
        self._turn.timeout.connect(self._fill)

    def show_code(self, text: str, language: Language, marked: Collection[int] = ()) -> None:
        """``marked``: highlighted lines, counted from 1."""
        self._turn.stop()
        self._highlighter.begin(language, marked)
        self._text, self._lines, self._at = text, text.split("\n"), 0
        self.clear()
        self._fill()

    @property
    def is_whole(self) -> bool:
        """All text is filled in."""
        return self._at >= len(self._lines)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._text:
            self.show_code(self._text, self._highlighter.language, self._highlighter.marked)

    def _fill(self) -> None:
        piece = self._lines[self._at : self._at + LINES_A_TURN]
        self._at += LINES_A_TURN
        # Not appendPlainText: it scrolls to the end.
        end = QTextCursor(self.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        end.insertText(("" if self._at <= LINES_A_TURN else "\n") + "\n".join(piece))
        if not self.is_whole:
            self._turn.start()


class _Highlighter(QSyntaxHighlighter):
    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self.language: Language = ""
        self.marked: Collection[int] = ()
        self._ground = QColor()
        self._formats: dict[str, QTextCharFormat] = {}

    def begin(self, language: Language, marked: Collection[int]) -> None:
        colours = theme.colours()
        self.language, self.marked = language, marked
        self._ground = QColor(theme.faded(colours.warning, 0.2))
        self._formats = {
            "comment": _format(colours.faint, italic=True),
            "string": _format(colours.good),
            "keyword": _format(colours.accent, bold=True),
            "builtin": _format(colours.accent),
            "number": _format(colours.warning),
            "+": _format(colours.good),
            "-": _format(colours.bad),
            "@": _format(colours.accent, bold=True),
        }

    def highlightBlock(self, text: str) -> None:
        if self.language == "diff":
            if text[:1] in self._formats:
                self.setFormat(0, len(text), self._formats[text[0]])
        elif self.language == "python":
            self._python(text)
        if self.currentBlock().blockNumber() + 1 in self.marked:
            for at in range(len(text)):
                marked = self.format(at)
                marked.setBackground(self._ground)
                self.setFormat(at, 1, marked)

    def _python(self, text: str) -> None:
        """A block's state is the index in ``_QUOTES`` of the string still open at its end, or -1."""
        at, open_one = 0, self.previousBlockState()
        while True:
            if open_one >= 0:
                end = text.find(_QUOTES[open_one], at)
                end = len(text) if end < 0 else end + 3
                self.setFormat(at, end - at, self._formats["string"])
                if not text[:end].endswith(_QUOTES[open_one]) or end - at < 3:
                    break
                at, open_one = end, -1
            found = _TOKEN.search(text, at)
            if found is None or found.lastgroup is None:
                break
            kind = found.lastgroup
            if kind == "opening":
                open_one = _QUOTES.index(found[0][-3:])
                self.setFormat(found.start(), len(found[0]), self._formats["string"])
            else:
                self.setFormat(found.start(), len(found[0]), self._formats[kind])
            at = found.end()
        self.setCurrentBlockState(open_one)


def _format(colour: str, *, bold: bool = False, italic: bool = False) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(QColor(colour))
    made.setFontItalic(italic)
    if bold:
        made.setFontWeight(QFont.Weight.DemiBold)
    return made
