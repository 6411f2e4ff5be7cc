"""``tandem run`` when another laptop's run goes first: who is asked, the answers, the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from app.cli import other_run
from app.cli import run as run_command
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts
from core.run import problems
from core.vocabulary import events as ev
from core.vocabulary.answers import Refused, RunAccepted
from core.vocabulary.commands import AnswerConsent, GetRun, StartRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Failed, Preparing, Stopped
from core.vocabulary.plan import RunSpec
from tests.app.cli.scripted_node import OTHER, RUN, ScriptedNode, Words, follower, paired, plan
from tests.app.cli.test_agent_talk import asked
from tests.app.cli.test_prompts import Keyboard

OWN = RunId("20261121-191204-ffffffff")
LOST = Failed(problem=problems.crossed("other"))
QUESTION = "May other run this here?"


def theirs() -> ev.RunPlanned:
    return ev.RunPlanned(plan=replace(plan(OTHER), starter=OTHER))


@dataclass
class Pressed:
    """A person has just pressed Enter on ``tandem run``."""

    node: ScriptedNode
    screen: Words
    keyboard: Keyboard
    interrupts: Interrupts
    run: asyncio.Task[int]

    def theirs_is_shown(self) -> None:
        self.node.happen(ev.ConsentSettled(run=RUN, allowed=True))
        self.node.happen(theirs())
        self.node.happen(ev.RunPhaseChanged(run=RUN, phase=Preparing()))


@asynccontextmanager
async def pressed(
    *events: ev.Event,
    refused: Problem | None = None,
    own: bool = True,
    terminal: bool = True,
    json: bool = False,
) -> AsyncIterator[Pressed]:
    """The node answers StartRun, and sends the events."""
    node, screen, keyboard, interrupts = ScriptedNode(), Words(json=json), Keyboard(), Interrupts()
    node.happen(paired())
    node.refuses(GetRun)
    node.answers[StartRun] = Refused(problem=refused) if refused else RunAccepted(run=OWN)
    mine = replace(plan(OTHER), run=OWN)
    begun: list[ev.Event] = [ev.RunPlanned(plan=mine), ev.RunPhaseChanged(run=OWN, phase=Preparing())]
    node.then[StartRun] = [*([] if refused else begun), *events]
    with follower(node, own=own) as follow:
        command = run_command.train(
            follow, screen, RunSpec(script="/a.py"), interrupts, keyboard if terminal else None
        )
        run = asyncio.create_task(command)
        yield Pressed(node, screen, keyboard, interrupts, run)
        if not run.done():
            await run


LOSES = ev.RunPhaseChanged(run=OWN, phase=LOST)


async def test_the_loser_is_asked_takes_part_and_ends_with_that_run() -> None:
    async with pressed(LOSES, asked()) as it:
        await it.screen.wait_said(QUESTION)
        assert "that run goes first" in it.screen.said
        assert "digits.py --epochs '3⟨U+001B⟩[2J'" in it.screen.said
        it.keyboard.types("once\n")
        await it.node.wait_command(AnswerConsent(run=RUN, decision="once"))
        it.theirs_is_shown()
        it.node.happen(ev.RunPhaseChanged(run=RUN, phase=Stopped(by="other")))
        assert await it.run == ExitCode.REFUSED
    assert "The run is stopped on other." in it.screen.said


async def test_json_has_one_object_for_each_of_two_runs() -> None:
    ended = ev.RunPhaseChanged(run=RUN, phase=Failed(problem=problems.no_run()))
    async with pressed(LOSES, terminal=False, json=True) as it:
        await it.node.wait_command(GetRun(run=OWN))
        it.node.happen(theirs())
        for event in (ev.RunPhaseChanged(run=RUN, phase=Preparing()), ended):
            it.node.happen(event)
        assert await it.run == ExitCode.REFUSED
    assert [(told["ok"], told["run"], told["phase"]["type"]) for told in it.screen.told] == [
        (False, OWN, "failed"),
        (False, RUN, "failed"),
    ]


@pytest.mark.parametrize(("typed", "answer"), [("no\n", "no"), ("", "no")])
async def test_a_no_and_an_ended_input_are_told_the_other_laptop(typed: str, answer: str) -> None:
    async with pressed(LOSES, asked()) as it:
        await it.screen.wait_said(QUESTION)
        it.keyboard.types(typed)
        assert await it.run == ExitCode.REFUSED
    assert it.node.commands[-1] == AnswerConsent(run=RUN, decision="no")


async def test_ctrl_c_at_the_question_is_a_no() -> None:
    async with pressed(LOSES, asked()) as it:
        await it.screen.wait_said(QUESTION)
        it.interrupts.interrupt()
        assert await it.run == ExitCode.INTERRUPTED
    assert it.node.commands[-1] == AnswerConsent(run=RUN, decision="no")


async def test_ctrl_c_while_the_request_is_waited_for_ends_it() -> None:
    async with pressed(LOSES) as it:
        await it.screen.wait_said("that run goes first")
        it.interrupts.interrupt()
        assert await it.run == ExitCode.INTERRUPTED


async def test_without_a_terminal_nobody_is_asked_and_the_answer_is_no() -> None:
    async with pressed(LOSES, asked(), terminal=False) as it:
        assert await it.run == ExitCode.REFUSED
    assert it.node.commands[-1] == AnswerConsent(run=RUN, decision="no")
    assert "nobody can answer here" in it.screen.said


async def test_a_request_that_is_withdrawn_is_not_asked_about_any_more() -> None:
    async with pressed(LOSES, asked()) as it:
        await it.screen.wait_said(QUESTION)
        it.node.happen(ev.ConsentSettled(run=RUN, allowed=False))
        assert await it.run == ExitCode.REFUSED
    assert "other withdrew its request." in it.screen.said


async def test_a_request_that_never_comes_is_waited_for_no_longer_than_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(other_run.REQUESTS_S, "train-crossed", 0.01)
    async with pressed(LOSES) as it:
        assert await it.run == ExitCode.REFUSED
    assert not any(isinstance(command, AnswerConsent) for command in it.node.commands)


@pytest.mark.parametrize(
    "refused",
    [
        problems.asked_first("other"),
        problems.run_under_way(),
        Problem(code="would-be-alone", what="No other laptop can take part in this run.", fix="--solo."),
        problems.busy(),
    ],
    ids=lambda problem: problem.code,
)
async def test_who_pressed_a_moment_later_is_asked_as_well(refused: Problem) -> None:
    async with pressed(asked(), refused=refused) as it:
        await it.screen.wait_said(QUESTION)
        assert refused.what in it.screen.said
        it.keyboard.types("always\n")
        await it.node.wait_command(AnswerConsent(run=RUN, decision="always"))
        it.theirs_is_shown()
        it.node.happen(ev.RunPhaseChanged(run=RUN, phase=Failed(problem=refused)))
        assert await it.run == ExitCode.REFUSED
    assert "alone?" not in it.screen.said


async def test_a_laptop_that_was_allowed_before_is_not_asked_about() -> None:
    async with pressed(theirs(), refused=problems.run_under_way()) as it:
        await it.screen.wait_said("has a run under way")
        it.node.happen(ev.RunPhaseChanged(run=RUN, phase=Preparing()))
        it.node.happen(ev.RunPhaseChanged(run=RUN, phase=Stopped(by="other")))
        assert await it.run == ExitCode.REFUSED
    assert QUESTION not in it.screen.said and "The run is stopped on other." in it.screen.said


async def test_the_command_does_not_ask_at_a_node_that_others_use() -> None:
    async with pressed(LOSES, asked(), own=False) as it:
        assert await it.run == ExitCode.REFUSED
    async with pressed(asked(), refused=problems.asked_first("other"), own=False) as it:
        with pytest.raises(TandemError, match="goes first"):
            await it.run
    assert QUESTION not in it.screen.said


async def test_a_run_that_failed_for_another_reason_waits_for_no_request() -> None:
    async with pressed(ev.RunPhaseChanged(run=OWN, phase=Failed(problem=problems.refused_by_user()))) as it:
        assert await it.run == ExitCode.REFUSED
    async with pressed(refused=problems.no_run()) as it:
        with pytest.raises(TandemError, match="No run"):
            await it.run
