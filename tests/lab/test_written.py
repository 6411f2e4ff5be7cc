"""Whoever joins a training has the files that its callbacks wrote before: real agents and trainers."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from core.vocabulary import events as ev
from core.vocabulary.commands import AddLaptops
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from core.vocabulary.run_folder import LOGS, log_name
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.laptops import Laptops, saved
from tests.lab.test_returns import NEARLY_OVER, SCRIPT, goes_on, gone, kept, newest_step

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.complete, pytest.mark.timeout(2400)]

EPOCHS, STEPS = 10, 1000


def reaches(agent: Agent, step: int) -> None:
    agent.until(lambda state: newest_step(agent) >= step or None, f"reach step {step}", TRAINED_S)


def printed(agent: Agent, run: RunId) -> list[str]:
    """What a member's script says of its logs at its end."""
    (task,) = agent.run().plan.tasks_of(agent.device)
    log = agent.home.runs / run / LOGS / log_name(task.name)
    return [line for line in log.read_text().splitlines() if ".csv: " in line]


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
    outputs = anna.home.runs / run / "outputs"
    for name in ("log.csv", "anew.csv"):
        with (outputs / name).open() as file:
            assert [line["epoch"] for line in csv.DictReader(file)] == [str(each) for each in range(EPOCHS)]
    models = sorted((outputs / "models").iterdir())
    assert [path.name for path in models] == [f"{epoch:02d}.keras" for epoch in range(1, EPOCHS + 1)]
    assert all(map(saved, models))
