"""Opens a folder or a report with the desktop's own program; if there is none, shows the path to copy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from app.long_work import in_thread
from app.widgets.buttons import copy_button
from app.widgets.problem_box import ProblemBox
from core.vocabulary.errors import Problem
from core.vocabulary.text import plain


class FolderBox(ProblemBox):
    """Hidden unless ``open`` failed: then it shows why, with the path and a button that copies it."""

    def __init__(self) -> None:
        super().__init__(level="warning")
        self.path = ""
        self._kind = "folder"
        self.copy = copy_button(lambda: self.path, "Copy path", name="copy-path")
        self.buttons.addWidget(self.copy)

    def open(self, path: Path, kind: Literal["folder", "report"] = "folder") -> None:
        """Returns immediately; the outcome may be known only later."""
        self.path, self._kind = str(path), kind
        self.show_problem(None)
        opener = shutil.which("xdg-open") if sys.platform == "linux" else None
        if not path.exists():
            self._say(f"There is no such {kind} any more.", "It may have been moved or deleted. It was at")
        elif opener is not None:
            # Qt starts it as well, but counts a started program as success.
            words = self.path
            in_thread(self, lambda: _run(opener, words), lambda opened: self._on_ended(words, opened))
        else:
            self._on_ended(self.path, QDesktopServices.openUrl(QUrl.fromLocalFile(self.path)))

    def _on_ended(self, path: str, opened: bool) -> None:
        if not opened and path == self.path:
            program = "file manager" if self._kind == "folder" else "browser"
            self._say(f"No {program} could be opened here.", f"The {self._kind} is")

    def _say(self, what: str, where: str) -> None:
        fix = f"{where} {plain(self.path, 400)}"
        self.show_problem(Problem(code=f"{self._kind}-not-opened", what=what, fix=fix), "warning")


def _run(opener: str, path: str) -> bool:
    """Waits for it to exit, which on some desktops is when the file manager is closed."""
    silent = subprocess.DEVNULL
    try:
        done = subprocess.run(
            [opener, path], stdin=silent, stdout=silent, stderr=silent, start_new_session=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0
