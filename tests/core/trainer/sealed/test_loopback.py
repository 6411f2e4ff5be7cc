"""Trainers on a system that gives them no network of their own (``tests.forbidden``)."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import psutil
import pytest

from core.supervisor import spawn
from core.trainer.sealed import listeners, loopback
from core.vocabulary import trainer_messages
from tests.core.trainer.attended import Attended
from tests.core.trainer.sealed.test_own_strategies import EXAMPLES, sealed

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not loopback.is_possible(), reason="for Linux on x86-64"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the scripts; namespaces are forbidden."""
    free = spawn.command()
    monkeypatch.setattr(spawn, "command", lambda: [sys.executable, "-m", "tests.forbidden", *free])
    return str(shutil.copytree(EXAMPLES, tmp_path / "project"))


def said(trainer: Attended) -> str:
    return " ".join(report.words for report in trainer.of(trainer_messages.Said))


async def test_without_namespaces_tensorflow_listens_on_the_loopback_alone(
    tmp_path: Path, folder: str
) -> None:
    """The two would have one loopback here: the second laptop is one with namespaces."""
    chief, worker = "chief:0", "worker:0"
    trainers = sealed(
        tmp_path,
        ("chief", "worker"),
        downloads=True,
        folder=folder,
        script="multi_worker_loop.py",
        arguments=("--epochs", "100000"),
        apart=(worker,),
    )
    await trainers[chief].wait(lambda: "epoch 2/" in trainers[chief].text(), 300.0)
    assert "listens on this laptop's loopback alone" in said(trainers[chief])
    assert "in a network of its own" in said(trainers[worker])
    pid = trainers[chief].process.pid
    assert pid is not None
    assert listeners.reachable(pid) == ()
    listening = [
        each.laddr.ip for each in psutil.Process(pid).net_connections() if each.status == psutil.CONN_LISTEN
    ]
    assert listening and all(ip.removeprefix("::ffff:") == "127.77.0.1" for ip in listening)
    for trainer in trainers.values():
        trainer.stop()
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    assert [exit.reason for exit in exits] == ["stopped", "stopped"], exits


async def test_where_the_loopback_is_not_to_be_had_either_the_run_is_refused(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on another processor, which is what the trainer is told."""
    free = spawn.command()
    elsewhere = [
        *(sys.executable, "-c"),
        "import platform, runpy, sys; platform.machine = lambda: 'aarch64'; del sys.argv[0]; "
        "runpy.run_module('tandem_laptops', run_name='__main__')",
        "tandem_laptops",
    ]
    monkeypatch.setattr(spawn, "command", lambda: [*free[:3], *elsewhere, spawn.HIDDEN_ARGUMENT])
    (trainer,) = sealed(
        tmp_path, ("chief",), downloads=True, folder=folder, script="multi_worker_loop.py"
    ).values()
    exit = await trainer.exit()
    assert exit.reason == "killed" and exit.problem is not None
    assert exit.problem.code == "not-sealed"
    assert "cannot be sealed on this laptop" in exit.problem.what and "--open-port" in exit.problem.fix
    assert not trainer.of(trainer_messages.Meeting)


async def test_a_script_that_is_to_reach_nothing_is_refused_where_it_cannot_be_kept_from_the_network(
    tmp_path: Path, folder: str
) -> None:
    (trainer,) = sealed(
        tmp_path, ("chief",), downloads=False, folder=folder, script="multi_worker_loop.py"
    ).values()
    exit = await trainer.exit()
    assert exit.problem is not None
    assert "is to reach no network" in exit.problem.what
    assert "--no-downloads" in exit.problem.fix
