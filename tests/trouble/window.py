"""A real window with a real node, in a separate process without a screen, and its user."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from core.home.home import Home
from tests.tour.person import Person

TRAINED_S = 280.0
"""For everything that loads TensorFlow first."""

_SCREEN = {
    "name": "wide",
    "x": 0,
    "y": 0,
    "width": 1920,
    "height": 1200,
    "logicalDpi": 96,
    "logicalBaseDpi": 96,
    "dpr": 1,
}
"""Qt's default is 800 by 800 pixels: part of the window would lie outside, out of the mouse's reach."""


class Offscreen:
    """Mouse and keyboard of ``person``'s window, moved there by ``tests.trouble.hands``."""

    def __init__(self, person: Person) -> None:
        self._person = person

    def click(self, x: int, y: int, *, held: str = "") -> None:
        assert not held
        self._do(f"click {x} {y}")

    def scroll(self, x: int, y: int, *, down: bool) -> None:
        self._do(f"scroll {x} {y} {'down' if down else 'up'}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self._do(f"press {key}")

    def write(self, text: str) -> None:
        self._do(f"write {text}")

    def _do(self, words: str) -> None:
        program = self._person.program
        assert program is not None and program.stdin is not None
        program.stdin.write(words.encode() + b"\n")
        program.stdin.flush()


class OpenWindow(Person):
    """Tandem's window on ``home``, from ``with`` to its end. ``enter``: a prefix of its command line;
    ``beside``: where its stderr is stored, if not beside the home."""

    def __init__(self, home: Home, enter: Sequence[str] = (), beside: Path | None = None) -> None:
        self._beside = beside or home.folder.parent
        super().__init__(home.folder.name, self._beside / f"{home.folder.name}.stderr")
        self.screen = Offscreen(self)
        self.home = home
        self._enter = enter

    def __enter__(self) -> Self:
        runtime = self._beside / f"{self.name}.runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        screen = runtime / "screen.json"
        screen.write_text(json.dumps({"screens": [_SCREEN]}))
        environment = {
            **os.environ,
            "QT_QPA_PLATFORM": f"offscreen:configfile={screen}",
            "XDG_RUNTIME_DIR": str(runtime),
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        command = (sys.executable, "-m", "tests.trouble.hands", "--home", str(self.home.folder))
        try:
            self.start((*self._enter, *command), environment)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self.end()
        if failure[0] is None:
            said = self.log.read_text(errors="replace")
            assert "Traceback" not in said, said
