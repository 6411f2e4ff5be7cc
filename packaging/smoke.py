"""Tries a frozen Tandem in a temporary home: ``python packaging/smoke.py [dist/tandem]``. Linux.

The programs get nothing of this Python: no PATH to it, no PYTHONPATH, no user's home.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

LIMIT_S = 300.0
INTERRUPTED = 130
"""Exit code of a run stopped by Ctrl-C."""
MARK = "TANDEM_SMOKE"
"""Set in the environment of every started process, to find those that outlive it."""

HARD_SCRIPT = """\
import multiprocessing, sqlite3, wave, xml.dom.minidom

def square(number):
    return number * number

if __name__ == "__main__":
    import keras
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print("squares", pool.map(square, [2, 3]), flush=True)
    print("stored", sqlite3.connect(":memory:").execute("select 40 + 2").fetchone()[0], flush=True)
    raise ValueError("on purpose")
"""
RAISING_LINE = 11


class Failed(Exception):
    """A check failed; the message says what was seen."""


@dataclass
class Trial:
    """The frozen ``folder``, tried in ``place``."""

    folder: Path
    place: Path
    mark: str

    @property
    def program(self) -> str:
        return str(self.folder / "tandem")

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.place),
            "PATH": "/usr/bin:/bin",
            "QT_QPA_PLATFORM": "offscreen",
            "TANDEM_HOME": str(self.place / "home"),
            "XDG_RUNTIME_DIR": str(self.place),
            MARK: self.mark,
            **more,
        }

    def tandem(self, *arguments: str, status: int = 0) -> str:
        """Its stdout."""
        try:
            done = subprocess.run(
                [self.program, *arguments],
                cwd=self.place,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"tandem {' '.join(arguments)} did not end in {LIMIT_S:.0f} s") from error
        if done.returncode != status:
            raise Failed(
                f"tandem {' '.join(arguments)} ended with {done.returncode}, not {status}:\n"
                f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            )
        return done.stdout

    def objects(self, *arguments: str, status: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.tandem(*arguments, status=status).splitlines()]

    def left_over(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


def check_version(trial: Trial) -> str:
    return trial.tandem("--version").strip()


def check_doctor(trial: Trial) -> str:
    # Its status is about this machine (a firewall, for example), not about the program.
    try:
        told = trial.objects("doctor", "--json", "--deep")
    except Failed:
        told = trial.objects("doctor", "--json", "--deep", status=1)
    findings = {finding["code"]: finding for finding in told[-1]["findings"]}
    loads = findings.get("tensorflow-loads") or findings.get("tensorflow-cpu")
    if loads is None or any(findings[name]["level"] != "ok" for name in ("python", "tensorflow", "keras")):
        raise Failed(f"the doctor found {findings}")
    return str(loads["what"])


def check_run(trial: Trial) -> str:
    example = trial.place / "digits"
    shutil.copytree(trial.folder / "_internal" / "resources" / "examples" / "digits", example)
    script = str(example / "digits.py")
    trial.tandem("run", script, "--solo", "--json", "--", "--epochs", "1")
    if not (example / "digits.keras").is_file():
        raise Failed(f"no model was saved; there are {sorted(path.name for path in example.iterdir())}")
    (folder,) = (trial.place / "home" / "runs").glob("*/")
    kept = ("report.html", "history.csv", "outputs/trained/model.keras")
    if missing := [name for name in kept if not (folder / name).is_file()]:
        raise Failed(f"{folder.name} lacks {missing}")
    return f"one epoch, {(example / 'digits.keras').stat().st_size} bytes of model; report and plot"


def check_resume(trial: Trial) -> str:
    """Stopped by Ctrl-C after an epoch; continues from its checkpoint to the end."""
    script = str(trial.place / "digits" / "digits.py")
    process = subprocess.Popen(
        [trial.program, "run", script, "--solo", "--", "--epochs", "30"],
        cwd=trial.place,
        env=trial.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    limit = threading.Timer(LIMIT_S, process.kill)
    limit.start()
    try:
        assert process.stdout is not None
        said = next((line for line in process.stdout if "epoch 1/30" in line), "")
        if said:
            process.send_signal(signal.SIGINT)
        rest, _ = process.communicate()
    finally:
        limit.cancel()
    if process.returncode != INTERRUPTED:
        raise Failed(f"a run that was stopped ended with {process.returncode}:\n{rest[-3000:]}")
    run = str(trial.objects("runs", "--json")[0]["runs"][0]["run"])
    ended = trial.objects("resume", run, "--json")[-1]
    steps = ended["summary"]["steps"]
    if trial.objects("runs", "--json")[0]["runs"][0].get("resumed") != run:
        raise Failed(f"the run that goes on does not say with which: {ended}")
    return f"stopped after an epoch; {steps} steps after going on"


def check_together(trial: Trial) -> str:
    """Two nodes, each with a trainer: TensorFlow's cluster."""
    told = trial.objects("demo", "--json", "--epochs", "8", "--out", str(trial.place / "demo"))[-1]
    return f"two nodes, validation accuracy {told['val_accuracy']}"


def check_tensorboard(trial: Trial) -> str:
    run = str(trial.objects("runs", "--json")[0]["runs"][0]["run"])
    logdir = Path(str(trial.objects("tensorboard", run, "--json")[-1]["logdir"]))
    return f"{len(list(logdir.rglob('events.out.*')))} event file"


def check_hard_script(trial: Trial) -> str:
    """Python's library, worker processes, and a failure reported by its line without our own frames."""
    script = trial.place / "hard" / "hard.py"
    script.parent.mkdir()
    script.write_text(HARD_SCRIPT)
    told = trial.tandem("run", str(script), "--solo", "--json", status=1)
    folder = Path(json.loads(told.splitlines()[-1])["folder"])
    told += "".join(path.read_text(errors="replace") for path in sorted(folder.rglob("*.log")))
    for words in ("squares [4, 9]", "stored 42", "on purpose", f"line {RAISING_LINE}"):
        if words not in told:
            raise Failed(f"the script's run does not tell {words!r}:\n{told[-4000:]}")
    if "core/trainer" in told:
        raise Failed(f"the script's traceback shows Tandem's own frames:\n{told[-4000:]}")
    return "worker processes, sqlite3, and the line that failed"


def check_window(trial: Trial, **screen: str) -> str:
    """The core starts after the first paint: once the node answers from outside, the window has painted."""
    socket = trial.place / "home" / "node.sock"
    said = trial.place / "window.txt"
    began_s = time.monotonic()
    with said.open("wb") as file:
        window = subprocess.Popen(
            [trial.program],
            cwd=trial.place,
            env=trial.environment(**screen),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        while not socket.exists():
            if window.poll() is not None or time.monotonic() - began_s > LIMIT_S:
                raise Failed(f"the window did not come up:\n{said.read_text(errors='replace')}")
            time.sleep(0.05)
        took_s = time.monotonic() - began_s
        if not trial.objects("devices", "--json", "--wait", "0"):
            raise Failed("the window's node did not answer")
        trial.tandem()  # a second start brings the first one to the front, and ends
        if window.poll() is not None:
            raise Failed("the window ended too early")
        window.send_signal(signal.SIGTERM)
        status = window.wait(LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise Failed("the window did not close") from error
    finally:
        if window.poll() is None:
            window.kill()
            window.wait()
    words = said.read_text(errors="replace")
    if status or "Traceback" in words or "qt.qpa" in words:
        raise Failed(f"the window ended with {status} and said:\n{words[-4000:]}")
    return f"painted and reachable after {took_s:.1f} s; closed"


def check_window_on_x(trial: Trial) -> str:
    server = shutil.which("Xvfb")
    if server is None:
        return "left out: no Xvfb here"
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [server, "-displayfd", str(writing), "-screen", "0", "1280x800x24", "-nolisten", "tcp"],
        pass_fds=(writing,),
        env={**os.environ, MARK: trial.mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as told:
            display = told.readline().strip()  # ends with the server, even if that fails to start
        return check_window(trial, QT_QPA_PLATFORM="xcb", DISPLAY=f":{display}")
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def check_nothing_left(trial: Trial) -> str:
    psutil.wait_procs(trial.left_over(), timeout=30)
    left = trial.left_over()
    if left:
        raise Failed(f"still running: {[process.cmdline() for process in left]}")
    return "every process has ended"


CHECKS: tuple[tuple[str, Callable[[Trial], str]], ...] = (
    ("version", check_version),
    ("doctor", check_doctor),
    ("run", check_run),
    ("resume", check_resume),
    ("together", check_together),
    ("tensorboard", check_tensorboard),
    ("hard script", check_hard_script),
    ("window", check_window),
    ("window on X", check_window_on_x),
    ("the end", check_nothing_left),
)


def sizes(folder: Path) -> str:
    files = {
        path: path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
    }
    biggest = sorted(files, key=lambda path: files[path], reverse=True)[:4]
    named = ", ".join(f"{path.name} {files[path] / 1e6:.0f} MB" for path in biggest)
    return f"{sum(files.values()) / 1e6:.0f} MB in {len(files)} files ({named})"


def main(arguments: list[str]) -> int:
    """Returns 0 if every check passed."""
    folder = Path(arguments[0] if arguments else "dist/tandem").resolve()
    if not (folder / "tandem").is_file():
        print(f"There is no frozen program in {folder}. Make one: make dist")
        return 2
    print(f"{'size':<12}{sizes(folder)}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tandem-smoke-", ignore_cleanup_errors=True) as place:
        trial = Trial(folder, Path(place), uuid.uuid4().hex)
        try:
            for name, check in CHECKS:
                began_s = time.monotonic()
                try:
                    seen = check(trial)
                except Failed as error:
                    failed += 1
                    seen = f"FAILED: {error}"
                print(f"{name:<12}{time.monotonic() - began_s:6.1f} s  {seen}", flush=True)
        finally:
            for process in trial.left_over():
                process.kill()
    print(f"{failed} of {len(CHECKS)} checks failed" if failed else f"all {len(CHECKS)} checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
