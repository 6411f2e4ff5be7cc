from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from core.supervisor import spawn
from core.supervisor.warm import GIVEN_UP_BYTES, LEAST_FREE_BYTES, WarmTrainer
from core.vocabulary import trainer_messages
from tests.core.run.fake_trainer import COMMAND
from tests.core.supervisor.test_driver import FINISH
from tests.core.trainer.attended import Attended

pytestmark = pytest.mark.real


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> WarmTrainer:
    monkeypatch.setattr(spawn, "command", lambda: COMMAND)
    return WarmTrainer()


async def test_a_kept_trainer_takes_one_run_and_the_next_is_another(
    warm: WarmTrainer, tmp_path: Path
) -> None:
    assert warm.hand_over() is None
    await warm.make_ready()
    await warm.make_ready()
    child = warm.hand_over()
    assert child is not None
    assert warm.hand_over() is None
    pid = child.pid
    trainer = Attended(tmp_path / "log", script=f"import os; print(os.getpid()); {FINISH}", child=child)
    assert (await trainer.exit()).reason == "finished"
    assert trainer.text() == str(pid)
    assert [type(report) for report in trainer.reports] == [trainer_messages.Booted]
    await warm.make_ready()
    again = warm.hand_over()
    assert again is not None and again.pid != pid
    again.end()


async def test_a_foreseen_trainer_reports_that_it_has_loaded_and_is_then_used(
    warm: WarmTrainer, tmp_path: Path
) -> None:
    assert await warm.wait_loaded(60.0)
    assert await warm.wait_loaded(60.0), "of two that ask, both learn it"
    child = warm.hand_over()
    assert child is not None
    trainer = Attended(tmp_path / "log", script=FINISH, child=child)
    assert (await trainer.exit()).reason == "finished"
    assert [type(report) for report in trainer.reports] == [trainer_messages.Booted]
    assert "not a report" not in (tmp_path / "log").read_text()
    await warm.end()


async def test_none_is_loaded_if_the_time_is_up_or_no_trainer_is_wanted(
    warm: WarmTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn, "command", lambda: [sys.executable, "-c", "import time; time.sleep(600)"])
    assert not await warm.wait_loaded(0.05), "it says nothing"
    waiting = asyncio.create_task(warm.wait_loaded(60.0))
    await asyncio.sleep(0)
    await warm.end()
    assert not await asyncio.wait_for(waiting, 60.0)
    assert not await WarmTrainer(lambda: False).wait_loaded(60.0)


async def test_a_trainer_that_the_kernel_killed_is_not_started_again_while_memory_is_short(
    warm: WarmTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await warm.wait_loaded(60.0)
    child = warm._child
    assert child is not None
    child.process.kill()
    child.process.wait()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=LEAST_FREE_BYTES - 1))
    warm.foresee()
    await warm._background.wait_idle()
    assert warm._child is child and child.process.poll() is not None
    await warm.end()


async def test_even_a_trainer_that_is_always_kept_ends_when_memory_is_short_in_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spawn, "command", lambda: COMMAND)
    warm = WarmTrainer(is_in_a_run=lambda: True)
    warm.always = True
    assert await warm.wait_loaded(60.0)
    child = warm._child
    warm.on_memory(GIVEN_UP_BYTES - 1)
    await warm._background.wait_idle()
    assert child is not None and warm._child is None and child.process.poll() is not None
    await warm.end()
