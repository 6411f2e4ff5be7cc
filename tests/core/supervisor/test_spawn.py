"""How a trainer is started, without starting one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.supervisor import spawn
from core.vocabulary.errors import TandemError


class Started:
    """Replaces ``subprocess.Popen``."""

    pid = 4711
    stdout = stderr = None

    def __init__(self, command: list[str], **options: Any) -> None:
        self.command, self.options = command, options
        # Passed descriptors are open while the process is created.
        self.open = [os.fstat(fd) is not None for fd in options["pass_fds"]]

    def wait(self) -> int:
        return -9


@pytest.fixture
def popen(monkeypatch: pytest.MonkeyPatch) -> list[Started]:
    started: list[Started] = []

    def start(command: list[str], **options: Any) -> Started:
        started.append(Started(command, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(spawn, "lower_priority", lambda pid: None)
    return started


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_a_trainer_gets_one_end_of_each_pipe_and_the_node_keeps_the_other(
    popen: list[Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda pid, number: killed.append((pid, number)))
    child = spawn.spawn()
    (started,) = popen
    theirs = started.options["pass_fds"]
    assert started.command == [sys.executable, "-m", "tandem_laptops", spawn.HIDDEN_ARGUMENT] + [
        word
        for name, fd in zip(("--orders", "--reports", "--leash"), theirs, strict=True)
        for word in (name, str(fd))
    ]
    assert all(started.open) and not any(map(is_open, theirs))
    assert started.options["start_new_session"] and started.options["cwd"].is_dir()
    ours = (child.orders, child.reports, child.leash)
    assert all(map(is_open, ours)) and child.pid == 4711
    assert child.end() == -9
    assert killed == [(4711, signal.SIGKILL)]
    assert not any(map(is_open, ours)) and (child.orders, child.reports, child.leash) == (-1, -1, -1)


def test_a_group_that_is_gone_already_is_no_failure(
    popen: list[Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(pid: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "killpg", gone)
    assert spawn.spawn().end() == -9


def test_invariant_a_warm_trainer_gets_nothing_of_its_users_environment_but_how_to_compute(
    popen: list[Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its script, which may be another laptop's, reads /proc/self/environ."""
    monkeypatch.setattr(os, "killpg", lambda pid, number: None)
    for name in ("A_TOKEN", "SSH_AUTH_SOCK", "https_proxy", "KERAS_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    child = spawn.spawn_warm()
    (started,) = popen
    found = started.options["env"]
    assert child.warm and started.command[-1] == spawn.WARM_ARGUMENT
    assert "secret" not in found.values()
    assert (found["HOME"], found["PYTHONHASHSEED"]) == (os.environ["HOME"], "0")
    assert found["OPENBLAS_NUM_THREADS"] == ("1" if sys.platform == "linux" else "3")
    child.end()


@pytest.mark.skipif(sys.platform == "win32", reason="its variables are text")
def test_variables_arrive_unchanged() -> None:
    given = {"A": "b=c", "EMPTY": "", "LINES": "a\nb", "NOT_UTF_8": os.fsdecode(b"\xff/caf\xe9")}
    assert spawn.unpacked(spawn.packed(given)) == given


def test_a_trainer_that_cannot_be_started_leaves_no_pipe_open(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = os.pipe

    def pipe() -> tuple[int, int]:
        made.extend(ends := make())
        return ends

    def fail(command: list[str], **options: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(os, "pipe", pipe)
    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(TandemError, match="Cannot allocate memory") as failure:
        spawn.spawn()
    assert failure.value.code == "trainer-not-started" and failure.value.fix
    assert len(made) == 6 and not any(map(is_open, made))


def test_a_frozen_program_becomes_its_own_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert spawn.command() == [sys.executable, spawn.HIDDEN_ARGUMENT]


def test_a_trainers_environment_is_the_nodes_without_misleading_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = {f"TF_CONFIG_{name}" for name in ("CLUSTER", "TASK_TYPE", "TASK_INDEX")}
    misleading = {"TF_CONFIG", *task, "PYTHONSTARTUP", "PYTHONINSPECT"}
    for name in misleading:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    monkeypatch.setenv("MPLBACKEND", "svg")
    monkeypatch.delenv("GRPC_VERBOSITY", raising=False)
    monkeypatch.setenv("OF_THE_USER", "1")
    found = spawn.environment()
    assert not misleading & set(found)
    assert found["KERAS_BACKEND"] == "tensorflow"
    assert found[spawn.BACKEND_ASKED] == "jax"
    assert found["PYTHONHASHSEED"] == "0", "one order of strings in sets, on all laptops"
    assert (found["MPLBACKEND"], found["GRPC_VERBOSITY"], found["OF_THE_USER"]) == ("svg", "ERROR", "1")


def test_a_trainer_runs_at_a_lower_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[int] = []

    class Process:
        def __init__(self, pid: int) -> None:
            assert pid == 4711

        def nice(self, value: int | None = None) -> int:
            if value is not None:
                values.append(value)
            return 15

    groups: list[tuple[Path, str]] = []
    monkeypatch.setattr(psutil, "Process", Process)
    monkeypatch.setattr(Path, "write_text", lambda path, text: groups.append((path, text)))
    spawn.lower_priority(4711)
    assert values == [19], "no further than the system allows"
    if sys.platform == "linux":
        assert groups == [(Path("/proc/4711/autogroup"), str(spawn.NICE))]


def test_a_trainer_whose_priority_cannot_be_lowered_runs_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(pid: int) -> None:
        raise psutil.NoSuchProcess(pid)

    monkeypatch.setattr(psutil, "Process", gone)
    spawn.lower_priority(1 << 30)


def test_python_searches_no_folder_of_a_project_as_it_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mine, more = tmp_path / "mine", tmp_path / "more"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", str(mine), ".", "lib", str(more), "")))
    monkeypatch.setenv("PYTHONUSERBASE", ".")
    found = spawn.environment()
    assert found["PYTHONPATH"] == os.pathsep.join((str(mine), str(more)))
    assert "PYTHONUSERBASE" not in found
    monkeypatch.setenv("PYTHONPATH", ".")
    monkeypatch.setenv("PYTHONUSERBASE", str(mine))
    found = spawn.environment()
    assert "PYTHONPATH" not in found and found["PYTHONUSERBASE"] == str(mine)
