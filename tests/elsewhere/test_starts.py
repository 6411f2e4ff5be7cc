"""Node, window and trainer are imported and start without POSIX' own modules and names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 240.0
SEES_WINDOWS = """
import os, signal, socket, sys
from core.supervisor import spawn, parent_death
from core.node import local_socket

assert spawn.sys.platform == "win32" and sys.platform == "linux"
assert not hasattr(spawn.os, "killpg")
assert not hasattr(parent_death.signal, "SIGKILL")
assert not hasattr(local_socket.socket, "AF_UNIX")
assert hasattr(os, "killpg") and hasattr(signal, "SIGKILL") and hasattr(socket, "AF_UNIX")
exec(compile("import fcntl", "x", "exec"), {})
try:
    exec(compile("import fcntl", "x", "exec"), {"__name__": "core.x"})
except ModuleNotFoundError:
    print("so it is")
"""
IMPORT_ALL = """
import importlib, sys
from pathlib import Path

for path in sorted([*Path("app").rglob("*.py"), *Path("core").rglob("*.py")]):
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len([name for name in sys.modules if name.startswith(("app.", "core."))]))
"""

pytestmark = pytest.mark.real


def environment(home: Path) -> dict[str, str]:
    path = os.pathsep.join([str(Path(__file__).parent), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path, "TANDEM_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}


def python(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def running(home: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Tandem, once its node can be reached."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app", *arguments],
        cwd=ROOT,
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until_s = time.monotonic() + LIMIT_S
        while not (home / "node.port").exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until_s
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.communicate()


def test_tandem_and_nobody_else_sees_a_windows(tmp_path: Path) -> None:
    assert python(tmp_path, "-c", SEES_WINDOWS) == "so it is\n"


@pytest.mark.cluster
def test_every_module_is_imported(tmp_path: Path) -> None:
    modules = [*ROOT.glob("app/**/*.py"), *ROOT.glob("core/**/*.py")]
    assert int(python(tmp_path, "-c", IMPORT_ALL).splitlines()[-1]) > 0.9 * len(modules)


def test_a_node_starts_and_a_second_process_reaches_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running(home, "agent", "--jsonl"):
        assert not (home / "node.sock").exists(), "there are no Unix sockets"
        told = json.loads(python(home, "-m", "app", "devices", "--json", "--wait", "0"))
        assert told["me"]["device"]


def test_the_window_opens_with_its_node(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running(home) as window:
        told = json.loads(python(home, "-m", "app", "devices", "--json", "--wait", "0"))
        assert told["me"]["device"]
        assert window.poll() is None


@pytest.mark.cluster
def test_a_trainer_starts_runs_the_script_and_says_how_it_ended(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import keras, numpy as np\n"
        "model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(np.ones((32, 2)), np.ones((32, 1)), batch_size=8, verbose=0)\n"
        "print('trained')\n"
    )
    last = python(tmp_path / "home", "-m", "app", "run", str(script), "--solo", "--json").splitlines()[-1]
    folder = Path(json.loads(last)["folder"])
    assert "trained" in "".join(path.read_text() for path in folder.rglob("*.log"))
    assert (folder / "outputs" / "trained" / "model.keras").is_file()
