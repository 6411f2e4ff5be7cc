"""A laptop's screen, mouse and keyboard: an X server without a monitor, and xdotool in front of it."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

SIZE = (1120, 760)
FIRST_DISPLAY, MOST_DISPLAYS = 70, 40
STARTED_S = 60.0
DONE_S = 30.0
PRESSING = ("Return", "space")
_CLIENT_MESSAGE = 33


class NoScreen(Exception):
    """The X server did not come up; the words say why."""


class Screen:
    """``enter``: put before the server's command line, so that it runs on that laptop."""

    def __init__(self, enter: tuple[str, ...], log: Path) -> None:
        for number in range(FIRST_DISPLAY, FIRST_DISPLAY + MOST_DISPLAYS):
            # Left to choose, a server in another network namespace takes a number that is in use.
            if not Path(f"/tmp/.X{number}-lock").exists() and self._start(enter, number, log):
                break
        else:
            raise NoScreen(log.read_text(errors="replace").strip() or "every number of a display is taken")
        self.display = f":{number}"
        self.presses = 0
        """Clicks, and keys that press a button: what a person has had to decide so far."""
        self._environment = {**os.environ, "DISPLAY": self.display}

    def _start(self, enter: tuple[str, ...], number: int, log: Path) -> bool:
        """Whether it is up; it is not where somebody else just took that number."""
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
        """``held``: a key to hold meanwhile, *ctrl* say."""
        self.presses += 1
        down, up = (("keydown", held), ("keyup", held)) if held else ((), ())
        self._do("mousemove", str(x), str(y), *down, "click", "1", *up)

    def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """As a hand does it: a little first, then the way, then let go."""
        (x, y), (to_x, to_y) = start, end
        self._do("mousemove", str(x), str(y), "mousedown", "1")
        for part in range(1, 11):
            self._do("mousemove", str(x + (to_x - x) * part // 10), str(y + (to_y - y) * part // 10))
            time.sleep(0.05)
        self._do("mouseup", "1")

    def scroll(self, x: int, y: int, *, down: bool) -> None:
        self._do("mousemove", str(x), str(y), "click", "5" if down else "4")

    def rest(self) -> None:
        """The mouse out of the way: nothing shows that it is hovered over."""
        self._do("mousemove", str(SIZE[0] - 2), str(SIZE[1] - 2))

    def press(self, *keys: str) -> None:
        """*ctrl+4*, *Tab*, *Return*."""
        self.presses += sum(key in PRESSING for key in keys)
        self._do("key", "--clearmodifiers", *keys)

    def write(self, text: str) -> None:
        self._do("type", "--clearmodifiers", "--delay", "8", "--", text)

    # --- what a window manager does ------------------------------------------------------------------------

    def windows(self) -> list[str]:
        """The visible ones of the program, by their numbers."""
        found = subprocess.run(
            ("xdotool", "search", "--onlyvisible", "--name", "Tandem"),
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=DONE_S,
        )
        return found.stdout.split()

    def focus(self) -> None:
        """The keyboard to the window, as a window manager gives it to a new one."""
        for window in self.windows():
            self._do("windowmove", window, "0", "0", "windowfocus", window)

    def resize(self, width: int, height: int) -> None:
        for window in self.windows():
            self._do("windowsize", window, str(width), str(height))

    def ask_to_close(self) -> None:
        """What a click on the window's × makes a window manager send."""
        for window in self.windows():
            _ask_to_close(self.display, int(window))

    # --- looking -------------------------------------------------------------------------------------------

    def picture(self, path: Path, size: tuple[int, int] = SIZE) -> None:
        """Of the screen's upper left part, with few enough colours to be small."""
        grab = ("import", "-silent", "-display", self.display, "-window", "root")
        crop = ("-crop", f"{size[0]}x{size[1]}+0+0", "+repage", "-strip")
        subprocess.run((*grab, *crop, str(path)), check=True, timeout=DONE_S, env=self._environment)

    def _do(self, *words: str) -> None:
        done = subprocess.run(
            ("xdotool", *words), env=self._environment, capture_output=True, text=True, timeout=DONE_S
        )
        if done.returncode != 0:
            raise NoScreen(f"xdotool {' '.join(words)}: {done.stderr.strip() or done.returncode}")


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
