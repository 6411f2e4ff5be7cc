import pytest

from app.cli.exit_codes import ExitCode
from app.cli.forget import forget_on
from core.vocabulary.commands import Forget
from core.vocabulary.errors import TandemError
from tests.app.cli.scripted_node import OTHER, ScriptedNode, Words, follower, found, paired


async def test_a_paired_device_is_forgotten() -> None:
    node, screen = ScriptedNode(), Words()
    node.happen(paired())
    with follower(node) as events:
        assert await forget_on(events, screen, "other") == ExitCode.OK
    assert node.commands == [Forget(device=OTHER)]
    assert screen.said.startswith("other is forgotten.")


async def test_a_device_that_is_not_paired_cannot_be_forgotten() -> None:
    node = ScriptedNode()
    node.happen(found())
    with follower(node) as events, pytest.raises(TandemError, match="No device is called"):
        await forget_on(events, Words(), "other")
    assert node.commands == []
