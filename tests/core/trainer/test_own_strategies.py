"""Scripts with their own strategy: the shipped examples, in real clusters on loopback."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.vocabulary import trainer_messages
from tests.core.trainer.attended import Attended, cluster, members

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
EXAMPLES = Path(__file__).parents[3] / "resources/examples/strategies"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(shutil.copytree(EXAMPLES, tmp_path / "project"))


async def test_a_loop_by_hand_is_interrupted_by_stop(tmp_path: Path, folder: str) -> None:
    configs = cluster(chief=1, worker=1)
    arguments = ("--epochs", "100000")
    trainers = members(
        tmp_path, configs, strategy="own", folder=folder, script="multi_worker_loop.py", arguments=arguments
    )
    chief = trainers["chief:0"]
    await chief.wait(lambda: "epoch 2/" in chief.text())
    for trainer in trainers.values():
        trainer.stop()
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    assert [exit.reason for exit in exits] == ["stopped", "stopped"], exits


async def test_alone_a_mirrored_script_reports_its_fit(tmp_path: Path, folder: str) -> None:
    arguments = ("--epochs", "2")
    trainer = Attended(
        tmp_path / "log",
        strategy="own",
        folder=folder,
        script="mirrored.py",
        arguments=arguments,
        keep=str(tmp_path / "kept"),
    )
    assert (await trainer.exit()).reason == "finished"
    assert (tmp_path / "kept" / "model.keras").is_file()
    assert [epoch.epoch for epoch in trainer.epochs()] == [0, 1]
    assert trainer.progress()[-1].step == trainer.epochs()[-1].step


async def test_a_script_that_shares_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("print('I train nothing')\n")
    configs = cluster(chief=1, worker=1)
    trainers = members(tmp_path, configs, strategy="own", folder=str(tmp_path), script="alone.py")
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    assert [(exit.reason, exit.shared) for exit in exits] == [("finished", False)] * 2


@pytest.mark.parametrize("strategy", ["own", "managed"])
async def test_a_member_that_is_neither_sealed_nor_has_keys_starts_no_runtime(
    tmp_path: Path, folder: str, strategy: str
) -> None:
    configs = cluster(chief=1, worker=1)
    order: dict[str, Any] = {
        "strategy": strategy,
        "folder": folder,
        "script": "multi_worker_loop.py",
        "shares": (1, 1),
    }
    trainer = Attended(tmp_path / "log", tf_config=configs["chief:0"], **order)
    exit = await trainer.exit()
    assert exit.problem is not None
    assert (exit.reason, exit.problem.code) == ("killed", "not-sealed")
    assert not trainer.of(trainer_messages.Connecting)


async def test_fit_in_the_scripts_own_multi_worker_strategy_trains_as_one_process_would(
    tmp_path: Path,
) -> None:
    kept, configs = tmp_path / "kept", cluster(chief=1, worker=1)
    trainers = members(tmp_path, configs, keep=str(kept), script="own_fit.py")
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    chief, worker = trainers.values()
    assert [exit.reason for exit in exits] == ["finished", "finished"], (exits, chief.text("stderr"))
    assert all(exit.shared for exit in exits)
    assert [path.name for path in kept.iterdir()] == ["model.keras"]
    assert exits[0].weights_sha256 == exits[1].weights_sha256 != ""
    assert chief.of(trainer_messages.Met) == [trainer_messages.Met(strategy="MirroredStrategy", replicas=2)]
    assert "replicas 2 ['CPU:0']" in chief.text()
    assert chief.text() == worker.text()
    assert {progress.share for progress in chief.progress()} <= {3, 4, 8, 12}, "half of each batch's rows"
    said = " ".join(report.words for report in chief.of(trainer_messages.Said))
    assert "a batch counts all members' rows" in said
    assert "is read whole" in said

    alone = Attended(tmp_path / "alone", strategy="own", script="own_fit.py", arguments=("--alone",))
    assert (await alone.exit()).reason == "finished"
    together = [epoch.logs for epoch in chief.epochs()]
    assert together == [pytest.approx(epoch.logs, abs=1e-5) for epoch in alone.epochs()]
    assert len(together) == 4


async def test_fit_in_the_scripts_own_strategy_stops_at_one_step_on_all_members(tmp_path: Path) -> None:
    configs = cluster(chief=1, worker=1)
    slowly = ("--epochs", "100000", "--slow", "0.01", "--own-class")
    trainers = members(tmp_path, configs, script="own_fit.py", arguments=slowly)
    chief = trainers["chief:0"]
    await chief.wait(lambda: len(chief.progress()) > 2)
    for trainer in trainers.values():
        trainer.stop()
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    assert [exit.reason for exit in exits] == ["stopped", "stopped"], exits
    assert exits[0].weights_sha256 == exits[1].weights_sha256 != ""
    assert [met.strategy for met in chief.of(trainer_messages.Met)] == ["MirroredStrategy"]
    said = " ".join(report.words for report in chief.of(trainer_messages.Said))
    assert "which are the replicas of its own Mine" in said
