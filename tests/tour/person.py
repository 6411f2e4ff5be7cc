"""A person in front of a window: sees its content, moves the mouse, presses keys."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from tests.tour.screen import SIZE
from tests.tour.thing import Spot, Thing

ROOT = Path(__file__).parents[2]
SEEN_S = 120.0
"""For everything without TensorFlow: far beyond what any machine needs."""
GLANCE_S = 0.25
ENDED_S = 60.0
MOST_TURNS = 60
"""Turns of the mouse wheel to scroll something into view."""
V = TypeVar("V")


class Lost(AssertionError):
    """The expected thing did not appear; the message says what was seen instead."""


class Hands(Protocol):
    """Mouse and keyboard, in screen pixels."""

    def click(self, x: int, y: int, *, held: str = "") -> None: ...
    def scroll(self, x: int, y: int, *, down: bool) -> None: ...
    def press(self, *keys: str) -> None: ...
    def write(self, text: str) -> None: ...


class Person:
    """``screen`` has the mouse and keyboard, ``log`` gets the window's stderr.

    ``program`` reports its content for each empty line that it reads: see ``tests.tour.eyes``.
    """

    screen: Hands

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.program: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Starts the window's program and waits until something of it is visible."""
        with self.log.open("ab") as log:
            self.program = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(environment),
                start_new_session=True,
            )
        self.until(lambda things: things, "the window")

    def end(self) -> None:
        """Ends whatever still runs."""
        program, self.program = self.program, None
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

    # --- looking -------------------------------------------------------------------------------------------

    def look(self) -> list[Thing]:
        """Everything on the screen now."""
        program = self.program
        assert program is not None and program.stdin is not None and program.stdout is not None
        try:
            program.stdin.write(b"\n")
            program.stdin.flush()
            told = line_of(program, SEEN_S)
        except BrokenPipeError:
            told = b""
        if not told:
            raise Lost(f"{self.name}'s window is gone or does not answer.\n{self._log_end()}")
        return msgspec.json.decode(told, type=list[Thing])

    def until(self, found: Callable[[list[Thing]], V | None], awaited: str, limit_s: float = SEEN_S) -> V:
        """The first truthy value of ``found``, now or later."""
        until_s = time.monotonic() + limit_s
        while True:
            things = self.look()
            seen = found(things)
            if seen:
                return seen
            if time.monotonic() > until_s:
                self.on_lost()
                words = " / ".join(dict.fromkeys(t.text for t in things if t.text))
                why = f"{self.name} waited {limit_s:g} s for {awaited}. On the screen: {words}"
                raise Lost(f"{why}\n{self._log_end()}")
            time.sleep(GLANCE_S)

    def sees(self, called: str, *, inside: str = "", limit_s: float = SEEN_S) -> Thing:
        """Waits until a thing of that name is on the screen, wherever it was scrolled to."""

        def look(things: list[Thing]) -> Thing | None:
            return next((thing for thing in things if thing.is_called(called, inside)), None)

        return self.until(look, repr(called), limit_s)

    def reads(self, words: str, *, limit_s: float = SEEN_S) -> Thing:
        """Waits until a text on the screen contains these words."""
        return self.until(
            lambda things: next(
                (thing for thing in things if words in thing.text or words in thing.reader), None
            ),
            f"the words {words!r}",
            limit_s,
        )

    def gone(self, called: str, limit_s: float = SEEN_S) -> None:
        """Waits until no thing of that name is visible."""
        self.until(
            lambda things: not any(thing.is_called(called) for thing in things), f"{called!r} to go", limit_s
        )

    # --- doing ---------------------------------------------------------------------------------------------

    def click(self, called: str, *, inside: str = "", held: str = "", limit_s: float = SEEN_S) -> None:
        """Waits until it can be clicked, scrolling to it if needed, and clicks."""
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
        """Scrolls until all of it is visible, or as much as fits."""
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
        # In the margin the wheel can change no field.
        self.screen.scroll(scroller.x + 5, scroller.middle[1], down=down)
        time.sleep(0.1)

    def fill(self, called: str, text: str, *, inside: str = "") -> None:
        """Clicks into a field, and replaces its text."""
        self.click(called, inside=inside)
        self.screen.press("ctrl+a")
        self.screen.write(text)
        self.until(
            lambda things: any(t.is_called(called, inside) and t.text == text for t in things),
            f"{text!r} in {called!r}",
        )

    def choose(self, called: str, entry: str) -> None:
        """Chooses from a drop-down list."""
        self.click(called)
        self.click_row(entry)
        self.until(
            lambda things: any(t.is_called(called) and t.text == entry for t in things),
            f"{entry!r} in {called!r}",
        )

    def click_row(self, words: str, *, held: str = "") -> None:
        """Clicks a list's row, or a menu's entry."""
        row = self.until(
            lambda things: next((t for t in things if t.kind in ("row", "action") and words in t.text), None),
            f"a line with {words!r}",
        )
        x, y = row.spot.x + min(row.spot.width // 2, 60), row.spot.middle[1]
        self.screen.click(x, y, held=held)

    def tab_to(self, called: str) -> None:
        """Uses the keyboard alone."""
        for _ in range(MOST_TURNS):
            if any(thing.is_called(called) and thing.focused for thing in self.look()):
                return
            self.screen.press("Tab")
        raise Lost(f"{self.name} did not reach {called!r} with the tabulator")

    def on_lost(self) -> None:
        """Called when an expected thing did not appear: a subclass may save a picture."""

    def _log_end(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


def _out_of_view(thing: Thing) -> bool:
    return thing.seen.height < thing.spot.height // 2 + 1


def line_of(program: subprocess.Popen[bytes], limit_s: float) -> bytes:
    """The next output line; empty on timeout."""
    assert program.stdout is not None
    told: list[bytes] = []
    reader = threading.Thread(target=lambda: told.append(program.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    reader.join(limit_s)
    return told[0] if told else b""
