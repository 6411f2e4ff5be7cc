"""No trainer outlives its node, not even a killed one, and not even while native code holds the
interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from core.supervisor import parent_death
from core.vocabulary import trainer_messages
from core.vocabulary.wire import to_json
from tests.core.supervisor.test_driver import is_gone, wait_gone

ROOT = Path(__file__).parents[3]


def start_parent(train: trainer_messages.Train, ready: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A parent, and the pids of the processes it started."""
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.core.run.parent", to_json(train).decode(), ready],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    return parent, pids


async def killed_with_its_parent(train: trainer_messages.Train, ready: str) -> None:
    parent, pids = start_parent(train, ready)
    try:
        assert pids and not any(is_gone(pid) for pid in pids)
        parent.kill()
        parent.wait()
        for pid in pids:
            await wait_gone(pid)
    finally:
        parent.kill()
        parent.wait()
        assert parent.stdout is not None
        parent.stdout.close()
        for pid in pids:
            try:
                psutil.Process(pid).kill()
            except psutil.NoSuchProcess:
                pass


@pytest.mark.real
async def test_a_trainer_and_what_its_script_started_die_with_a_killed_node() -> None:
    script = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)']); "
        "say(Said(words=str(child.pid))); time.sleep(3600)"
    )
    train = trainer_messages.Train(run="r", task="chief:0", folder="/", script=script)
    await killed_with_its_parent(train, "Said")


@pytest.mark.real
async def test_a_trainer_whose_interpreter_is_held_dies_with_a_killed_node() -> None:
    """Native code may hold it for minutes: no thread of the trainer could act."""
    script = "import ctypes, os; say(Said(words=str(os.getpid()))); ctypes.PyDLL(None).sleep(3600)"
    train = trainer_messages.Train(run="r", task="chief:0", folder="/", script=script)
    await killed_with_its_parent(train, "Said")


@pytest.mark.real
def test_arming_after_the_node_went_ends_the_process_at_once() -> None:
    read, write = os.pipe()
    os.close(write)
    code = f"from core.supervisor import parent_death; parent_death.arm({read}); print('still here')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, pass_fds=(read,), capture_output=True, start_new_session=True
    )
    os.close(read)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == b""


@pytest.mark.real
def test_death_is_seen_without_fetching_the_status() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.exit(7)"])
    fd = parent_death.watch_death(process.pid)
    try:
        import select

        assert select.select([fd], [], [], 60.0)[0] == [fd]
        assert process.wait() == 7
    finally:
        os.close(fd)
