"""Scripts whose own strategy meets by TensorFlow: sealed, else refused, else accepted by every user."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from core.vocabulary import events as ev
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import RunSpec
from tests.core.run.lan import LOST, Lan, LanNode
from tests.core.run.test_runs import both, launch, wait_over


def tells(node: LanNode, other: LanNode, **versions: Any) -> None:
    """``node`` hears of another Tandem on ``other``."""
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
    for node in (anna, ben):
        node.trainers[-1].end()
    await wait_over(lan)


async def test_a_laptop_that_cannot_seal_is_named_and_the_run_refused(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    tells(anna, ben, seal="")
    with pytest.raises(TandemError) as failure:
        await anna.runs.start(replace(spec, strategy="own"))
    assert failure.value.code == "not-sealed"
    assert "on Ben: it cannot be sealed there" in failure.value.what
    assert "--open-port" in failure.value.fix
    assert not anna.trainers and not ben.trainers
    await launch(lan, spec)  # others need no seal
    assert anna.trainers[-1].train.seal is None and anna.trainers[-1].train.exchange is not None
    for node in (anna, ben):
        node.trainers[-1].end()
    await wait_over(lan)


async def test_downloads_are_forbidden_only_where_that_can_be_kept_on_every_laptop(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    own = replace(spec, strategy="own", downloads=False)
    tells(anna, ben, seal="loopback")
    with pytest.raises(TandemError) as failure:
        await anna.runs.start(own)
    assert failure.value.code == "not-kept-in"
    assert "from the network on Ben:" in failure.value.what and "Let the script download" in failure.value.fix
    assert (await anna.runs.plan(replace(own, downloads=True))).plan.exchange == "sealed"
    tells(anna, ben, seal="namespace")
    assert (await anna.runs.plan(own)).plan.exchange == "sealed"
    tells(anna, ben, seal="")
    with pytest.raises(TandemError) as failure:
        await anna.runs.start(own)
    assert failure.value.code == "not-sealed", "it is the port that matters there"


@pytest.mark.parametrize(
    "asked_for", [{"strategy": "own", "open_port": True}, {"exchange": "tensorflow"}], ids=["own", "fit"]
)
async def test_an_open_port_is_asked_about_each_time_whatever_was_allowed_before(
    lan: Lan, spec: RunSpec, asked_for: dict[str, Any]
) -> None:
    anna, ben = both(lan)
    tells(anna, ben, seal="")
    wanted = replace(spec, **asked_for)
    for _ in range(2):  # and "always" is what Ben's user has said of Anna's laptop
        await anna.runs.start(wanted)
        await lan.wait_until(lambda: ben.state.consents)
        (asked,) = ben.state.consents
        assert asked.open_port
        assert not asked.changed, "these very files and arguments were allowed, or nothing was"
        assert not ben.runs_a_trainer
        await ben.runs.answer_consent(asked.run, "always")
        await lan.wait_until(lambda: all(node.runs_a_trainer for node in (anna, ben)))
        assert all(node.trainers[-1].train.seal is None for node in (anna, ben))
        for node in (anna, ben):
            node.trainers[-1].end()
        await lan.wait_until(lambda: all(node.over and not node.runs.busy for node in (anna, ben)))


async def test_an_open_port_that_is_accepted_stays_shut_where_all_can_seal(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await launch(lan, replace(spec, strategy="own", open_port=True))
    assert all(node.trainers[-1].train.seal is not None for node in (anna, ben))
    for node in (anna, ben):
        node.trainers[-1].end()
    await wait_over(lan)
