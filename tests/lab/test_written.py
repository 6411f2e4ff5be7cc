"""Whoever joins a training has the files that its callbacks wrote before: real agents and trainers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.vocabulary import events as ev
from core.vocabulary.commands import AddLaptops
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.laptops import Laptops
from tests.lab.test_returns import (
    EPOCHS,
    NEARLY_OVER,
    SCRIPT,
    goes_on,
    gone,
    has_every_epoch,
    kept,
    newest_step,
    printed,
)

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.complete, pytest.mark.timeout(2400)]

STEPS = 1000


def reaches(agent: Agent, step: int) -> None:
    agent.until(lambda state: newest_step(agent) >= step or None, f"reach step {step}", TRAINED_S)


def test_after_a_late_third_the_chief_may_be_lost_and_no_file_is(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben, cleo = laptops.anna, laptops.ben, laptops.cleo
    brake, folder = tmp_path / "brake", tmp_path / "logs"
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    run = anna.train(
        RunSpec(
            script=str(folder / SCRIPT.name),
            arguments=(
                *("--steps", str(STEPS), "--epochs", str(EPOCHS), "--pace-s", "0.05"),
                *("--pure", "--logs", "--brake", str(brake)),
            ),
            devices=(ben.device,),
            seed=7,
        )
    )
    for agent in (anna, ben):
        agent.trains(run)
    reaches(anna, 2 * STEPS // EPOCHS)
    brake.touch()
    kept(anna, run)

    anna.do(AddLaptops(run=run, devices=(cleo.device,)))
    run = goes_on(anna, run, anna, ben, cleo).plan.run
    brake.unlink()
    reaches(anna, STEPS - NEARLY_OVER)
    (trainer,) = anna.trainers()
    assert anna.run().chief.device == anna.device
    trainer.kill()
    assert gone([trainer])
    anna.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, anna.device))
    assert newest_step(ben) < STEPS - 1, "it was over before anything happened"

    for agent in (anna, ben, cleo):
        assert agent.ends(run, 4 * TRAINED_S) == Finished()
    logs = printed(ben, run)
    assert len(logs) == 2 and printed(cleo, run) == logs
    has_every_epoch(anna.home.runs / run / "outputs")
