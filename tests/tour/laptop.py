"""One laptop of the tour and the person in front of it: sees the screen, moves the mouse, presses keys."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from tests.lab.lab import NAMES, Lab
from tests.tour.album import Album
from tests.tour.screen import SIZE, Screen
from tests.tour.thing import Spot, Thing

ROOT = Path(__file__).parents[2]
SEEN_S = 120.0
"""For whatever needs no TensorFlow: far beyond what any machine needs."""
TRAINED_S = 300.0
GLANCE_S = 0.25
PAINTED_S = 0.4
ENDED_S = 60.0
MOST_TURNS = 60
"""Of the mouse's wheel, to bring something into view."""
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH")
V = TypeVar("V")


class Lost(AssertionError):
    """What was to be seen did not come; the words say what was seen instead."""


class Laptop:
    """A host of ``lab`` with its window, and with a home folder that is seen as ``home`` on that laptop."""

    def __init__(self, lab: Lab, host: int, album: Album) -> None:
        self.name = name = NAMES[host]
        self._enter, self._album = lab.enter(host), album
        self._log = lab.folder / f"{name}.log"
        homes = lab.folder / f"homes-on-{name}"
        self.folder = homes / name
        (self.folder / "tmp").mkdir(parents=True)
        self.home = _place_for_homes() / name
        lab.network.do(host, "mount", "--bind", str(homes), str(self.home.parent))
        self.screen = Screen(self._enter, lab.folder / f"{name}.xvfb.log")
        self._program: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            self.end()
        finally:
            self.screen.close()

    # --- the program ---------------------------------------------------------------------------------------

    def open_tandem(self) -> None:
        """As a double click does. The window is on the screen then, and has the keyboard."""
        with self._log.open("ab") as log:
            self._program = subprocess.Popen(
                (*self._enter, sys.executable, "-m", "tests.tour.eyes"),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )
        self.until(lambda things: things, "the window")
        self.until(lambda _: self.screen.windows(), "the window on the screen")
        self.screen.focus()

    def open_tandem_again(self) -> None:
        """A second double click while it runs: ends by itself, having brought the first to the front."""
        subprocess.run(
            (*self._enter, sys.executable, "-m", "app"),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            env=self._environment(),
            check=True,
            timeout=SEEN_S,
        )

    def until_ended(self) -> None:
        """Until the program has ended by itself."""
        assert self._program is not None
        self._program.wait(SEEN_S)
        self.end()

    def end(self) -> None:
        """Whatever still runs."""
        program, self._program = self._program, None
        if program is None:
            return
        assert program.stdin is not None and program.stdout is not None
        for end in (program.terminate, program.kill):
            if program.poll() is None:
                end()
                try:
                    program.wait(ENDED_S)
                except subprocess.TimeoutExpired:
                    continue
        program.stdin.close()
        program.stdout.close()

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            # A second start looks there for the first one: another tour's Anna is somebody else.
            "TMPDIR": str(self.home / "tmp"),
            "DISPLAY": self.screen.display,
            "QT_QPA_PLATFORM": "xcb",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            # Two laptops' trainers cannot share this machine's GPU.
            "CUDA_VISIBLE_DEVICES": "-1",
        }

    # --- looking -------------------------------------------------------------------------------------------

    def look(self) -> list[Thing]:
        """What is on the screen at this moment."""
        program = self._program
        assert program is not None and program.stdin is not None and program.stdout is not None
        try:
            program.stdin.write(b"\n")
            program.stdin.flush()
            told = _line(program, SEEN_S)
        except BrokenPipeError:
            told = b""
        if not told:
            raise Lost(f"{self.name}'s window is gone or does not answer.\n{self._log_end()}")
        return msgspec.json.decode(told, type=list[Thing])

    def until(self, found: Callable[[list[Thing]], V | None], awaited: str, limit_s: float = SEEN_S) -> V:
        """What ``found`` sees, now or later; false is nothing."""
        until_s = time.monotonic() + limit_s
        while True:
            things = self.look()
            seen = found(things)
            if seen:
                return seen
            if time.monotonic() > until_s:
                self.picture("LOST")
                words = " / ".join(dict.fromkeys(t.text for t in things if t.text))
                why = f"{self.name} waited {limit_s:g} s for {awaited}. On the screen: {words}"
                raise Lost(f"{why}\n{self._log_end()}")
            time.sleep(GLANCE_S)

    def sees(self, called: str, *, inside: str = "", limit_s: float = SEEN_S) -> Thing:
        """Until something of that name is on the screen, wherever it was scrolled to."""

        def look(things: list[Thing]) -> Thing | None:
            return next((thing for thing in things if thing.is_called(called, inside)), None)

        return self.until(look, repr(called), limit_s)

    def reads(self, words: str, *, limit_s: float = SEEN_S) -> Thing:
        """Until something on the screen says that, among other words."""
        return self.until(
            lambda things: next(
                (thing for thing in things if words in thing.text or words in thing.reader), None
            ),
            f"the words {words!r}",
            limit_s,
        )

    def gone(self, called: str, limit_s: float = SEEN_S) -> None:
        """Until nothing of that name is to be seen."""
        self.until(
            lambda things: not any(thing.is_called(called) for thing in things), f"{called!r} to go", limit_s
        )

    def has(self, called: str) -> bool:
        return any(thing.is_called(called) for thing in self.look())

    # --- doing ---------------------------------------------------------------------------------------------

    def click(self, called: str, *, inside: str = "", held: str = "", limit_s: float = SEEN_S) -> None:
        """Until it can be clicked; scrolls to it where it must."""
        turns = 0

        def try_it(things: list[Thing]) -> bool:
            nonlocal turns
            for thing in things:
                if thing.is_called(called, inside) and thing.enabled:
                    if thing.reachable:
                        self.screen.click(*thing.spot.middle, held=held)
                        return True
                    if thing.scroller is not None and turns < MOST_TURNS and _out_of_view(thing):
                        turns += 1
                        self._scroll(thing.scroller, down=thing.spot.middle[1] > thing.scroller.middle[1])
            return False

        self.until(try_it, f"{called!r} to be clicked", limit_s)

    def scroll_to(self, called: str, *, inside: str = "") -> None:
        """Until all of it is in view, or as much as there is room for."""
        turns = 0

        def try_it(things: list[Thing]) -> bool:
            nonlocal turns
            thing = next(thing for thing in things if thing.is_called(called, inside))
            whole = thing.seen.height >= min(thing.spot.height, SIZE[1] * 3 // 4)
            if whole or thing.scroller is None or turns >= MOST_TURNS:
                return True
            turns += 1
            self._scroll(thing.scroller, down=thing.spot.middle[1] > thing.scroller.middle[1])
            return False

        self.sees(called, inside=inside)
        self.until(try_it, f"{called!r} in view")

    def _scroll(self, scroller: Spot, *, down: bool) -> None:
        # At the margin no field lies under the mouse that the wheel would change.
        self.screen.scroll(scroller.x + 5, scroller.middle[1], down=down)
        time.sleep(0.1)

    def fill(self, called: str, text: str, *, inside: str = "") -> None:
        """Click into a field, and write something else into it."""
        self.click(called, inside=inside)
        self.screen.press("ctrl+a")
        self.screen.write(text)
        self.until(
            lambda things: any(t.is_called(called, inside) and t.text == text for t in things),
            f"{text!r} in {called!r}",
        )

    def drag_row(self, called: str, onto: str) -> None:
        """A laptop's card in the list of roles, by its name, onto another."""

        def card(name: str) -> Thing:
            return self.until(
                lambda things: next((t for t in things if t.kind == "RoleRow" and t.reader == name), None),
                f"the card of {name}",
            )

        (x, y), (to_x, to_y) = card(called).spot.middle, card(onto).spot.middle
        self.screen.drag((x - 40, y), (to_x - 40, to_y))

    def choose(self, called: str, entry: str) -> None:
        """In a drop-down list."""
        self.click(called)
        self.click_row(entry)
        self.until(
            lambda things: any(t.is_called(called) and t.text == entry for t in things),
            f"{entry!r} in {called!r}",
        )

    def click_row(self, words: str, *, held: str = "") -> None:
        """Of a list, or an entry of a menu."""
        row = self.until(
            lambda things: next((t for t in things if t.kind in ("row", "action") and words in t.text), None),
            f"a line with {words!r}",
        )
        x, y = row.spot.x + min(row.spot.width // 2, 60), row.spot.middle[1]
        self.screen.click(x, y, held=held)

    def tab_to(self, called: str) -> None:
        """By the keyboard alone."""
        for _ in range(MOST_TURNS):
            if any(thing.is_called(called) and thing.focused for thing in self.look()):
                return
            self.screen.press("Tab")
        raise Lost(f"{self.name} did not reach {called!r} with the tabulator")

    # --- the album -----------------------------------------------------------------------------------------

    def picture(self, what: str, *, still: bool = True) -> Path:
        """``still``: the mouse moves away first."""
        if still:
            self.screen.rest()
        time.sleep(PAINTED_S)
        return self._album.add(self.screen, self.name, what)

    def _log_end(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-40:])


def _place_for_homes() -> Path:
    """Covered on the laptop, so that no picture shows our own paths: nothing that is needed may lie there."""
    needed = [Path(path).resolve() for path in (ROOT, sys.prefix, sys.base_prefix)]
    places = (Path("/home"), Path("/srv"), Path("/mnt"))
    return next(
        place for place in places if place.is_dir() and not any(path.is_relative_to(place) for path in needed)
    )


def _out_of_view(thing: Thing) -> bool:
    return thing.seen.height < thing.spot.height // 2 + 1


def _line(program: subprocess.Popen[bytes], limit_s: float) -> bytes:
    """The next line it says; nothing if it says none in time."""
    assert program.stdout is not None
    told: list[bytes] = []
    reader = threading.Thread(target=lambda: told.append(program.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    reader.join(limit_s)
    return told[0] if told else b""
