"""Shows a folder in the desktop's own file manager; where there is none, its path to copy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from app.long_work import in_thread
from app.widgets.buttons import button
from app.widgets.problem_box import ProblemBox
from core.vocabulary.errors import Problem
from core.vocabulary.text import plain


class FolderBox(ProblemBox):
    """Hidden, unless ``open`` failed: then it says why, with the path and a button that copies it."""

    def __init__(self) -> None:
        super().__init__(level="warning")
        self.path = ""
        self.copy = button("Copy path", self._copy, name="copy-path")
        self.buttons.addWidget(self.copy)

    def open(self, folder: Path) -> None:
        """Returns at once; whether it worked may be known only later."""
        self.path = str(folder)
        self.show_problem(None)
        opener = shutil.which("xdg-open") if sys.platform == "linux" else None
        if not folder.is_dir():
            self._say("There is no such folder any more.", "It may have been moved or deleted. It was at")
        elif opener is not None:
            # Qt starts it as well, and takes for success that it began.
            path = self.path
            in_thread(self, lambda: _run(opener, path), lambda opened: self._on_ended(path, opened))
        else:
            self._on_ended(self.path, QDesktopServices.openUrl(QUrl.fromLocalFile(self.path)))

    def _on_ended(self, path: str, opened: bool) -> None:
        if not opened and path == self.path:
            self._say("No file manager could be opened here.", "The folder is")

    def _say(self, what: str, where: str) -> None:
        fix = f"{where} {plain(self.path, 400)}"
        self.show_problem(Problem(code="folder-not-opened", what=what, fix=fix), "warning")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.path)


def _run(opener: str, path: str) -> bool:
    """Waits for its end, which some desktops put off until the file manager is closed."""
    silent = subprocess.DEVNULL
    try:
        done = subprocess.run(
            [opener, path], stdin=silent, stdout=silent, stderr=silent, start_new_session=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0
