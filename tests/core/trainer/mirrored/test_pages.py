"""Complete scripts from web pages that open a mirrored strategy, on two members."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from core.script.analysis import analyse
from tests.core.trainer.attended import SCRIPTS
from tests.core.trainer.mirrored.together import PLACE, Together, told, train_together

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


async def train_page(tmp_path: Path, name: str, replaced: str = "", by: str = "", **train: Any) -> Together:
    """With the strategy detected in the script: managed for ``fit``, a custom loop otherwise."""
    folder = Path(shutil.copytree(SCRIPTS / "pages", tmp_path / "project", dirs_exist_ok=True))
    script = folder / name
    text = script.read_text(encoding="utf-8")
    assert replaced in text
    script.write_text(text.replace(replaced, by, 1) + PLACE, encoding="utf-8")
    report = analyse(script)
    assert report.fits_in_own_strategy is not report.loops_in_mirrored_strategy
    strategy = "managed" if report.fits_in_own_strategy else "own"
    together = await train_together(tmp_path, strategy=strategy, folder=str(folder), script=name, **train)
    assert [exit.reason for exit in together.exits] == ["finished", "finished"], together.exits
    assert all(exit.shared for exit in together.exits)
    assert together.strategies() == {("MirroredStrategy", 2)}
    assert together.listens_to_members_alone()
    chief, worker = (told(trainer, "sum of weights") for trainer in together.trainers)
    assert len(chief) == 1 and chief == worker, "the same weights"
    return together


async def test_a_page_that_hands_mirrored_strategy_a_cluster_resolver(tmp_path: Path) -> None:
    together = await train_page(tmp_path, "synchronised.py")
    assert "is given a cluster resolver (Tandem has already found the members)" in together.said()
    text = [trainer.text() for trainer in together.trainers]
    assert text[0].count("Epoch 1, Loss: ") == 6
    assert "Task type: chief" in text[0] and "Task type: worker" in text[1]
    mistakes = [mistake.code for mistake in analyse(SCRIPTS / "pages" / "synchronised.py").mistakes]
    assert {"mirrored-with-resolver", "loss-not-scaled"} <= set(mistakes), "named, and wrong as it was"


@pytest.mark.parametrize("name", ["shared_variables.py", "outside_keras.py"])
async def test_a_page_with_a_loop_by_hand(tmp_path: Path, name: str) -> None:
    together = await train_page(tmp_path, name)
    losses = [
        [line for line in trainer.text().splitlines() if "oss" in line] for trainer in together.trainers
    ]
    assert losses[0] == losses[1] and len(losses[0]) >= 3, "each sees the sum over both"


async def test_the_guides_loop_of_several_workers_saves_on_the_chief_and_goes_on(tmp_path: Path) -> None:
    """Each worker saves: the chief to the path, the others to folders that they then remove."""
    place = str(tmp_path / "parted")
    first = await train_page(tmp_path, "multi_worker_loop.py", arguments=(place, "2"))
    text = [trainer.text() for trainer in first.trainers]
    assert "pipeline 0 of 2" in text[0] and "pipeline 1 of 2" in text[1]
    lines = [told(trainer, "Epoch:") for trainer in first.trainers]
    assert lines[0] == lines[1] and len(lines[0]) == 2, "each sees the loss and the accuracy of both"
    assert "is given communication options (members are added up over TLS), which is ignored" in first.said()
    assert "MultiWorkerMirroredStrategy has 2 replicas, one a member" in first.said()
    kept = Path(place, "ckpt")
    assert {path.name for path in kept.iterdir()} >= {"checkpoint", "ckpt-2.index"}
    assert not list(Path(place).rglob("workertemp_*/ckpt")), "what is not the chief's is removed"

    second = await train_page(tmp_path, "multi_worker_loop.py", arguments=(place, "3"))
    for trainer in second.trainers:
        assert told(trainer, "restored") == ["epoch 2"]
    went_on = [told(trainer, "Epoch:") for trainer in second.trainers]
    assert went_on[0] == went_on[1] and [line.partition(",")[0] for line in went_on[0]] == ["2"]


def is_shared_as_without_a_strategy(together: Together) -> None:
    assert len({exit.weights_sha256 for exit in together.exits}) == 1
    assert "Number of devices: 2" in together.trainers[0].text()
    assert "The script's fit trains on 2 members, which are the replicas of its own" in together.said()
    assert {progress.share for progress in together.trainers[0].progress()} <= {12, 16}, "half of each batch"


async def test_a_page_with_fit_is_shared_as_without_a_strategy(tmp_path: Path) -> None:
    is_shared_as_without_a_strategy(await train_page(tmp_path, "mirrored_fit.py"))


@pytest.mark.complete
async def test_a_page_with_fit_of_several_workers_is_shared_too(tmp_path: Path) -> None:
    """The older page below is the same except for its first lines."""
    is_shared_as_without_a_strategy(await train_page(tmp_path, "multi_worker_fit.py"))


async def test_an_old_page_that_chooses_how_its_workers_communicate(tmp_path: Path) -> None:
    old = (
        "strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy(\n"
        "    communication=tf.distribute.experimental.CollectiveCommunication.RING\n"
        ")"
    )
    new = "strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=cluster_resolver)"
    together = await train_page(tmp_path, "multi_worker_fit.py", new, old)
    is_shared_as_without_a_strategy(together)
    said = together.said()
    assert "is given an implementation of its communication (members are added up over TLS)" in said
    assert "which are the replicas of its own MultiWorkerMirroredStrategy" in said
    assert "resolver" not in said, "and nothing that it is not given"
