"""A laptop's screen, mouse and keyboard: an X server without a monitor, driven by xdotool."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

SIZE = (1366, 768)
"""Of the whole screen, in pixels: as small as laptops have it."""
FIRST_DISPLAY, MOST_DISPLAYS = 70, 40
STARTED_S = 60.0
DONE_S = 30.0
HELD_S = 0.5
"""Over the target, until its program has said that it takes what is dragged."""
PRESSING = ("Return", "space")
_CLIENT_MESSAGE = 33


class NoScreen(Exception):
    """The X server did not start; the message says why."""


class Screen:
    """``enter``: a prefix of the server's command line, so that it runs on that laptop."""

    def __init__(self, enter: tuple[str, ...], log: Path) -> None:
        for number in range(FIRST_DISPLAY, FIRST_DISPLAY + MOST_DISPLAYS):
            # On its own, a server in another network namespace would choose a number that is in use.
            if not Path(f"/tmp/.X{number}-lock").exists() and self._start(enter, number, log):
                break
        else:
            raise NoScreen(log.read_text(errors="replace").strip() or "every number of a display is taken")
        self.display = f":{number}"
        self.presses = 0
        """Clicks, and keys that press a button: a person's decisions so far."""
        self._window = SIZE
        self._environment = {**os.environ, "DISPLAY": self.display}

    def _start(self, enter: tuple[str, ...], number: int, log: Path) -> bool:
        """Whether it is running; not if somebody else just took that number."""
        screen = ("-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24", "-nolisten", "tcp", "-noreset")
        with log.open("ab") as errors:
            self._server = subprocess.Popen(
                (*enter, "Xvfb", f":{number}", *screen),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )
        until_s = time.monotonic() + STARTED_S
        while self._server.poll() is None and time.monotonic() < until_s:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(f"/tmp/.X11-unix/X{number}") == 0 and self._server.poll() is None:
                    return True
            time.sleep(0.05)
        self.close()
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        self._server.terminate()
        try:
            self._server.wait(DONE_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    # --- mouse and keyboard --------------------------------------------------------------------------------

    def click(self, x: int, y: int, *, held: str = "") -> None:
        """``held``: a key held meanwhile, such as *ctrl*."""
        self.presses += 1
        down, up = (("keydown", held), ("keyup", held)) if held else ((), ())
        self._do("mousemove", str(x), str(y), *down, "click", "1", *up)

    def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Like a hand: a little first, then the whole way, then release."""
        (x, y), (to_x, to_y) = start, end
        self._do("mousemove", str(x), str(y), "mousedown", "1")
        for part in range(1, 11):
            self._do("mousemove", str(x + (to_x - x) * part // 10), str(y + (to_y - y) * part // 10))
            time.sleep(0.05)
        time.sleep(HELD_S)
        self._do("mouseup", "1")

    def scroll(self, x: int, y: int, *, down: bool) -> None:
        self._do("mousemove", str(x), str(y), "click", "5" if down else "4")

    def rest(self) -> None:
        """Moves the mouse away, so that nothing shows as hovered."""
        self._do("mousemove", str(SIZE[0] - 2), str(SIZE[1] - 2))

    def press(self, *keys: str) -> None:
        """*ctrl+4*, *Tab*, *Return*."""
        self.presses += sum(key in PRESSING for key in keys)
        self._do("key", "--clearmodifiers", *keys)

    def write(self, text: str) -> None:
        self._do("type", "--clearmodifiers", "--delay", "8", "--", text)

    # --- what a window manager does ------------------------------------------------------------------------

    def windows(self) -> list[str]:
        """The program's visible windows, by number."""
        found = subprocess.run(
            ("xdotool", "search", "--onlyvisible", "--name", "Tandem"),
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=DONE_S,
        )
        return found.stdout.split()

    def focus(self) -> None:
        """Focuses the window, as a window manager does for a new one."""
        for window in self.windows():
            self._do("windowmove", window, "0", "0", "windowfocus", window)
            told = self._do("getwindowgeometry", "--shell", window)
            size = dict(line.split("=") for line in told.split())
            self._window = int(size["WIDTH"]), int(size["HEIGHT"])

    @property
    def window(self) -> tuple[int, int]:
        """Width and height of the program's window, which is in the upper left corner, in pixels."""
        return self._window

    def resize(self, width: int, height: int) -> None:
        for window in self.windows():
            self._do("windowsize", window, str(width), str(height))
        self._window = width, height

    def ask_to_close(self) -> None:
        """Sends what a window manager sends after a click on the window's ×."""
        for window in self.windows():
            _ask_to_close(self.display, int(window))

    # --- looking -------------------------------------------------------------------------------------------

    def picture(self, path: Path) -> None:
        """Saves the part of the screen where the window is."""
        grab = ("import", "-silent", "-display", self.display, "-window", "root")
        crop = ("-crop", f"{self._window[0]}x{self._window[1]}+0+0", "+repage", "-strip")
        subprocess.run((*grab, *crop, str(path)), check=True, timeout=DONE_S, env=self._environment)

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            ("xdotool", *words), env=self._environment, capture_output=True, text=True, timeout=DONE_S
        )
        if done.returncode != 0:
            raise NoScreen(f"xdotool {' '.join(words)}: {done.stderr.strip() or done.returncode}")
        return done.stdout


class _ClientMessage(ctypes.Structure):
    """XClientMessageEvent of Xlib.h."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("room_of_other_events", ctypes.c_long * 24),
    ]


def _ask_to_close(display: str, window: int) -> None:
    """ICCCM 4.1.2.7, WM_DELETE_WINDOW. xdotool's own windowclose destroys the window instead."""
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = ctypes.c_ulong
    x11.XInternAtom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    x11.XSendEvent.argtypes = [
        ctypes.c_void_p,
        ctypes.c_ulong,
        ctypes.c_int,
        ctypes.c_long,
        ctypes.POINTER(_ClientMessage),
    ]
    x11.XCloseDisplay.argtypes = [ctypes.c_void_p]
    opened = x11.XOpenDisplay(display.encode())
    if not opened:
        raise NoScreen(f"the X server {display} is gone")
    try:
        message = _ClientMessage(type=_CLIENT_MESSAGE, window=window, format=32)
        message.message_type = x11.XInternAtom(opened, b"WM_PROTOCOLS", 0)
        message.data[0] = x11.XInternAtom(opened, b"WM_DELETE_WINDOW", 0)
        x11.XSendEvent(opened, window, 0, 0, ctypes.byref(message))
    finally:
        x11.XCloseDisplay(opened)  # sends what is queued
