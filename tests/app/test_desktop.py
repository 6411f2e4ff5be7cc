"""The window as a separate program: a real process, a real node, no screen."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from app import desktop
from app.cli.exit_codes import ExitCode
from app.system import qt_libraries
from core.home import settings_file
from core.vocabulary.settings import Settings

HEAVY = (
    "tensorflow",
    "keras",
    "pyqtgraph",
    "numpy",
    "zeroconf",
    "cryptography",
    "asyncio",
    "msgspec",
    "core.node.node",
)

FIRST_PAINT = f"""
import json, sys
import app.desktop as desktop
def begin(window, folder, first, script):
    print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), flush=True)
    window.may_close = True
    desktop.QApplication.quit()
desktop._begin = begin
sys.exit(desktop.main(["--home", sys.argv[1]]))
"""

LOOKING = """
begin = conductors.Conductor.begin
def begin_and_look(conductor):
    begin(conductor)
    look(conductor)
conductors.Conductor.begin = begin_and_look
sys.exit(desktop.main(["--home", sys.argv[1]]))
"""
"""The end of each script below: the window opens as usual, then ``look`` is called."""

WHOLE = """
import json, sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import app.desktop as desktop
import app.conductor as conductors
from app.views.lifecycle import StartProblemPage

def look(conductor):
    page = conductor.window.findChild(StartProblemPage)
    state = conductor.bridge.state
    full = all(conductor.window.view(index) is not None for index in range(5))
    if page is not None or (state.me is not None and full):
        problem = page.problem.problem if page else None
        said = {"problem": problem.code if problem else "", "what": problem.what if problem else "",
                "fix": problem.fix if problem else "", "own": conductor.own,
                "name": state.me.name if state.me else "", "dark": desktop.theme.is_dark()}
        print(json.dumps(said), flush=True)
        conductor.window.close()
    else:
        QTimer.singleShot(50, conductor, lambda: look(conductor))
"""

TERMINATED = """
import sys
from PySide6.QtCore import QTimer
import app.desktop as desktop
import app.conductor as conductors

def look(conductor):
    if conductor.bridge.state.me is not None:
        print("ready", flush=True)
    else:
        QTimer.singleShot(50, conductor, lambda: look(conductor))
"""

HIDDEN = """
import sys
from PySide6.QtCore import QTimer
import app.desktop as desktop
import app.conductor as conductors
from app.system.tray import Tray

Tray.there = True  # without a tray an idle window does not stay in the background

def look(conductor):
    if conductor.bridge.state.me is None:
        QTimer.singleShot(50, conductor, lambda: look(conductor))
        return
    conductor.shutdown.stay_asked.emit()
    print("visible" if conductor.window.isVisible() else "hidden", flush=True)
    wait_shown(conductor)

def wait_shown(conductor):
    if conductor.window.isVisible():
        print("visible", flush=True)
        conductor.window.close()
    else:
        QTimer.singleShot(50, conductor, lambda: wait_shown(conductor))
"""

NO_PROBLEM = {"problem": "", "what": "", "fix": ""}

pytestmark = pytest.mark.real


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    return {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        "XDG_RUNTIME_DIR": str(runtime),
        "HOME": str(tmp_path),
        "CUDA_VISIBLE_DEVICES": "-1",
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    settings = {"name": "desk", "port": 0, "discovery": False, "theme": "dark", "first_run_done": True}
    (home / "settings.json").write_text(json.dumps(settings))
    return home


def run(code: str, home: Path, environment: Mapping[str, str]) -> tuple[int, object, str]:
    ended = subprocess.run(
        [sys.executable, "-c", code, str(home)],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    said = json.loads(ended.stdout) if ended.stdout.strip() else None
    return ended.returncode, said, ended.stderr


def test_nothing_heavy_is_loaded_before_the_first_paint(home: Path, environment: dict[str, str]) -> None:
    code, loaded, errors = run(FIRST_PAINT, home, environment)
    assert (code, loaded) == (0, []), errors


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there is always a desktop")
def test_whether_the_first_steps_are_to_come_is_read_before_the_first_paint(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    assert desktop.is_first_run(settings)
    settings_file.write(settings, Settings(first_run_done=False))
    assert desktop.is_first_run(settings)
    settings_file.write(settings, Settings(first_run_done=True))
    assert not desktop.is_first_run(settings)


def test_without_a_desktop_it_says_so_instead_of_crashing(home: Path, environment: dict[str, str]) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        environment.pop(name, None)
    ended = subprocess.run(
        [sys.executable, "-m", "app", "--home", str(home)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == ExitCode.CANNOT_START, ended.stderr
    assert "needs a desktop" in ended.stderr
    assert "tandem --help" in ended.stderr


def test_what_to_install_is_said_before_qt_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacks = ["libxcb-cursor.so.0", "libxkbcommon-x11.so.0"]
    monkeypatch.setattr(desktop, "has_screen", lambda environment: True)
    monkeypatch.setattr(qt_libraries, "missing", lambda environment, platform: lacks)
    monkeypatch.setattr(desktop, "QApplication", None)
    assert desktop.main() == ExitCode.CANNOT_START
    said = capsys.readouterr().err
    assert "sudo apt install libxcb-cursor0 libxkbcommon-x11-0)" in said
    assert "tandem --help" in said


def test_it_opens_with_a_node_of_its_own_and_closes(home: Path, environment: dict[str, str]) -> None:
    code, said, errors = run(WHOLE + LOOKING, home, environment)
    assert said == {**NO_PROBLEM, "own": True, "name": "desk", "dark": True}, errors
    assert code == 0, errors
    assert "Traceback" not in errors


def test_a_home_that_cannot_be_used_is_said_on_a_page(home: Path, environment: dict[str, str]) -> None:
    (home / "runs").write_text("a file in the folder's place")
    code, said, errors = run(WHOLE + LOOKING, home, environment)
    assert code == 0, errors
    assert isinstance(said, dict)
    assert said["problem"] == "home-unusable"
    assert "Traceback" not in errors


def test_a_home_of_an_agent_is_shown_by_a_window_that_leaves_it_running(
    home: Path, environment: dict[str, str]
) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-m", "app", "agent", "--jsonl", "--home", str(home)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert agent.stdout is not None
        assert agent.stdout.readline(), "the agent greets once its node is there"
        code, said, errors = run(WHOLE + LOOKING, home, environment)
        assert said == {**NO_PROBLEM, "own": False, "name": "desk", "dark": True}, errors
        assert code == 0, errors
        assert agent.poll() is None
    finally:
        agent.terminate()
        agent.communicate(timeout=120)


def test_a_second_start_brings_a_window_in_the_background_back(
    home: Path, environment: dict[str, str]
) -> None:
    with started(HIDDEN + LOOKING, home, environment) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "hidden\n"
        second = [sys.executable, "-m", "app", "--home", str(home)]
        assert subprocess.run(second, env=environment, stdin=subprocess.DEVNULL, timeout=200).returncode == 0
        assert first.stdout.readline() == "visible\n"
        _, errors = first.communicate(timeout=200)
    assert first.returncode == 0, errors
    assert "Traceback" not in errors


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_node_in_order(
    home: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    with started(TERMINATED + LOOKING, home, environment) as window:
        assert window.stdout is not None
        assert window.stdout.readline() == "ready\n"
        window.send_signal(number)
        _, errors = window.communicate(timeout=200)
    assert window.returncode == 0, errors
    assert "Traceback" not in errors
    assert "ends" in (home / "logs" / "tandem.log").read_text().splitlines()[-1]


@contextmanager
def started(code: str, home: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Kills it if it does not end."""
    window = subprocess.Popen(
        [sys.executable, "-c", code, str(home)],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield window
    finally:
        if window.poll() is None:
            window.kill()
            window.communicate()
