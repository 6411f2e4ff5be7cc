"""Members are lost anywhere in a script, and the others end with one process's result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.vocabulary.errors import LEFT_RUN
from core.vocabulary.trainer_messages import MeetWithout, Stop
from tests.core.trainer.attended import LONG_S, SCRIPTS, cluster, members
from tests.exactness.processes import environment

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def numbers(path: Path) -> list[np.ndarray]:
    with np.load(path) as kept:
        return [kept[name] for name in kept.files]


def one_process(folder: Path, *options: str) -> Path:
    """The script's results in plain Keras."""
    return _alone("dies.py", folder, "--to", str(folder), *options)


def _alone(script: str, folder: Path, *arguments: str) -> Path:
    command = [sys.executable, str(SCRIPTS / script), *arguments]
    subprocess.run(command, env=environment(), check=True, timeout=LONG_S)
    return folder / "chief-0.npz"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return one_process(tmp_path_factory.mktemp("alone"))


complete = pytest.mark.complete


def lost(*deaths: str, **options: Any) -> Any:
    """``deaths``: who dies where, in this order."""
    return pytest.param(dict(death.split(" in ") for death in deaths), id=", ".join(deaths), **options)


@pytest.mark.parametrize(
    "deaths",
    [
        lost("chief:0 in step", "worker:0 in predict"),
        lost("worker:2 in validation", "chief:0 in between"),
        lost("chief:0 in validation", "worker:1 in closing", marks=complete),
        lost("chief:0 in callback", "worker:1 in evaluate", marks=complete),
        lost("worker:0 in callback", "chief:0 in evaluate", marks=complete),
        lost("worker:2 in step", "chief:0 in predict", marks=complete),
        lost("worker:1 in between", "chief:0 in closing", marks=complete),
        lost("chief:0 in audit", "worker:0 in predict", marks=complete),
    ],
)
async def test_two_of_four_are_lost_and_the_others_end_as_one_process(
    tmp_path: Path, alone: Path, deaths: dict[str, str]
) -> None:
    await lose(tmp_path, deaths, alone)


@complete
async def test_a_chief_is_lost_where_every_member_computes_whole_batches(tmp_path: Path) -> None:
    await lose(
        tmp_path, {"chief:0": "step"}, one_process(tmp_path, "--whole"), workers=2, options=("--whole",)
    )


async def test_the_chief_leaves_by_an_order_after_its_step(tmp_path: Path, alone: Path) -> None:
    await lose(tmp_path, {"chief:0": "order"}, alone, workers=2)


@pytest.mark.parametrize("lost", ["worker:0", pytest.param("chief:0", marks=complete)])
async def test_the_other_goes_on_in_a_loop_of_batches(tmp_path: Path, lost: str) -> None:
    alone = _alone("batches_die.py", tmp_path, str(tmp_path), "nobody")
    (shared := tmp_path / "shared").mkdir()
    trainers = members(
        tmp_path, cluster(chief=1, worker=1), script="batches_die.py", arguments=(str(shared), lost)
    )
    exit = await trainers[lost].exit()
    assert exit.reason == "killed", exit
    (stays,) = set(trainers) - {lost}
    trainers[stays].order(MeetWithout(generation=1, gone=(list(trainers).index(lost),)))
    exit = await trainers[stays].exit()
    assert exit.reason == "finished", trainers[stays].text("stderr")
    assert trainers[stays].progress()[-1].epochs == 0
    own = numbers(shared / f"{stays.replace(':', '-')}.npz")
    for each, one in zip(own, numbers(alone), strict=True):
        np.testing.assert_allclose(each, one, rtol=2e-5, atol=2e-6)


async def lose(
    tmp_path: Path,
    deaths: dict[str, str],
    alone: Path,
    *,
    workers: int = 3,
    options: tuple[str, ...] = (),
) -> None:
    """``alone``: the results of one process."""
    (tmp_path / "shared").mkdir()
    dies = [word for death in deaths.items() for word in ("--dies", *death)]
    trainers = members(
        tmp_path,
        cluster(chief=1, worker=workers),
        script="dies.py",
        arguments=("--to", str(tmp_path / "shared"), *options, *dies),
        balance=True,
        keep_all=tmp_path / "kept",
    )
    ranks, gone = list(trainers), []
    for generation, task in enumerate(deaths, 1):
        leaves = deaths[task] == "order"
        if leaves:
            await trainers[task].wait(trainers[task].progress)
            trainers[task].order(Stop(leaves=True))
        exit = await trainers[task].exit()
        code = LEFT_RUN if leaves else "killed"
        assert exit.reason == "killed" and exit.problem is not None and exit.problem.code == code, exit
        gone.append(ranks.index(task))
        for other in ranks:
            if ranks.index(other) not in gone:
                trainers[other].order(MeetWithout(generation=generation, gone=tuple(gone)))
    left = [trainer for task, trainer in trainers.items() if task not in deaths]
    exits = [await trainer.exit() for trainer in left]
    assert [exit.reason for exit in exits] == ["finished"] * len(left), [
        trainer.text("stderr") for trainer in left
    ]
    assert exits[0].weights_sha256 == exits[1].weights_sha256 != ""

    import keras

    # Whoever leads at the end saves the model; a chief lost while closing has saved it before.
    leads = next(task for task in trainers if task not in deaths)
    models = {path.parent.name: path for path in (tmp_path / "kept").glob("*/model.keras")}
    assert set(models) - set(deaths) == {leads}
    weights = numbers(tmp_path / "shared" / f"{leads.replace(':', '-')}.npz")
    model = keras.saving.load_model(models[leads], compile=False)
    for kept, own in zip(model.get_weights(), weights, strict=False):
        np.testing.assert_array_equal(kept, own)

    # Whoever leads runs the callbacks that only the chief runs; one lost among them may have run some.
    if deaths.get("chief:0") != "callback":
        assert (tmp_path / "shared" / "boards").read_text().split() == ["0", "1", "2"]
    expected = numbers(alone)
    for task in (task.replace(":", "-") for task in trainers if task not in deaths):
        for own, one in zip(numbers(tmp_path / "shared" / f"{task}.npz"), expected, strict=True):
            np.testing.assert_allclose(own, one, rtol=2e-5, atol=2e-6)
