"""One laptop of the tour and its user: sees the screen, moves the mouse, presses keys."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests.lab.lab import NAMES, Lab
from tests.tour import drag_source
from tests.tour.album import Album
from tests.tour.person import ROOT, SEEN_S, Person, line_of
from tests.tour.screen import SIZE, NoScreen, Screen
from tests.tour.thing import Thing

TRAINED_S = 300.0
PAINTED_S = 0.4
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH")


class Laptop(Person):
    """A host of ``lab`` with its window, and with a home folder mounted as ``home`` on that laptop."""

    screen: Screen

    def __init__(self, lab: Lab, host: int, album: Album) -> None:
        name = NAMES[host]
        super().__init__(name, lab.folder / f"{name}.log")
        self._enter, self.album = (*lab.enter(host), *_one_core(host)), album
        homes = lab.folder / f"homes-on-{name}"
        self.folder = homes / name
        (self.folder / "tmp").mkdir(parents=True)
        self.home = _place_for_homes() / name
        lab.network.do(host, "mount", "--bind", str(homes), str(self.home.parent))
        self.screen = Screen(self._enter, lab.folder / f"{name}.xvfb.log")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            self.end()
        finally:
            self.screen.close()

    # --- the program ---------------------------------------------------------------------------------------

    def open_tandem(self) -> None:
        """Like a double click. The window is then on the screen and focused."""
        self.start((*self._enter, sys.executable, "-m", "tests.tour.eyes"), self._environment())
        self.until(lambda _: self.screen.windows(), "the window on the screen")
        self.screen.focus()

    def open_tandem_again(self) -> None:
        """A second double click while it runs: brings the first to the front and ends."""
        subprocess.run(
            (*self._enter, sys.executable, "-m", "app"),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            env=self._environment(),
            check=True,
            timeout=SEEN_S,
        )

    def until_ended(self) -> None:
        """Waits until the program has ended."""
        assert self.program is not None
        self.program.wait(SEEN_S)
        self.end()

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            # A second start looks there for the first one; another tour's Anna must not be found.
            "TMPDIR": str(self.home / "tmp"),
            "DISPLAY": self.screen.display,
            "QT_QPA_PLATFORM": "xcb",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            # Two laptops' trainers cannot share this machine's GPU.
            "CUDA_VISIBLE_DEVICES": "-1",
        }

    def drag_row(self, called: str, onto: str) -> None:
        """Drags a laptop's card in the list of roles, by its name, onto another."""

        def card(name: str) -> Thing:
            return self.until(
                lambda things: next((t for t in things if t.kind == "RoleRow" and t.reader == name), None),
                f"the card of {name}",
            )

        (x, y), (to_x, to_y) = card(called).spot.middle, card(onto).spot.middle
        self.screen.drag((x - 40, y), (to_x - 40, to_y))

    def drop_folder(self, path: Path, onto: str) -> float:
        """Drags a folder from a file manager's window onto a thing in the window. Returns the monotonic time
        of the drop, in seconds."""
        x, y = SIZE[0] - drag_source.SIZE[0], 0
        words = (str(path), str(x), str(y))
        files = subprocess.Popen(
            (*self._enter, sys.executable, "-m", "tests.tour.drag_source", *words),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=self._environment(),
        )
        try:
            if line_of(files, SEEN_S).strip() != b"ready":
                raise NoScreen("the file manager did not start")
            self.screen.drag(
                (x + drag_source.SIZE[0] // 2, y + drag_source.SIZE[1] // 2), self.sees(onto).spot.middle
            )
            dropped_s = time.monotonic()
            self.reads(path.name)
            return dropped_s
        finally:
            files.terminate()
            files.communicate(timeout=SEEN_S)

    # --- the album -----------------------------------------------------------------------------------------

    def picture(self, what: str, *, still: bool = True) -> Path:
        """``still``: the mouse moves away first."""
        if still:
            self.screen.rest()
        time.sleep(PAINTED_S)
        return self.album.add(self.screen, self.name, what)

    def on_lost(self) -> None:
        self.picture("LOST")


def _one_core(host: int) -> tuple[str, ...]:
    """A core of its own, where there are enough: laptops don't wait for each other's processor."""
    cores = sorted(os.sched_getaffinity(0))
    return ("taskset", "-c", str(cores[host])) if host < len(cores) else ()


def _place_for_homes() -> Path:
    """Hidden on the laptop, so that no picture shows our own paths: nothing needed may be in it."""
    needed = [Path(path).resolve() for path in (ROOT, sys.prefix, sys.base_prefix)]
    places = (Path("/home"), Path("/srv"), Path("/mnt"))
    return next(
        place for place in places if place.is_dir() and not any(path.is_relative_to(place) for path in needed)
    )
