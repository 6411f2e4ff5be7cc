"""The whole demo: complete nodes, real mDNS, pairing, TLS and TensorFlow, on this one machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from app.cli.exit_codes import ExitCode
from tests.lab.laptops import saved

pytestmark = [pytest.mark.real, pytest.mark.cluster, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[3]
LIMIT_S = 280


@contextmanager
def demo(tmp_path: Path, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """A demo whose temporary files are in ``tmp_path/temp``; its process is always ended."""
    (tmp_path / "temp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "demo", "--out", str(tmp_path / "out"), *argv],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path / "temp"), "PYTHONUNBUFFERED": "1", "COLUMNS": "500"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], words: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError(f"{words!r} never came: {''.join(lines)}")


def family(process: subprocess.Popen[str], at_least: int) -> list[psutil.Process]:
    """A demo's agents and trainers, once there are at least that many: a trainer is reported before it
    starts."""
    until_s = time.monotonic() + LIMIT_S
    while len(found := psutil.Process(process.pid).children(recursive=True)) < at_least:
        assert time.monotonic() < until_s, found
        time.sleep(0.01)
    return found


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Processes that have not ended after a while."""
    return psutil.wait_procs(processes, timeout=60)[1]


def trained_by_plain_keras(tmp_path: Path) -> dict[str, np.ndarray]:
    """The same script run alone, as anybody would: its weights and its optimizer's."""
    (tmp_path / "plain").mkdir()
    done = subprocess.run(
        [sys.executable, ROOT / "resources" / "examples" / "digits" / "digits.py"],
        cwd=tmp_path / "plain",
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return saved(tmp_path / "plain" / "digits.keras")


def left_over(tmp_path: Path) -> list[str]:
    """Processes of this demo that still run, and folders that it left."""
    processes = [
        " ".join(process.info["cmdline"] or ())
        for process in psutil.process_iter(["cmdline"])
        if str(tmp_path) in " ".join(process.info["cmdline"] or ())
    ]
    folders = [path.name for path in (tmp_path / "temp").iterdir() if path.name.startswith("tandem-demo-")]
    return processes + folders


def test_two_nodes_find_each_other_pair_and_train_one_script(tmp_path: Path) -> None:
    before = sorted(path for path in (ROOT / "resources").rglob("*") if "__pycache__" not in path.parts)
    with demo(tmp_path, "--json") as process:
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == ExitCode.OK, err
    told = json.loads(out)
    assert told["ok"] is True
    assert (told["strategy"], told["exchange"]) == ("MirroredStrategy", "tls")
    assert told["epochs"] == 8
    assert told["val_accuracy"] >= 0.95
    assert told["loss_last"] < told["loss_first"]
    assert set(told["weights_sha256"]) == {"anna", "ben"}
    assert len(set(told["weights_sha256"].values())) == 1
    assert 0 < told["discovery_s"] < told["total_s"]
    assert 0 < told["first_step_s"] < told["total_s"]
    assert told["steps_per_s"] > 0
    assert Path(told["model_path"]) == (tmp_path / "out" / "digits.keras").resolve()
    assert Path(told["model_path"]).stat().st_size > 10_000
    for said in (
        "anna found ben",
        "ben found anna",
        "code on anna",
        "are paired",
        "TF_CONFIG of ben",
        "first step",
    ):
        assert said in err
    assert re.search(r"ben epoch 8/8: loss 0\.\d+, accuracy 0\.\d+", err)
    assert left_over(tmp_path) == []
    after = sorted(path for path in (ROOT / "resources").rglob("*") if "__pycache__" not in path.parts)
    assert after == before
    plain = trained_by_plain_keras(tmp_path)
    together = saved(Path(told["model_path"]))
    assert together.keys() == plain.keys()
    # They differ in the last bits: sums over 32 + 32 rows round differently than over 64.
    assert max(float(np.abs(together[name] - plain[name]).max()) for name in plain) < 2e-6


@pytest.mark.complete
@pytest.mark.skipif(os.name != "posix", reason="ends a process as POSIX does")
def test_a_node_that_is_killed_in_training_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with demo(tmp_path, "--epochs", "1000") as process:
        said = read_until(process, "epoch 1/1000")
        (ben,) = [
            match[1] for line in said if (match := re.search(r"ben is ready .*\(process (\d+)\)", line))
        ]
        started = family(process, 4)  # two agents, two trainers
        os.kill(int(ben), signal.SIGKILL)
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == ExitCode.FAILED, out + err
    assert re.search(r"\bben\b", out)
    assert "Traceback" not in out + err
    assert alive(started) == []
    assert left_over(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="ends a process as POSIX does")
def test_ctrl_c_ends_every_process_of_the_demo(tmp_path: Path) -> None:
    with demo(tmp_path, "--epochs", "1000") as process:
        read_until(process, "starting TensorFlow")
        started = family(process, 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == ExitCode.INTERRUPTED, out + err
    assert "Interrupted" in out
    assert alive(started) == []
    assert left_over(tmp_path) == []
