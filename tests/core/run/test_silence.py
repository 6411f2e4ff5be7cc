"""The system ends a node that trains, over links in memory."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.run.context import RunLimits
from core.vocabulary.plan import RunSpec
from tests.core.run.lan import Lan
from tests.core.run.test_returns import train


@pytest.mark.parametrize("limits", [RunLimits(silent_s=0.05)], ids=["hasty"])
@pytest.mark.parametrize(("stubborn", "forces"), [(False, [0]), (True, [0, 2])])
async def test_a_trainer_alone_may_end_its_step_and_is_killed_if_it_does_not_in_time(
    lan: Lan, spec: RunSpec, stubborn: bool, forces: list[int]
) -> None:
    anna = lan.nodes["Anna"]
    await train(lan, replace(spec, solo=True), anna)
    trainer = anna.trainers[-1]
    trainer.stubborn = stubborn
    await lan.wait_until(lambda: anna.runs.returns._has_checkpoint())
    await anna.runs.close(leaves=True)
    del lan.nodes["Anna"]
    assert trainer.forces == forces and trainer.over
