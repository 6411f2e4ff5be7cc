"""Buttons: ordinary, main action, destructive, copy; ``side``: one of several choices for what a place
shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from app.widgets.labels import LIMIT
from core.vocabulary import text as safe

COPY_COMMAND = "Copy the command"
Kind = Literal["", "primary", "danger", "quiet", "side"]


def button(text: str, on_click: Callable[[], object], kind: Kind = "", *, name: str = "") -> QPushButton:
    """``name``: the object name, by which tests find the button. ``text`` is never parsed for a mnemonic."""
    made = QPushButton(escape_mnemonic(text))
    made.setAccessibleName(safe.plain(text))
    made.setAutoDefault(True)  # Enter presses the button that has the focus
    made.setCursor(Qt.CursorShape.PointingHandCursor)
    if kind:
        made.setProperty("kind", kind)
    if name:
        made.setObjectName(name)
    made.clicked.connect(lambda: on_click())
    return made


def command_in(fix: str, command: str) -> str:
    """``command``, if a reader of ``fix`` sees all of it; else ``""``: both may come from another laptop."""
    seen = command in fix[:LIMIT] and safe.plain(command, len(command)) == command
    return command if seen else ""


def copy_words(laptop: str) -> str:
    """For a button that copies a command for that laptop; ``""``: for this one."""
    return f"{COPY_COMMAND} for {safe.plain(laptop, 40)}" if laptop else COPY_COMMAND


def copy_button(text: Callable[[], str], words: str = "Copy", kind: Kind = "", *, name: str) -> QPushButton:
    """Copies ``text`` to the clipboard, if there is any."""

    def copy() -> None:
        if words_now := text():
            QGuiApplication.clipboard().setText(words_now)

    return button(words, copy, kind, name=name)


def escape_mnemonic(text: str) -> str:
    """``&`` in a button's or menu's text would vanish and underline the next letter."""
    return safe.plain(text).replace("&", "&&")
