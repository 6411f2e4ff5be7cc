"""Failures with real trainers: peers that fail, die or never come; scripts that do not react."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from core.supervisor.warm import WarmTrainer
from core.vocabulary import trainer_messages
from tests.core.trainer.attended import Attended, cluster, keys_for, members

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


async def test_a_member_reports_waiting_for_a_killed_one_until_it_is_stopped(tmp_path: Path) -> None:
    slowly = ("--epochs", "100000", "--slow", "0.01")
    trainers = members(tmp_path, cluster(chief=1, worker=1), script="fits.py", arguments=slowly)
    worker, chief = trainers["worker:0"], trainers["chief:0"]
    await chief.wait(lambda: len(chief.progress()) > 2)
    assert worker.process.pid is not None
    os.kill(worker.process.pid, signal.SIGKILL)
    assert (await worker.exit()).reason == "killed"

    def waits_for_whom_it_cannot_reach() -> bool:
        statuses = [report.status for report in chief.of(trainer_messages.StatusChanged) if report.status]
        return any(peer.rank == 1 and not peer.connected for status in statuses for peer in status.peers)

    await chief.wait(waits_for_whom_it_cannot_reach)
    # The nodes find out whether it returns, and end the others.
    chief.stop(1)
    exit = await chief.exit()
    assert exit.problem is not None
    assert (exit.reason, exit.problem.code) == ("killed", "stop-forced")


async def test_stop_before_any_fit_interrupts_as_ctrl_c_does(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(
        "import time\n"
        "try:\n"
        "    print('waiting', flush=True)\n"
        "    time.sleep(3600)\n"
        "finally:\n"
        "    print('cleaned up', flush=True)\n"
    )
    trainer = Attended(tmp_path / "log", folder=str(tmp_path), script="waits.py")
    await trainer.wait(lambda: "waiting" in trainer.text())
    trainer.stop()
    exit = await trainer.exit()
    assert (exit.reason, exit.problem) == ("stopped", None)
    assert "cleaned up" in trainer.text()


async def test_a_warm_trainer_runs_a_script_like_a_cold_one(tmp_path: Path) -> None:
    warm = WarmTrainer()
    await warm.make_ready()
    child = warm.hand_over()
    assert child is not None
    (tmp_path / "leaves.py").write_text(
        "import atexit, sys\natexit.register(print, 'at exit', flush=True)\nsys.exit('nothing to do')\n"
    )
    trainer = Attended(tmp_path / "log", folder=str(tmp_path), script="leaves.py", child=child)
    exit = await trainer.exit()
    assert exit.problem is not None
    assert (exit.reason, exit.problem.code) == ("script-error", "script-left")
    assert exit.problem.what == "The script exited with the text 'nothing to do' (leaves.py, line 3)."
    assert "nothing to do" in trainer.text("stderr")
    assert "at exit" in trainer.text()


async def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    configs = cluster(chief=1, worker=1)
    port = int(configs["chief:0"].partition('"chief": ["127.0.0.1:')[2].partition('"')[0])
    with socket.create_server(("0.0.0.0", port)):
        order: dict[str, Any] = {"script": "fits.py", "shares": (1, 1), "exchange": keys_for(2)[0]}
        chief = Attended(tmp_path / "log", tf_config=configs["chief:0"], **order)
        exit = await chief.exit()
    assert exit.problem is not None
    assert (exit.reason, exit.problem.code) == ("never-met", "port-taken"), exit
