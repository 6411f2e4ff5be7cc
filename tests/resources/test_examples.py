"""Every example is a plain Keras script: it runs with Python alone, and knows nothing of Tandem."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "resources" / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.py"))
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "TF_CONFIG"},
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
LIMIT_S = 240


def ids(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("script", SCRIPTS, ids=ids)
def test_an_example_says_in_two_lines_what_it_is_and_never_names_tandem(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(text))
    assert said is not None
    assert len(said.splitlines()) == 2
    assert "tandem" not in text.lower()


def test_the_examples_are_small_and_each_names_its_source() -> None:
    files = [path for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < 2_000_000
    for folder in {script.parent for script in SCRIPTS}:
        assert (folder / "README.md").is_file(), folder


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("script", "model"),
    [
        ("digits/digits.py", "digits.keras"),
        ("images/images.py", "images.keras"),
        ("table/table.py", "wine.keras"),
        ("text/text.py", "text.keras"),
        ("strategies/mirrored.py", "mirrored.keras"),
        ("strategies/multi_worker_fit.py", "multi_worker_fit.keras"),
        ("strategies/multi_worker_loop.py", "multi_worker_loop.keras"),
    ],
)
def test_an_example_runs_with_plain_python(script: str, model: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, "--epochs", "1"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / model).stat().st_size > 1000


@pytest.mark.cluster
def test_the_parameter_server_example_trains_on_a_cluster_of_three(tmp_path: Path) -> None:
    ports = free_ports(3)
    cluster = {
        role: [f"127.0.0.1:{port}"] for role, port in zip(("chief", "worker", "ps"), ports, strict=True)
    }
    tasks: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for role in ("ps", "worker", "chief"):
            config = json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}})
            with (tmp_path / f"{role}.log").open("wb") as log:
                tasks[role] = subprocess.Popen(
                    [sys.executable, EXAMPLES / "strategies" / "parameter_server.py", "--epochs", "1"],
                    cwd=tmp_path,
                    env={**ENVIRONMENT, "TF_CONFIG": config},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
        code = tasks["chief"].wait(LIMIT_S)
    finally:
        for task in tasks.values():
            task.kill()
            task.wait(30)
    assert code == 0, (tmp_path / "chief.log").read_text()[-2000:]
    assert (tmp_path / "parameter_server.keras").is_file()


def free_ports(count: int) -> list[int]:
    """Ports below the ephemeral range, where nothing else picks one by chance."""
    found: list[int] = []
    for port in range(31_000, 32_000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free port in 31000-31999")
