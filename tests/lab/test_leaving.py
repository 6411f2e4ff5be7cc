"""A laptop lost during training does not end it: the other finishes it as one machine would have."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from msgspec.structs import replace

from core.vocabulary import events as ev
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from core.vocabulary.run_folder import LOGS, TANDEM_LOG
from tests.lab import faults
from tests.lab.agent import LIMIT_S, TRAINED_S, Agent
from tests.lab.laptops import Laptops, saved, trained
from tests.lab.network import Network

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).parent / "scripts" / "naps.py"
STEPS = 200
SHARES = pytest.mark.parametrize("shares", [(40, 24), (30, 18, 16)], ids=["two", "three"])
CLOSE = 2e-6
"""float32 sums are added in another order once one laptop has all the rows."""


def train(
    laptops: Laptops, folder: Path, pace_s: float, *arguments: str, shares: tuple[int, ...] = (40, 24)
) -> RunId:
    """Presses Train, for anna and ben, and for cleo if there is a third share."""
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    them = (laptops.anna, laptops.ben, laptops.cleo)[: len(shares)]
    spec = RunSpec(
        script=str(folder / SCRIPT.name),
        arguments=("--steps", str(STEPS), "--pace-s", str(pace_s), "--pure", *arguments),
        devices=tuple(each.device for each in them[1:]),
        seed=7,
        shares={each.device: share for each, share in zip(them, shares, strict=True)},
    )
    return laptops.anna.train(spec)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, np.ndarray]:
    """The weights and batches of an undisturbed run, once there was one."""
    return {}


def expected(laptops: Laptops, folder: Path, undisturbed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    if not undisturbed:
        run = train(laptops, folder / "undisturbed", 0.0)
        assert laptops.anna.ends(run, 2 * TRAINED_S) == Finished()
        undisturbed.update(trained(laptops.anna, run))
    return undisturbed


def left(agent: Agent, run: RunId, device: str, limit_s: float = LIMIT_S) -> ev.MemberLeft:
    told = agent.hears(
        ev.MemberLeft, lambda event: (event.run, event.device) == (run, device), limit_s=limit_s
    )
    assert isinstance(told.event, ev.MemberLeft)
    return told.event


def newest_step(agent: Agent, run: RunId) -> int:
    shown = agent.run()
    progress = shown.members[shown.chief.device].progress
    assert shown.plan.run == run and progress is not None
    return progress.step


def is_nearly_over(agent: Agent, run: RunId) -> int:
    """Waits until less is left to do than a start takes: then nobody lost is brought back. The step then."""
    agent.until(lambda _: newest_step(agent, run) >= STEPS * 3 // 5 or None, "be nearly over", TRAINED_S)
    return newest_step(agent, run)


def await_tidied(agent: Agent, run: RunId) -> None:
    """The members' folders are deleted after the end is reported."""
    until_s = time.monotonic() + LIMIT_S
    while (agent.home.runs / run / "tasks").exists():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def ends_without(
    laptops: Laptops, run: RunId, began: int, device: str, wanted: dict[str, np.ndarray]
) -> None:
    """The run ends without anybody's help, with the weights and batches that all would have had."""
    anna = laptops.anna
    assert anna.ends(run, 2 * TRAINED_S) == Finished()
    assert newest_step(anna, run) == STEPS - 1
    summary = anna.run().summary
    assert summary is not None and began <= summary.left[device] <= STEPS and not summary.told
    assert len(set(summary.weights_sha256.values())) == 1
    got = trained(anna, run)
    assert got.keys() == wanted.keys() and got
    for name, weights in wanted.items():
        np.testing.assert_allclose(got[name], weights, rtol=0, atol=CLOSE, err_msg=name)
    assert anna.trainers() == []
    await_tidied(anna, run)


def gone(processes: list[psutil.Process]) -> bool:
    return psutil.wait_procs(processes, timeout=60)[1] == []


@pytest.mark.complete
def test_without_the_chiefs_trainer_the_other_one_leads_and_the_model_comes_to_the_starter(
    laptops: Laptops, tmp_path: Path, undisturbed: dict[str, np.ndarray]
) -> None:
    anna, ben = laptops.anna, laptops.ben
    wanted = expected(laptops, tmp_path, undisturbed)
    run = train(laptops, tmp_path / "chief", 0.05)
    for agent in (anna, ben):
        agent.trains(run)
    assert anna.run().plan.chief.device == anna.device == anna.run().plan.starter
    began = is_nearly_over(anna, run)
    (trainer,) = anna.trainers()

    trainer.kill()
    assert gone([trainer])

    for agent in (anna, ben):
        assert left(agent, run, anna.device).problem.code == "killed"
    assert newest_step(anna, run) < STEPS - 1, "it was over before anything happened"
    ends_without(laptops, run, began, anna.device, wanted)
    summary = anna.run().summary
    assert summary is not None and summary.weights_sha256.keys() == {ben.device}
    assert summary.steps == STEPS and any(path.endswith("model.keras") for path in summary.outputs)
    assert ben.ends(run) == Finished() and ben.trainers() == []
    await_tidied(ben, run)


@pytest.mark.complete
def test_without_a_chief_that_is_lost_after_the_scripts_last_line_the_next_one_saves_the_model(
    laptops: Laptops, tmp_path: Path, undisturbed: dict[str, np.ndarray]
) -> None:
    anna, ben = laptops.anna, laptops.ben
    wanted = expected(laptops, tmp_path, undisturbed)
    run = train(laptops, tmp_path / "closing", 0.0, "--closing")
    assert left(anna, run, anna.device, TRAINED_S).problem.code == "killed"
    ends_without(laptops, run, STEPS, anna.device, wanted)
    summary = anna.run().summary
    assert summary is not None and summary.weights_sha256.keys() == {ben.device}
    assert ben.ends(run) == Finished() and ben.trainers() == []


@pytest.mark.complete
@pytest.mark.skipif(faults.memory_groups() is None, reason="no control groups of memory here")
@SHARES
def test_without_a_trainer_that_the_kernel_killed_for_its_memory_the_others_go_on(
    laptops: Laptops, tmp_path: Path, undisturbed: dict[str, np.ndarray], shares: tuple[int, ...]
) -> None:
    anna, ben = laptops.anna, laptops.ben
    wanted = expected(laptops, tmp_path, undisturbed)
    with faults.little_memory(ben, 2 << 30):
        run = train(laptops, tmp_path / "killed", 0.02, "--grow", "60", shares=shares)
        problem = left(anna, run, ben.device, TRAINED_S).problem
        assert problem.code == "out-of-memory", problem
    ends_without(laptops, run, 50, ben.device, wanted)


@pytest.mark.complete
@SHARES
def test_without_a_laptop_whose_disk_is_full_the_others_go_on(
    laptops: Laptops,
    network: Network,
    tmp_path: Path,
    undisturbed: dict[str, np.ndarray],
    shares: tuple[int, ...],
) -> None:
    anna, ben = laptops.anna, laptops.ben
    wanted = expected(laptops, tmp_path, undisturbed)
    faults.small_disk(network, 1, ben.home.runs, 64)
    try:
        run = train(laptops, tmp_path / "disk", 0.02, "--fill", "60", shares=shares)
        event = left(anna, run, ben.device, TRAINED_S)
        assert event.problem.code == "disk-full", event.problem
        ends_without(laptops, run, 50, ben.device, wanted)
    finally:
        ben.end()
        network.do(1, "umount", str(ben.home.runs))
        laptops.restart(1)


@pytest.mark.complete
def test_a_loop_of_batches_goes_on_without_a_lost_laptop_and_says_that_it_stays_away(
    laptops: Laptops, tmp_path: Path
) -> None:
    """Before the start and at the loss, by name: such a loop has no checkpoints."""
    anna, ben = laptops.anna, laptops.ben
    folder = tmp_path / "batches"
    folder.mkdir()
    shutil.copy(SCRIPT.with_name("batches.py"), folder)
    spec = RunSpec(script=str(folder / "batches.py"), arguments=(str(STEPS), "0"), seed=7, solo=True)
    run = anna.train(spec)
    assert anna.ends(run, 2 * TRAINED_S) == Finished()
    wanted = saved(anna.home.runs / run / "outputs" / "trained" / "model.keras")

    spec = replace(spec, arguments=(str(STEPS), "0.1"), devices=(ben.device,), solo=False)
    run = anna.train(spec)
    for agent in (anna, ben):
        agent.trains(run)
    (trainer,) = ben.trainers()
    trainer.kill()
    assert gone([trainer])
    assert left(anna, run, ben.device).problem.code == "killed"
    assert newest_step(anna, run) < STEPS - 20, "it was over before anything happened"
    assert anna.ends(run, 2 * TRAINED_S) == Finished()

    summary = anna.run().summary
    assert summary is not None and summary.weights_sha256.keys() == {anna.device} and not summary.told
    assert newest_step(anna, run) == STEPS - 1
    progress = anna.run().members[anna.device].progress
    assert progress is not None and progress.epochs == 0
    got = saved(anna.home.runs / run / "outputs" / "trained" / "model.keras")
    assert got.keys() == wanted.keys() and got
    for name, weights in wanted.items():
        np.testing.assert_allclose(got[name], weights, rtol=0, atol=CLOSE, err_msg=name)
    lines = (anna.home.runs / run / LOGS / TANDEM_LOG).read_text().splitlines()
    (unkept,) = (number for number, line in enumerate(lines) if "train_on_batch keeps no checkpoints" in line)
    (lost,) = (number for number, line in enumerate(lines) if "ben was lost" in line or "without ben" in line)
    (away,) = (number for number, line in enumerate(lines) if "ben does not come back while" in line)
    assert unkept < lost < away, lines
