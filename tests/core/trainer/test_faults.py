"""What goes wrong with real trainers: peers that fail, die or never come; scripts that do not listen."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from core.supervisor.state import Limits
from core.supervisor.warm import WarmTrainer
from core.vocabulary import trainer_messages
from core.vocabulary.trainer_messages import ExchangeKeys
from tests.core.trainer.attended import LONG_S, Attended, cluster, keys_for, members

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


async def test_a_script_that_fails_on_one_member_ends_the_other_as_a_lost_peer(tmp_path: Path) -> None:
    failing = ("--epochs", "100000", "--fail-in-epoch", "2", "--fail-task", "worker")
    trainers = members(tmp_path, cluster(chief=1, worker=1), keys=(), script="fits.py", arguments=failing)
    worker = await trainers["worker:0"].exit()
    assert worker.reason == "script-error"
    assert "the data ran out" in str(worker.problem)
    chief = await trainers["chief:0"].exit()
    assert chief.reason == "lost-peer", chief


async def test_a_killed_member_is_killed_and_the_others_lost_it(tmp_path: Path) -> None:
    slowly = ("--epochs", "100000", "--slow", "0.01")
    trainers = members(tmp_path, cluster(chief=1, worker=1), keys=(), script="fits.py", arguments=slowly)
    worker, chief = trainers["worker:0"], trainers["chief:0"]
    await chief.wait(lambda: len(chief.progress()) > 2)
    assert worker.process.pid is not None
    os.kill(worker.process.pid, signal.SIGKILL)
    assert (await worker.exit()).reason == "killed"
    assert (await chief.exit()).reason == "lost-peer"


@pytest.mark.parametrize("keys", [None, keys_for(2)[0]], ids=["tensorflow", "tls"])
async def test_a_peer_that_never_comes_is_named(keys: ExchangeKeys | None, tmp_path: Path) -> None:
    configs = cluster(chief=1, worker=1)
    port = configs["chief:0"].partition('"worker": ["127.0.0.1:')[2].partition('"')[0]
    chief = Attended(
        tmp_path / "log",
        script="fits.py",
        tf_config=configs["chief:0"],
        shares=(1, 1),
        peers={"worker:0": f"Anna's laptop at 127.0.0.1:{port}"},
        names=("Ben's laptop", "Anna's laptop"),
        meet_timeout_s=2.0,
        exchange=keys,
    )
    exit = await chief.exit()
    assert exit.reason == "never-met"
    at = f"at 127.0.0.1:{port}"
    assert (f"Anna's laptop ({at}," if keys else f"worker:0 (Anna's laptop {at})") in str(exit.problem)
    assert chief.of(trainer_messages.Meeting) and not chief.of(trainer_messages.Met)


async def test_a_script_that_ignores_stop_and_sigterm_is_killed(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "while True:\n"
        "    try:\n"
        "        print('deaf', flush=True)\n"
        "        time.sleep(3600)\n"
        "    except KeyboardInterrupt:\n"
        "        print('not listening', flush=True)\n"
    )
    limits = Limits(boot_s=2 * LONG_S, grace_s=LONG_S, terminate_s=0.5)
    trainer = Attended(tmp_path / "log", folder=str(tmp_path), script="deaf.py", limits=limits)
    await trainer.wait(lambda: "deaf" in trainer.text())
    trainer.stop()
    await trainer.wait(lambda: "not listening" in trainer.text())
    trainer.stop(1)
    exit = await trainer.exit()
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
    await warm.keep()
    child = warm.take()
    assert child is not None
    (tmp_path / "leaves.py").write_text(
        "import atexit, sys\natexit.register(print, 'at exit', flush=True)\nsys.exit('nothing to do')\n"
    )
    trainer = Attended(tmp_path / "log", folder=str(tmp_path), script="leaves.py", child=child)
    exit = await trainer.exit()
    assert exit.problem is not None
    assert (exit.reason, exit.problem.code) == ("script-error", "script-left")
    assert exit.problem.what == "The script ended itself with the words 'nothing to do' (leaves.py, line 3)."
    assert "nothing to do" in trainer.text("stderr")
    assert "at exit" in trainer.text()


@pytest.mark.parametrize("keys", [None, keys_for(2)[0]], ids=["tensorflow", "tls"])
async def test_a_port_that_is_taken_is_said(keys: ExchangeKeys | None, tmp_path: Path) -> None:
    configs = cluster(chief=1, worker=1)
    port = int(configs["chief:0"].partition('"chief": ["127.0.0.1:')[2].partition('"')[0])
    with socket.create_server(("0.0.0.0", port)):
        order: dict[str, Any] = {"script": "fits.py", "shares": (1, 1), "exchange": keys}
        chief = Attended(tmp_path / "log", tf_config=configs["chief:0"], **order)
        exit = await chief.exit()
    assert exit.problem is not None
    assert (exit.reason, exit.problem.code) == ("never-met", "port-taken"), exit
