from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from core.supervisor import spawn
from core.supervisor.warm import WarmTrainer
from core.vocabulary import trainer_messages
from tests.core.run.fake_trainer import COMMAND
from tests.core.supervisor.test_driver import FINISH, is_gone, wait_gone
from tests.core.trainer.attended import Attended

pytestmark = pytest.mark.real


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> WarmTrainer:
    monkeypatch.setattr(spawn, "command", lambda: COMMAND)
    return WarmTrainer()


async def test_a_kept_trainer_takes_one_run_and_the_next_is_another(
    warm: WarmTrainer, tmp_path: Path
) -> None:
    assert warm.take() is None
    await warm.keep()
    await warm.keep()
    child = warm.take()
    assert child is not None
    assert warm.take() is None
    pid = child.pid
    trainer = Attended(tmp_path / "log", script=f"import os; print(os.getpid()); {FINISH}", child=child)
    assert (await trainer.exit()).reason == "finished"
    assert trainer.text() == str(pid)
    assert [type(report) for report in trainer.reports] == [trainer_messages.Booted]
    await warm.keep()
    again = warm.take()
    assert again is not None and again.pid != pid
    again.end()


async def test_one_that_died_while_it_waited_is_not_handed_out(warm: WarmTrainer) -> None:
    await warm.keep()
    assert warm._child is not None
    warm._child.process.kill()
    warm._child.process.wait()
    assert warm.take() is None
    await warm.keep()
    child = warm.take()
    assert child is not None
    child.end()


async def test_it_ends_when_it_is_not_wanted_any_more(warm: WarmTrainer) -> None:
    await warm.keep()
    assert warm._child is not None
    pid = warm._child.pid
    assert not is_gone(pid)
    await warm.end()
    await wait_gone(pid)
    await warm.end()


async def test_one_that_was_being_started_when_it_was_turned_off_ends(
    warm: WarmTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_child, asked, go_on = spawn.spawn, threading.Event(), threading.Event()
    started: list[spawn.Child] = []

    def slow() -> spawn.Child:
        asked.set()
        assert go_on.wait(60)
        started.append(start_child())
        return started[0]

    monkeypatch.setattr(spawn, "spawn", slow)
    keeping = asyncio.create_task(warm.keep())
    assert await asyncio.to_thread(asked.wait, 60)
    await warm.end()
    go_on.set()
    await keeping
    assert warm.take() is None
    await wait_gone(started[0].pid)
