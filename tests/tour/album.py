"""The pictures of a tour, numbered in the order taken."""

from __future__ import annotations

from pathlib import Path

from tests.tour.film import Film
from tests.tour.screen import Screen


class Album:
    """``folder`` is cleared of an earlier tour's pictures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("[0-9][0-9]-*.png"):
            old.unlink()
        self._number = 0
        self.film = Film(folder / "readme")

    def add(self, screen: Screen, who: str, what: str) -> Path:
        self._number += 1
        path = self.folder / f"{self._number:02}-{who}-{what}.png"
        screen.picture(path)
        print(f"  {path.name}", flush=True)
        return path
