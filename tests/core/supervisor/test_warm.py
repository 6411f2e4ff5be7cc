from __future__ import annotations

from pathlib import Path

import pytest

from core.supervisor import spawn
from core.supervisor.warm import WarmTrainer
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
