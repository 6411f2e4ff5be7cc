from __future__ import annotations

import pytest

from app.cli.clear import clear_on
from app.cli.exit_codes import ExitCode
from core.vocabulary.answers import Cleared, Refused
from core.vocabulary.commands import Clear
from core.vocabulary.errors import TandemError
from tests.app.cli.scripted_node import PROBLEM, ScriptedNode, Words, follower


async def test_what_others_left_is_cleared_and_how_much_it_was_is_said() -> None:
    node, said, told = ScriptedNode(), Words(), Words(json=True)
    node.answers[Clear] = Cleared(freed_bytes=2_000_000)
    with follower(node) as events:
        assert await clear_on(events, said) == ExitCode.OK
        assert await clear_on(events, told) == ExitCode.OK
    assert said.said.strip() == "Freed 2 MB." and told.told[0]["freed_bytes"] == 2_000_000


async def test_a_refusal_is_said() -> None:
    node = ScriptedNode()
    node.answers[Clear] = Refused(problem=PROBLEM)
    with follower(node) as events, pytest.raises(TandemError) as refusal:
        await clear_on(events, Words())
    assert refusal.value.problem == PROBLEM
