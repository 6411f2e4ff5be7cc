"""TensorFlow's port is never open: runs that need its runtime are sealed or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.vocabulary import events as ev
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import RunSpec
from tests.core.run.lan import LOST, Lan, LanNode
from tests.core.run.test_runs import both, finish, launch


def tells(node: LanNode, other: LanNode, **versions: Any) -> None:
    """``node`` learns of another Tandem on ``other``."""
    known = node.state.devices[other.device]
    assert known.versions is not None and known.hardware is not None
    node.emit(ev.LinkDown(device=other.device, problem=LOST))
    node.emit(
        ev.LinkUp(
            device=other.device,
            name=other.name,
            address="127.0.0.1:1",
            versions=replace(known.versions, **versions),
            hardware=known.hardware,
        )
    )


async def test_every_trainer_is_sealed_with_keys_of_this_run_and_meets_on_its_own_loopback(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    await launch(lan, replace(spec, strategy="own"))
    trains = [node.trainers[-1].train for node in (anna, ben)]
    for rank, train in enumerate(trains):
        assert train.exchange is None and train.seal is not None
        assert train.seal.outside == trains[0].seal.outside  # type: ignore[union-attr]
        listed = json.loads(train.tf_config)["cluster"]
        assert (*listed["chief"], *listed["worker"]) == train.seal.inside
        assert all(place.startswith("127.77.") for place in train.seal.inside)
        assert train.seal.keys.certificates[rank] and train.seal.keys.private_key
    assert len({train.seal.keys.private_key for train in trains if train.seal}) == 2
    await finish(lan)


async def test_the_starters_sealed_script_trains_in_a_copy_and_its_outputs_come_into_the_runs_folder(
    lan: Lan, spec: RunSpec
) -> None:
    """Other members write in its folder, through TensorFlow's runtime."""
    anna, _ = both(lan)
    source = Path(spec.script).parent
    before = sorted(source.iterdir())
    await launch(lan, replace(spec, strategy="own"))
    chief = anna.trainers[-1]
    assert chief.train.walls is not None and chief.work != source
    assert chief.train.walls.folders[0] == str(chief.work) and not chief.train.agreed
    assert (chief.work / "train.py").read_bytes() == (source / "train.py").read_bytes()
    (chief.work / "result.txt").write_text("42")
    await finish(lan)
    assert sorted(source.iterdir()) == before
    assert anna.state.run is not None
    run = anna.home.runs / anna.state.run.plan.run
    assert (run / "outputs/result.txt").read_text() == "42"
    await lan.wait_until(lambda: not (run / "tasks").exists())


@pytest.mark.parametrize("seal", ["", "loopback"])
async def test_a_laptop_that_cannot_seal_is_named_and_the_run_refused(
    lan: Lan, spec: RunSpec, seal: str
) -> None:
    """``loopback``: what an older version counted as a seal."""
    anna, ben = both(lan)
    tells(anna, ben, seal=seal)
    with pytest.raises(TandemError) as failure:
        await anna.runs.start(replace(spec, strategy="own"))
    assert failure.value.code == "not-sealed"
    assert "on Ben: it cannot be sealed there" in failure.value.what
    assert "Model.fit and MirroredStrategy need no seal." in failure.value.fix
    assert not anna.trainers and not ben.trainers
    await launch(lan, spec)  # others need no seal
    assert anna.trainers[-1].train.seal is None and anna.trainers[-1].train.exchange is not None
    await finish(lan)


async def test_a_shared_run_by_tensorflows_collectives_is_refused_by_name(lan: Lan, spec: RunSpec) -> None:
    """As in an older record, or a JSON command."""
    anna, ben = both(lan)
    asked = replace(spec, exchange="tensorflow")
    with pytest.raises(TandemError) as failure:
        await anna.runs.start(asked)
    assert failure.value.code == "exchange-tensorflow"
    assert "start the script again" in failure.value.fix
    assert not anna.trainers and not ben.trainers
    assert (await anna.runs.planner.preview(replace(asked, solo=True))).plan.solo, (
        "who trains alone meets nobody"
    )
