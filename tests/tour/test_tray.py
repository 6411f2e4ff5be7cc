"""The icon in a tray, for real: the window's program on a screen, a bus of its own, and a host for icons.

Run by `make gui-tour` after the tour, and needs the same packages of the system.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.home import home as homes
from core.home import settings_file
from core.home.home import Home
from core.vocabulary.settings import Settings
from tests.tour.person import ENDED_S, ROOT, SEEN_S, Person
from tests.tour.programs import missing_packages
from tests.tour.screen import Screen
from tests.tour.thing import Thing

TRAINED_S = 280.0
"""For everything that loads TensorFlow first."""
DIGITS = ROOT / "resources" / "examples" / "digits"
ITEM, MENU = "/StatusNotifierItem", "/MenuBar"
FACE = {ITEM: "org.kde.StatusNotifierItem", MENU: "com.canonical.dbusmenu"}
BUS = """
<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>
"""

pytestmark = [
    pytest.mark.real,
    pytest.mark.cluster,
    pytest.mark.timeout(900),
]


class Desktop(Person):
    """A screen, a bus and a tray. ``item``: the bus name of the program whose icon came into the tray."""

    screen: Screen

    def __init__(self, folder: Path, screen: Screen, bus: str) -> None:
        super().__init__("anna", folder / "window.txt")
        self.screen = screen
        self.home = Home(folder / "anna")
        runtime = folder / "runtime"
        runtime.mkdir(mode=0o700)
        self.environment = {
            **os.environ,
            "DISPLAY": screen.display,
            "QT_QPA_PLATFORM": "xcb",
            "DBUS_SESSION_BUS_ADDRESS": bus,
            "XDG_RUNTIME_DIR": str(runtime),
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        self.item = ""

    def open_tandem(self) -> None:
        homes.prepare(self.home)
        settings = Settings(name="anna", port=0, interfaces=("lo",), discovery=False, first_run_done=True)
        settings_file.write(self.home.settings, settings)
        command = (sys.executable, "-m", "tests.tour.eyes", "--home", str(self.home.folder))
        self.start(command, self.environment)
        self.until(
            lambda _: screen.windows() if (screen := self.screen) else None, "the window on the screen"
        )

    def hide(self) -> None:
        """Closes the window during training, and lets the training continue."""

        def keep_training(things: list[Thing]) -> bool:
            for thing in things:
                # Clicks again if the sheet was still being laid out.
                if thing.is_called("keep-training") and thing.reachable:
                    self.screen.click(*thing.spot.middle)
            return not things

        self.screen.ask_to_close()
        self.until(keep_training, "the window to go")

    def comes_back(self) -> None:
        self.until(lambda things: things and self.screen.windows(), "the window to come back")

    # --- what a panel asks of an icon ----------------------------------------------------------------------

    def told(self, name: str) -> str:
        """A property of the icon, as text."""
        asked = ("org.freedesktop.DBus.Properties.Get", f"string:{FACE[ITEM]}", f"string:{name}")
        return self._send(ITEM, *asked)

    def says(self, words: str, limit_s: float = SEEN_S) -> None:
        """Waits for that tooltip of the icon."""
        self.until(
            lambda _: f'"Tandem: {words}"' in self.told("ToolTip"), f"the icon to say {words!r}", limit_s
        )

    def activate(self) -> None:
        """Clicks the icon."""
        self._send(ITEM, f"{FACE[ITEM]}.Activate", "int32:0", "int32:0")

    def choose_in_menu(self, label: str) -> None:
        layout = self._send(MENU, f"{FACE[MENU]}.GetLayout", "int32:0", "int32:-1", "array:string:label")
        entries = re.findall(r'int32 (\d+)\s+array \[[^\]]*?"label"\s+variant\s+string "([^"]*)"', layout)
        number = {words: number for number, words in entries}[label]
        event = (f"int32:{number}", "string:clicked", "variant:string:", "uint32:0")
        self._send(MENU, f"{FACE[MENU]}.Event", *event)

    def _send(self, path: str, member: str, *arguments: str) -> str:
        send = ("dbus-send", "--session", "--print-reply", f"--dest={self.item}", path, member, *arguments)
        done = subprocess.run(send, env=self.environment, capture_output=True, text=True, timeout=ENDED_S)
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("\n")[2]  # without the sender and the time


@contextmanager
def session_bus(folder: Path) -> Iterator[str]:
    """Returns its address. Only explicit clients are on it: it starts no system services."""
    (folder / "bus.conf").write_text(BUS)
    daemon = subprocess.Popen(
        ("dbus-daemon", f"--config-file={folder / 'bus.conf'}", "--nofork", "--print-address"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert daemon.stdout is not None
        yield daemon.stdout.readline().strip()
    finally:
        daemon.terminate()
        daemon.communicate(timeout=ENDED_S)


@contextmanager
def tray_host(desktop: Desktop) -> Iterator[subprocess.Popen[str]]:
    """Accepts icons; reports their programs."""
    host = subprocess.Popen(
        (sys.executable, "-m", "tests.tour.tray_host"),
        cwd=ROOT,
        env={**desktop.environment, "QT_QPA_PLATFORM": "offscreen"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        yield host
    finally:
        host.terminate()
        host.communicate(timeout=ENDED_S)


@contextmanager
def training(desktop: Desktop) -> Iterator[subprocess.Popen[bytes]]:
    """Started in a terminal on the window's node."""
    folder = desktop.home.folder.with_name("digits")
    shutil.copytree(DIGITS, folder, ignore=shutil.ignore_patterns("*.keras"))
    run = (
        "run",
        str(folder / "digits.py"),
        "--solo",
        "--home",
        str(desktop.home.folder),
        "--",
        "--epochs",
        "4000",
    )
    process = subprocess.Popen(
        (sys.executable, "-m", "app", *run),
        cwd=ROOT,
        env=desktop.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    """With Tandem's window open and its icon in the tray."""
    assert not missing_packages(), "what the tour needs of the system"
    with Screen((), tmp_path / "xvfb.txt") as screen, session_bus(tmp_path) as bus:
        desktop = Desktop(tmp_path, screen, bus)
        with tray_host(desktop) as host:
            try:
                desktop.open_tandem()
                assert host.stdout is not None
                desktop.item = host.stdout.readline().strip()
                yield desktop
            finally:
                desktop.end()


def test_the_icon_says_what_tandem_does_and_brings_it_back(desktop: Desktop) -> None:
    assert '"tandem"' in desktop.told("Title")
    desktop.says("ready")
    plain_icon = desktop.told("IconPixmap")
    assert plain_icon.count("ff") > 1000, "something is painted"

    with training(desktop) as run:
        desktop.says("training", TRAINED_S)
        assert desktop.told("IconPixmap") != plain_icon, "a dot tells it to whoever looks at the tray"
        desktop.hide()
        desktop.says("training")
        desktop.activate()
        desktop.comes_back()
        desktop.hide()
        desktop.choose_in_menu("Open Tandem")
        desktop.comes_back()
        run.send_signal(signal.SIGINT)
        run.wait(TRAINED_S)
    desktop.says("ready")
    assert desktop.told("IconPixmap") == plain_icon
    program = desktop.program
    assert program is not None
    desktop.choose_in_menu("Quit")
    assert program.wait(SEEN_S) == 0, desktop.log.read_text()
