"""Trials shared out between laptops: real agents and trainers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.vocabulary.answers import SweepAccepted
from core.vocabulary.commands import StartSweep
from core.vocabulary.plan import RunSpec
from core.vocabulary.state import State
from core.vocabulary.sweep import Sweep, SweepSpec, Trial
from tests.lab.agent import TRAINED_S
from tests.lab.laptops import Laptops, saved

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(1200)]

SCRIPT = Path(__file__).parent / "scripts" / "trial.py"
EPOCHS = ("--epochs", "60")
SETS = tuple(("--lr", rate, *EPOCHS) for rate in ("0.02", "0.01", "0.005", "0.002"))


@pytest.mark.complete
def test_a_killed_laptop_costs_one_trial_begun_again_and_each_has_the_weights_of_a_plain_run(
    laptops: Laptops, tmp_path: Path
) -> None:
    anna, ben = laptops.anna, laptops.ben
    wanted = [plain_run(tmp_path / "plain" / arguments[1], arguments) for arguments in SETS]
    script = tmp_path / "trials" / SCRIPT.name
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)
    spec = SweepSpec(run=RunSpec(script=str(script), devices=(ben.device,)), argument_sets=SETS, models=None)
    answer = anna.ask(StartSweep(spec=spec))
    assert isinstance(answer, SweepAccepted), answer

    def trains_one(state: State) -> Trial | None:
        """Of ben's trials the first that has made an epoch."""
        if state.sweep is None or state.sweep.sweep != answer.sweep:
            return None
        its = [each for each in state.sweep.trials if each.device == ben.device and not each.over]
        return next((each for each in its if each.epochs), None)

    lost = anna.until(trains_one, "see ben train one", TRAINED_S)
    ben.kill()
    assert ben.waits_until_gone() < 0
    laptops.restart(1)

    sweep = anna.until(lambda state: over(state, answer.sweep), "see the trials end", 4 * TRAINED_S)
    assert [trial.status for trial in sweep.trials] == ["finished"] * len(SETS), sweep.trials
    begun = {trial.number: trial.begun for trial in sweep.trials}
    assert begun == {number: 2 if number == lost.number else 1 for number in begun}
    for trial, arrays in zip(sweep.trials, wanted, strict=True):
        assert trial.run is not None
        got = saved(anna.home.runs / trial.run / "outputs" / "trained.keras")
        assert got.keys() == arrays.keys() and got
        assert all(np.array_equal(got[name], arrays[name]) for name in arrays), trial.number


def over(state: State, sweep: str) -> Sweep | None:
    found = state.sweep
    return found if found is not None and found.sweep == sweep and not found.under_way else None


def plain_run(folder: Path, arguments: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The weights after the same script without Tandem."""
    folder.mkdir(parents=True)
    done = subprocess.run(
        (sys.executable, str(SCRIPT), *arguments),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TRAINED_S,
    )
    assert done.returncode == 0, done.stderr
    return saved(folder / "trained.keras")
