"""Closed terminals and killed commands during a run."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from core.home.home import Home
from core.vocabulary.phases import Finished
from core.vocabulary.settings import Settings
from tests.lab.agent import TRAINED_S, Agent
from tests.trouble.command_line import ROOT, begun, tandem

pytestmark = [pytest.mark.real, pytest.mark.cluster, pytest.mark.timeout(600)]

WAITS_FOR_GO = """\
import pathlib, time
here = pathlib.Path(__file__).parent
(here / "began").touch()
while not (here / "go").exists():
    time.sleep(0.05)
print("went on", flush=True)
"""
STARTED = {"nohup": 'exec nohup "$0" "$@"', "trap": 'trap "" HUP; exec "$0" "$@"', "plain": 'exec "$0" "$@"'}


def until(true: Callable[[], object], what: str) -> None:
    by_s = time.monotonic() + TRAINED_S
    while not true():
        assert time.monotonic() < by_s, f"it never came to {what}"
        time.sleep(0.05)


def waiting(folder: Path) -> Path:
    """A script without TensorFlow's work: it waits for a file."""
    folder.mkdir()
    script = folder / "waits.py"
    script.write_text(WAITS_FOR_GO)
    return script


def take_terminal() -> None:
    """In the child: its standard input becomes the terminal of a new session."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests' own parent may ignore it
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.skipif(os.name != "posix", reason="terminals as POSIX has them")
@pytest.mark.parametrize("how", STARTED)
def test_a_run_ends_with_its_terminal_unless_it_is_to_outlive_it(tmp_path: Path, how: str) -> None:
    """``nohup`` writes to a file; otherwise the last output goes to a terminal that no longer exists."""
    script, home = waiting(tmp_path / "project"), tmp_path / "home"
    sh = ("sh", "-c", STARTED[how], sys.executable)
    person, terminal = os.openpty()
    run = subprocess.Popen(
        [*sh, *("-m", "app", "run", str(script), "--solo", "--strategy", "own", "--home", str(home))],
        cwd=tmp_path,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        preexec_fn=take_terminal,
    )
    os.close(terminal)
    try:
        until((script.parent / "began").exists, "train")
        os.close(person)
        if how == "plain":
            assert run.wait(TRAINED_S) == ExitCode.INTERRUPTED
        else:
            time.sleep(1)
            assert run.poll() is None
            (script.parent / "go").touch()
            assert run.wait(TRAINED_S) == ExitCode.OK
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
    code, said = tandem("runs", "--home", home)
    assert code == ExitCode.OK
    assert "waits.py" in said and ("stopped on" if how == "plain" else "finished") in said


def test_a_run_goes_on_in_the_node_that_owns_it_when_tandem_run_is_killed(tmp_path: Path) -> None:
    script, home = waiting(tmp_path / "project"), Home(tmp_path / "home")
    with Agent(home, settings=Settings(name="anna", port=0, interfaces=("lo",))) as anna:
        with begun("run", script, "--solo", "--strategy", "own", "--home", home.folder) as run:
            until((script.parent / "began").exists, "train")
            run.kill()
            assert run.wait(60) == -9
        code, said = tandem("runs", "--home", home.folder)
        assert code == ExitCode.OK
        assert "waits.py" in said and "training" in said, said
        (script.parent / "go").touch()
        assert anna.ends(anna.run().plan.run) == Finished()
        assert "finished" in tandem("runs", "--home", home.folder)[1]
