"""No trainer outlives its node, not even one that is killed, and not even while TensorFlow holds the lock."""

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
from tests.core.trainer.attended import SCRIPTS, cluster

ROOT = Path(__file__).parents[3]


def start_parent(
    kind: str, train: trainer_messages.Train, ready: str
) -> tuple[subprocess.Popen[str], list[int]]:
    """A parent, and the pids of what it started."""
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.core.run.parent", kind, to_json(train).decode(), ready],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    return parent, pids


async def killed_with_its_parent(kind: str, train: trainer_messages.Train, ready: str) -> None:
    parent, pids = start_parent(kind, train, ready)
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
    await killed_with_its_parent("fake", train, "Said")


@pytest.mark.cluster
async def test_a_trainer_that_waits_for_its_peers_dies_with_a_killed_node() -> None:
    """TensorFlow holds the interpreter's lock there, for minutes: no thread of the trainer could act."""
    config = cluster(chief=1, worker=1)["chief:0"]
    train = trainer_messages.Train(
        run="r",
        task="chief:0",
        folder=str(SCRIPTS),
        script="fits.py",
        tf_config=config,
        shares=(1, 1),
        meet_timeout_s=600,
    )
    await killed_with_its_parent("real", train, "Meeting")


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
