"""Showing a folder in the desktop's own file manager."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from core.vocabulary.errors import Problem
from core.vocabulary.text import plain


def open_folder(folder: Path) -> Problem | None:
    """Why it could not be opened; None where it was."""
    if folder.is_dir() and QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
        return None
    return Problem(
        code="folder-not-opened",
        what="The folder could not be opened.",
        fix=f"It should be at {plain(str(folder), 400)}: look whether it was moved or deleted.",
    )
