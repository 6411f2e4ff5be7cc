from __future__ import annotations

import time

import pytest

from app.cli.exit_codes import ExitCode
from app.cli.kept import kept_on, remove_on
from core.vocabulary.answers import KeptList
from core.vocabulary.commands import ListKept, RemoveKept
from core.vocabulary.errors import TandemError
from core.vocabulary.holdings import Kept, KeptProject, KeptRun
from core.vocabulary.ids import ProjectId, RunId
from tests.app.cli.scripted_node import OTHER, PROBLEM, ScriptedNode, Words, follower, linked, paired

FIRST, SECOND = ProjectId("1f" * 32), ProjectId("2e" * 32)
SOME = Kept(
    projects=(KeptProject(project=FIRST, script="digits.py", files=3, bytes=1 << 20, used_s=1.7e9),),
    runs=(
        KeptRun(
            run=RunId("20261121-191204-9f3a01bc"),
            project=SECOND,
            script="train\x1b[2J.py",
            started_s=1.7e9,
            bytes=1 << 20,
        ),
    ),
    bytes=2 << 20,
)


@pytest.fixture
def node() -> ScriptedNode:
    node = ScriptedNode()
    node.happen(paired())
    node.happen(linked())
    node.answers[ListKept] = KeptList(device=OTHER, here=Kept(), there=SOME)
    node.answers[RemoveKept] = KeptList(device=OTHER, here=Kept(), there=Kept())
    return node


async def test_what_is_kept_is_listed_for_both_sides(node: ScriptedNode) -> None:
    screen = Words()
    with follower(node) as events:
        assert await kept_on(events, screen, "other") == ExitCode.OK
    assert "Yours on other: 1 project and 1 run, 2 MB." in screen.said
    assert "Of other here: Nothing." in screen.said
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(1795288324))
    assert began in screen.said, "as its id says: the other laptop's clock is another one"
    assert "1f1f1f1f" in screen.said and "digits.py" in screen.said and "\x1b" not in screen.said


async def test_who_is_away_is_said_and_what_is_here_is_listed(node: ScriptedNode) -> None:
    node.answers[ListKept] = KeptList(device=OTHER, here=SOME, problem=PROBLEM)
    screen = Words()
    with follower(node) as events:
        assert await kept_on(events, screen, "other") == ExitCode.OK
    assert PROBLEM.what in screen.said and "Of other here: 1 project" in screen.said


async def test_everything_or_one_project_is_removed(node: ScriptedNode) -> None:
    screen = Words()
    with follower(node) as events:
        assert await remove_on(events, screen, "other", project=None, here=False) == ExitCode.OK
        assert await remove_on(events, screen, "other", project="1f1f", here=False) == ExitCode.OK
    assert [command for command in node.commands if isinstance(command, RemoveKept)] == [
        RemoveKept(device=OTHER, where="there"),
        RemoveKept(device=OTHER, where="there", project=FIRST),
    ]
    assert "Left of yours on other: Nothing." in screen.said


async def test_the_other_way_round_and_as_json(node: ScriptedNode) -> None:
    node.answers[ListKept] = KeptList(device=OTHER, here=SOME, problem=PROBLEM)
    screen = Words(json=True)
    with follower(node) as events:
        assert await remove_on(events, screen, "other", project="2e", here=True) == ExitCode.OK
        assert await kept_on(events, screen, "other") == ExitCode.OK
    assert node.commands[1] == RemoveKept(device=OTHER, where="here", project=SECOND)
    assert screen.told[0]["ok"] and screen.told[1]["kept"]["here"]["bytes"] == 2 << 20


@pytest.mark.parametrize("text", ["", "3d", "zz"])
async def test_a_project_that_is_not_kept_is_named_with_those_that_are(node: ScriptedNode, text: str) -> None:
    with follower(node) as events, pytest.raises(TandemError) as refusal:
        await remove_on(events, Words(), "other", project=text, here=False)
    assert refusal.value.code == "project-unknown" and "1f1f1f1f" in refusal.value.fix
    assert not any(isinstance(command, RemoveKept) for command in node.commands)


async def test_nothing_is_removed_from_a_laptop_that_cannot_be_asked(node: ScriptedNode) -> None:
    node.answers[ListKept] = KeptList(device=OTHER, here=SOME, problem=PROBLEM)
    with follower(node) as events:
        with pytest.raises(TandemError) as refusal:
            await remove_on(events, Words(), "other", project=None, here=False)
        assert refusal.value.problem == PROBLEM
        with pytest.raises(TandemError):
            await kept_on(events, Words(), "nobody")
