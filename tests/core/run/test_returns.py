"""Laptops return to a run, over links in memory: it stops at a step boundary and continues with them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.run.context import RunLimits
from core.run.continuation import MOST_PAUSE_S, STEADY_S, is_in_fit, is_worth, pause_s
from core.run.invitation import WORK_S, Invitation
from core.run.readiness import MOST_ASKED
from core.run.returns import BUSY_S, KEPT_S, SPARE_S
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder
from core.vocabulary.errors import CUT_OFF, GOES_BACK, Problem, TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.limits import CONSENT_S, RECEIVE_S, SLACK_S
from core.vocabulary.peer_messages import FilesWanted, LoadAsked, LoadTold, Prepare
from core.vocabulary.phases import Exit, Finished, Stopped, Training
from core.vocabulary.plan import RunSpec
from core.vocabulary.progress import Progress
from core.vocabulary.trainer_messages import Kept, Progressed
from tests.core.run.lan import CLOSED, LOST, Lan, LanNode, keep
from tests.core.run.world import failing

QUICK = RunLimits(look_s=0.05, idle_s=5.0, stand_in_s=5.0, load_ahead_s=1.0)
SOON = dataclasses.replace(QUICK, idle_s=0.3, stand_in_s=0.3)
"""Short limits, for tests that wait until they are over."""
STEP = Progress(at_s=1.0, epoch=0, epochs=9, step=40, batch=40, steps_in_epoch=100, steps_s=10.0)


@pytest.fixture
def limits() -> RunLimits:
    return QUICK


@pytest.fixture
async def three(tmp_path: Path, limits: RunLimits) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), limits, tells_busy=True) as lan:
        yield lan


def nodes(lan: Lan) -> tuple[LanNode, LanNode, LanNode]:
    return lan.nodes["Anna"], lan.nodes["Ben"], lan.nodes["Cleo"]


def run_of(node: LanNode) -> RunId:
    assert node.state.run is not None
    return node.state.run.plan.run


def members(node: LanNode) -> set[str]:
    assert node.state.run is not None
    return {member.name for member in node.state.run.plan.members}


async def to_training(lan: Lan, *them: LanNode, steps: Progress = STEP) -> None:
    await lan.wait_until(lambda: all(node.runs_a_trainer for node in them))
    for node in them:
        node.trainers[-1].meet()
        node.trainers[-1].say(Progressed(progress=steps))
    await lan.wait_until(lambda: all(isinstance(node.phase, Training) for node in them))


async def train(
    lan: Lan, spec: RunSpec, *them: LanNode, checkpoint: bool = True, steps: Progress = STEP
) -> RunId:
    run = await them[0].runs.start(replace(spec, devices=tuple(node.device for node in them[1:])))
    await to_training(lan, *them, steps=steps)
    if checkpoint:
        for node in them:
            keep(node.home.runs / run / run_folder.CHECKPOINTS, 40)
            node.trainers[-1].say(Kept())
    return run


def newest(node: LanNode) -> int:
    """The newest step on this laptop."""
    run = node.state.run
    progress = run.members[node.device].progress if run is not None else None
    return progress.step if progress is not None else -1


def left(node: LanNode, gone: LanNode) -> bool:
    run = node.state.run
    return run is not None and gone.device in run.members and run.members[gone.device].left is not None


async def stop(lan: Lan, *them: LanNode) -> None:
    them[0].runs.stop()
    await lan.wait_until(lambda: not any(node.runs.busy for node in them))


def said(node: LanNode) -> str:
    return "".join(event.lines.text for event in node.events if isinstance(event, ev.MemberLogged))


def has_timer_in(lan: Lan, seconds: float) -> bool:
    return any(due.at_s == lan.clock.now_s + seconds for due in lan.clock.waiting)


def tasks_that_look() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name() == "look who is back"}


def is_idle_for(node: LanNode, other: LanNode) -> bool:
    known = node.state.devices[other.device]
    return known.linked and not known.busy


def has_looked(node: LanNode) -> bool:
    """Whether it has handled all news, and invited nobody."""
    return not tasks_that_look() and node.runs.returns.invitation is None


def joined(node: LanNode) -> list[tuple[str, bool]]:
    """Which laptops received files to join a run, as reported here, and whether they still do."""
    names = {each.device: each.name for each in node.lan.nodes.values()}
    told = [event for event in node.events if isinstance(event, ev.JoinProgressed)]
    return list(dict.fromkeys((names[event.device], event.total > 0) for event in told))


def heard(node: LanNode) -> list[ms.Message]:
    """The messages that it receives from now on."""
    messages: list[ms.Message] = []
    receive = node.runs.on_message
    node.runs.on_message = lambda device, message: (messages.append(message), receive(device, message))  # type: ignore
    return messages


async def goes_on_with(lan: Lan, before: RunId, *them: LanNode) -> RunId:
    """All of them train in a run that resumes ``before``."""
    await lan.wait_until(lambda: all(node.state.run and run_of(node) != before for node in them))
    await to_training(lan, *them)
    plan = them[0].state.run.plan if them[0].state.run else None
    assert plan is not None and plan.resume is not None
    assert plan.resume.run == before and plan.resume.moment.step == 40
    assert members(them[0]) == {node.name for node in them}
    return plan.run


async def finish(lan: Lan, *them: LanNode) -> None:
    for node in them:
        node.trainers[-1].end()
    await lan.wait_until(lambda: all(node.over for node in them))
    assert all(isinstance(node.phase, Finished) for node in them)


def outcomes(node: LanNode) -> list[type]:
    return [type(phase) for phase in node.last_phases()]


async def test_a_killed_trainers_laptop_is_back_with_the_next_start(three: Lan, spec: RunSpec) -> None:
    anna, ben, _ = nodes(three)
    run = await train(three, spec, anna, ben)
    asked = len([event for event in ben.events if isinstance(event, ev.ConsentAsked)])
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(anna, ben))
    again = await goes_on_with(three, run, anna, ben)
    for node in (anna, ben):
        (stopped,) = node.last_phases()
        assert stopped == Stopped(by="Anna", goes_on=True, back=("Ben",))
        assert node.trainers[0].forces[:1] in ([0], []), "at the end of a step"
        assert node.state.run is not None and node.state.run.plan.resume is not None
        assert node.state.run.plan.resume.back == ("Ben",)
        assert node.trainers[-1].train.shares == (3, 1), "the checkpoint's"
    assert len([event for event in ben.events if isinstance(event, ev.ConsentAsked)]) == asked
    await finish(three, anna, ben)
    entry = (await anna.runs.history.find(again)).entry
    assert entry.resumed == run and isinstance(entry.phase, Finished)


async def test_the_run_stops_once_the_next_trainers_have_loaded(
    three: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben, cleo = nodes(three)
    loading, loaded = set[str](), asyncio.Event()
    for node in (anna, ben):

        async def load(limit_s: float, name: str = node.name) -> bool:
            loading.add(name)
            await loaded.wait()
            return True

        monkeypatch.setattr(node.runs.warm, "wait_loaded", load)
    run = await train(three, spec, anna, ben)
    heard = list[ms.Message]()
    monkeypatch.setattr(cleo.runs, "on_message", lambda device, message: heard.append(message))
    ben.runs.readiness.on_message(cleo.device, LoadAsked(question=1))
    await three.wait_until(lambda: LoadTold(question=1, loaded=False) in heard)
    assert not loading, "only its starter has another one loaded beside the trainer of a run"
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: loading == {"Anna", "Ben"})
    anna.trainers[-1].say(Progressed(progress=replace(STEP, step=41, batch=41)))
    await three.wait_until(lambda: newest(anna) == 41)
    assert run_of(anna) == run and isinstance(anna.phase, Training), "it trains on"
    loaded.set()
    await goes_on_with(three, run, anna, ben)
    await stop(three, anna, ben)


async def test_a_laptop_that_is_asked_again_while_it_loads_answers_both_questions(
    three: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben, _ = nodes(three)
    loaded, told = asyncio.Event(), list[LoadTold]()

    async def load(limit_s: float) -> bool:
        await loaded.wait()
        return True

    monkeypatch.setattr(ben.runs.warm, "wait_loaded", load)
    await train(three, spec, anna, ben)
    monkeypatch.setattr(
        ben.runs.readiness._context.links, "send", lambda device, message: told.append(message)
    )
    for question in range(MOST_ASKED + 1):
        ben.runs.readiness.on_message(anna.device, LoadAsked(question=question))
    loaded.set()
    await three.wait_until(lambda: told)
    assert told == [LoadTold(question=question, loaded=True) for question in range(MOST_ASKED)], (
        "no flood is kept"
    )
    monkeypatch.undo()
    await stop(three, anna, ben)


async def test_each_laptop_loads_its_next_trainer_while_nobody_is_lost_if_enough_is_left_to_do(
    three: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben, _ = nodes(three)
    loading = list[str]()
    for node in (anna, ben):

        async def load(limit_s: float, name: str = node.name) -> bool:
            loading.append(name)
            return True

        monkeypatch.setattr(node.runs.warm, "wait_loaded", load)
    run = await train(three, spec, anna, ben)
    await three.wait_until(
        lambda: anna.runs._participant is not None and anna.runs._participant.state.has_checkpoint
    )
    assert not is_worth(STEP, SPARE_S)
    anna.trainers[-1].say(Progressed(progress=replace(STEP, step=41, batch=41)))
    await three.wait_until(lambda: newest(anna) == 41)
    assert not loading, "it is over before anybody would be back"
    for step in (42, 43):
        anna.trainers[-1].say(Progressed(progress=replace(STEP, step=step, batch=step, epochs=90)))
    await three.wait_until(lambda: newest(anna) == 43 and sorted(loading) == ["Anna", "Ben"])
    ben.trainers[-1].end(failing("killed"))
    await goes_on_with(three, run, anna, ben)
    assert sorted(loading) == ["Anna", "Anna", "Ben", "Ben"], "asked again before the run stops"
    await stop(three, anna, ben)


async def test_a_laptop_that_trains_alone_loads_no_second_trainer(
    three: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, _, _ = nodes(three)
    loading = list[float]()

    async def load(limit_s: float) -> bool:
        loading.append(limit_s)
        return True

    monkeypatch.setattr(anna.runs.warm, "wait_loaded", load)
    await train(three, replace(spec, solo=True), anna)
    await three.wait_until(
        lambda: anna.runs._participant is not None and anna.runs._participant.state.has_checkpoint
    )
    anna.trainers[-1].say(Progressed(progress=replace(STEP, step=41, batch=41, epochs=90)))
    await three.wait_until(lambda: newest(anna) == 41)
    assert not loading
    await stop(three, anna)


async def test_a_training_that_goes_back_is_resumed_at_once_with_the_same_laptops(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, _ = nodes(three)
    run = await train(three, spec, anna, ben)
    why = Problem(code=GOES_BACK, what="The training goes back to step 40.")
    for node in (ben, anna):  # a worker may be the first to end
        node.trainers[-1].end(Exit(reason="stopped", problem=why))
    again = await goes_on_with(three, run, anna, ben)
    for node in (anna, ben):
        assert node.last_phases() == [Stopped(by="Anna", goes_on=True)]
    assert why.what in said(anna) and not any(isinstance(event, ev.MemberLeft) for event in anna.events)
    await finish(three, anna, ben)
    assert (await anna.runs.history.find(again)).entry.resumed == run


async def test_the_starters_own_killed_trainer_is_back_by_itself(three: Lan, spec: RunSpec) -> None:
    anna, ben, _ = nodes(three)
    run = await train(three, spec, anna, ben)
    anna.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(ben, anna))
    await goes_on_with(three, run, anna, ben)
    assert anna.last_phases() == [Stopped(by="Anna", goes_on=True, back=("Anna",))]
    await finish(three, anna, ben)


async def test_a_laptop_whose_link_was_lost_is_asked_first_and_then_back(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    three.lose(anna, ben, LOST)
    await three.wait_until(lambda: left(anna, ben) and not ben.runs_a_trainer)
    assert isinstance(anna.phase, Training)
    three.mend(anna, ben)
    await goes_on_with(three, run, anna, ben, cleo)
    assert outcomes(anna) == [Stopped] and outcomes(cleo) == [Stopped]
    assert ben.last_phases()[0] == Stopped(by="Ben", goes_on=True), "it would have, had Cleo not gone on"
    await finish(three, anna, ben, cleo)


async def test_no_laptop_is_asked_to_join_a_run_that_has_ended(
    three: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben, _ = nodes(three)
    planned, go_on = asyncio.Event(), asyncio.Event()
    invite = anna.runs.planner.invite

    async def slow(*given: Any) -> Any:
        planned.set()
        await go_on.wait()
        return await invite(*given)

    monkeypatch.setattr(anna.runs.planner, "invite", slow)
    await train(three, spec, anna, ben)
    three.lose(anna, ben, LOST)
    await three.wait_until(lambda: left(anna, ben))
    three.mend(anna, ben)
    await planned.wait()
    await stop(three, anna)
    messages = heard(ben)
    go_on.set()
    await three.wait_until(lambda: has_looked(anna))
    assert not [each for each in messages if isinstance(each, Prepare)]


async def test_the_question_is_asked_while_the_others_train(three: Lan, spec: RunSpec) -> None:
    """Only a laptop that already consented to exactly the same is not asked again."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    cleo.ask_before_running(anna)
    anna.runs.returns.add(run, (cleo.device,))
    await three.wait_until(lambda: cleo.state.consents)
    assert isinstance(anna.phase, Training) and not anna.trainers[-1].forces
    asked = cleo.state.consents[0]
    assert asked.run != run and asked.script == "train.py"
    await cleo.runs.answer_consent(asked.run, "once")
    again = await goes_on_with(three, run, anna, ben, cleo)
    assert joined(anna) == joined(cleo) == [("Cleo", True), ("Cleo", False)]
    assert len([event for event in cleo.events if isinstance(event, ev.ConsentAsked)]) == 1
    await three.wait_until(lambda: not (cleo.home.runs / asked.run).exists())
    assert [entry.run for entry in (await cleo.runs.history.newest(5)).runs] == [again]
    await finish(three, anna, ben, cleo)


async def test_a_laptop_whose_user_says_no_stays_out_and_nobody_waits(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    cleo.ask_before_running(anna)
    anna.runs.returns.add(run, (cleo.device,))
    await three.wait_until(lambda: cleo.state.consents)
    await cleo.runs.answer_consent(cleo.state.consents[0].run, "no")
    await three.wait_until(
        lambda: any(
            "Cleo does not take part" in event.lines.text
            for event in anna.events
            if isinstance(event, ev.MemberLogged)
        )
    )
    assert run_of(anna) == run and not anna.trainers[-1].forces
    await finish(three, anna, ben)


@pytest.mark.parametrize("says", [0, 1, 20])
async def test_invariant_a_laptop_that_never_answers_keeps_no_other_from_joining(
    three: Lan, spec: RunSpec, says: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that keeps reporting that it receives files."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    heard: list[object] = []
    monkeypatch.setattr(cleo.runs, "on_message", lambda device, message: heard.append(message))
    anna.runs.returns.add(run, (cleo.device,))
    await three.wait_until(lambda: any(isinstance(message, Prepare) for message in heard))
    invited = anna.runs.returns.invitation
    assert invited is not None
    for _ in range(says):
        invited.on_message(cleo.device, FilesWanted(run=invited.run, total_bytes=1))
    assert len(invited._offers) == min(says, 1)
    three.clock.advance(CONSENT_S + 3 * SLACK_S)
    await three.wait_until(lambda: "Cleo does not take part: it did not answer in time" in said(anna))
    withdrawn = anna.runs.returns
    assert withdrawn.invitation is None and run_of(anna) == run
    await finish(three, anna, ben)


async def unanswered(three: Lan, run: RunId) -> Invitation:
    """Anna's invitation to Cleo, whose laptop ignores it."""
    anna, _, cleo = nodes(three)
    cleo.runs.on_message = lambda device, message: None  # type: ignore[method-assign]
    anna.runs.returns.add(run, (cleo.device,))
    await three.wait_until(lambda: anna.runs.returns.invitation)
    invited = anna.runs.returns.invitation
    assert invited is not None
    return invited


async def test_a_laptop_that_reads_its_files_for_long_is_not_taken_for_silent(
    three: Lan, spec: RunSpec
) -> None:
    """But one that says so without end is."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    invited = await unanswered(three, run)
    told = ev.MemberPhaseChanged(
        run=invited.run, device=cleo.device, phase="receiving", words="checking files", done=1, total=2
    )
    waited_s = 0.0
    while waited_s < 2 * CONSENT_S:
        three.clock.advance(RECEIVE_S)
        waited_s += RECEIVE_S
        invited.on_message(cleo.device, ms.EventTold(event=told))
    assert anna.runs.returns.invitation is invited
    invited.on_message(cleo.device, FilesWanted(run=invited.run, total_bytes=1))
    while waited_s < CONSENT_S + WORK_S + 3 * SLACK_S:
        three.clock.advance(RECEIVE_S)
        waited_s += RECEIVE_S
        invited.on_message(cleo.device, ms.EventTold(event=told))
    await three.wait_until(lambda: "Cleo does not take part: it did not answer in time" in said(anna))
    await finish(three, anna, ben)


async def test_a_run_without_checkpoints_is_left_alone_and_the_user_is_told_once(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, _ = nodes(three)
    run = await train(three, spec, anna, ben, checkpoint=False)
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(anna, ben) and has_timer_in(three, KEPT_S))
    for _ in range(3):
        three.clock.advance(KEPT_S)
        anna.trainers[-1].say(Progressed(progress=STEP))
        await three.wait_until(lambda: not tasks_that_look())
        assert not has_timer_in(three, KEPT_S)
    assert said(anna).count("Ben could come back, but no checkpoint is kept") == 1
    assert run_of(anna) == run and not anna.trainers[-1].forces
    anna.trainers[-1].end()
    await three.wait_until(lambda: anna.over)
    assert isinstance(anna.phase, Finished)


async def test_the_first_checkpoint_brings_back_a_laptop_that_waits_for_it(three: Lan, spec: RunSpec) -> None:
    anna, ben, _ = nodes(three)
    run = await train(three, spec, anna, ben, checkpoint=False)
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(anna, ben) and has_timer_in(three, KEPT_S))
    for node in (anna, ben):
        keep(node.home.runs / run / run_folder.CHECKPOINTS, 40)
    anna.trainers[-1].say(Kept())
    anna.trainers[-1].say(Progressed(progress=STEP))
    await goes_on_with(three, run, anna, ben)
    assert "no checkpoint" not in said(anna)
    await finish(three, anna, ben)


@pytest.mark.parametrize("limits", [SOON])
async def test_no_timer_runs_while_nothing_happens(three: Lan, spec: RunSpec) -> None:
    """Nothing polls for an absent laptop: its link reports when it is back."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    before = {due.number for due in three.clock.waiting}
    looked = tasks_that_look()
    three.lose(anna, ben, LOST)
    await three.wait_until(lambda: left(anna, ben) and not ben.runs.busy and not tasks_that_look())
    assert not looked and {due.number for due in three.clock.waiting} <= before
    three.clock.advance(3600.0)
    assert not tasks_that_look()
    three.mend(anna, ben)
    await goes_on_with(three, run, anna, ben, cleo)
    await finish(three, anna, ben, cleo)


async def test_a_laptop_that_was_away_for_too_long_is_back_once_its_trainer_has_ended(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    three.cut(anna, ben)
    plan = anna.state.run.plan if anna.state.run else None
    assert plan is not None
    three.clock.advance(plan.away_s + 60.0)
    await three.wait_until(lambda: left(anna, ben))
    three.mend(anna, ben)
    await goes_on_with(three, run, anna, ben, cleo)
    await finish(three, anna, ben, cleo)


async def test_who_is_lost_again_soon_stays_out_longer(three: Lan, spec: RunSpec) -> None:
    anna, ben, _ = nodes(three)
    run = await train(three, spec, anna, ben)
    ben.trainers[-1].end(failing("killed"))
    run = await goes_on_with(three, run, anna, ben)
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(anna, ben))
    three.clock.advance(pause_s(2) - 1.0)
    await three.wait_until(lambda: has_looked(anna))
    assert run_of(anna) == run and not anna.trainers[-1].forces
    three.clock.advance(1.0)
    run = await goes_on_with(three, run, anna, ben)
    three.clock.advance(STEADY_S)
    ben.trainers[-1].end(failing("killed"))
    await goes_on_with(three, run, anna, ben)
    await finish(three, anna, ben)


async def test_invariant_a_returning_laptop_brings_no_state_of_its_own(three: Lan, spec: RunSpec) -> None:
    """The others stopped at step 40; Ben claims to have done more."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    keep(ben.home.runs / run / run_folder.CHECKPOINTS, 60)
    ben.trainers[-1].end(failing("killed"))
    await goes_on_with(three, run, anna, ben, cleo)
    await finish(three, anna, ben, cleo)


async def test_invariant_a_laptop_for_which_the_run_stopped_in_vain_stays_out_for_a_while(
    tmp_path: Path, spec: RunSpec
) -> None:
    """Otherwise a laptop that is always ready, and never joins, keeps the others from training."""
    async with Lan(
        tmp_path, ("Anna", "Ben", "Cleo"), dataclasses.replace(QUICK, idle_s=0.05), tells_busy=True
    ) as three:
        anna, ben, cleo = nodes(three)
        run = await train(three, spec, anna, ben, cleo)
        anna.trainers[-1].stubborn = True
        ben.trainers[-1].end(failing("killed"))
        await three.wait_until(lambda: anna.trainers[-1].forces == [0])
        three.lose(anna, ben, LOST)
        anna.trainers[-1].end(failing("stopped"))
        await three.wait_until(lambda: not ben.runs.busy and run_of(anna) != run and run_of(cleo) != run)
        await to_training(three, anna, cleo)
        alone = run_of(anna)
        assert members(anna) == {"Anna", "Cleo"}
        three.mend(anna, ben)
        three.clock.advance(pause_s(3) - 1.0)
        await three.wait_until(lambda: is_idle_for(anna, ben) and has_looked(anna))
        assert run_of(anna) == alone and not anna.trainers[-1].forces
        three.clock.advance(1.0)
        await three.wait_until(lambda: run_of(anna) != alone)
        await to_training(three, anna, ben, cleo)
        assert members(anna) == {"Anna", "Ben", "Cleo"}
        await finish(three, anna, ben, cleo)


@pytest.mark.parametrize("limits", [SOON])
async def test_the_others_go_on_as_before_if_the_laptop_is_lost_before_the_first_step(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    three.lose(anna, ben, LOST)
    await three.wait_until(lambda: left(anna, ben) and not ben.runs.busy)
    three.mend(anna, ben)
    await three.wait_until(lambda: run_of(cleo) != run and all(node.runs_a_trainer for node in (anna, cleo)))
    tried = run_of(anna)
    three.lose(anna, ben, LOST)
    await three.wait_until(lambda: run_of(anna) != tried and run_of(cleo) != tried)
    assert outcomes(anna) == [Stopped, Stopped], "nobody is told of a failure"
    await to_training(three, anna, cleo)
    assert members(anna) == {"Anna", "Cleo"}
    plan = anna.state.run.plan if anna.state.run else None
    assert plan is not None and plan.resume is not None and plan.resume.run == run
    await finish(three, anna, cleo)


@pytest.mark.parametrize("limits", [SOON], ids=["soon"])
async def test_who_is_lost_while_the_run_stops_for_another_one_is_left_out_and_comes_back_too(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    anna.trainers[-1].stubborn = True
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: anna.trainers[-1].forces == [0])
    three.lose(anna, cleo, LOST)
    if not anna.trainers[-1].over:
        anna.trainers[-1].end(failing("stopped"))
    again = await goes_on_with(three, run, anna, ben)
    assert not anna.notices
    three.mend(anna, cleo)
    await goes_on_with(three, again, anna, ben, cleo)
    await finish(three, anna, ben, cleo)


async def test_stop_ends_the_run_even_while_it_stops_to_go_on(three: Lan, spec: RunSpec) -> None:
    anna, ben, _ = nodes(three)
    await train(three, spec, anna, ben)
    anna.trainers[-1].stubborn = True
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: anna.trainers[-1].forces == [0])
    anna.runs.stop()
    assert anna.trainers[-1].forces == [0], "it ends at the step's end, as at any first Stop"
    anna.trainers[-1].end(failing("stopped"))
    await three.wait_until(lambda: anna.over and ben.over)
    assert anna.phase == Stopped(by="Anna") and not anna.runs.busy


async def test_only_the_starter_adds_laptops(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    with pytest.raises(TandemError, match="not started on this laptop"):
        ben.runs.returns.add(run, (cleo.device,))
    three.lose(anna, cleo, LOST)
    with pytest.raises(TandemError, match="not connected"):
        anna.runs.returns.add(run, (cleo.device,))
    await finish(three, anna, ben)


def test_pauses_grow_and_end_somewhere() -> None:
    assert [pause_s(losses) for losses in (0, 1, 2, 3, 4)] == [0.0, 0.0, 60.0, 120.0, 240.0]
    assert pause_s(1000) == MOST_PAUSE_S


def test_a_run_is_stopped_only_where_more_is_left_than_a_start_takes() -> None:
    assert is_worth(STEP, 85.8) and not is_worth(STEP, 86.0)
    assert is_worth(replace(STEP, steps_in_epoch=None), 1e6), "nobody knows how much is left"


def test_a_checkpoint_is_of_use_only_within_a_fit() -> None:
    assert is_in_fit(STEP) and is_in_fit(replace(STEP, batch=0)), "also in the first batch of an epoch"
    assert not is_in_fit(None)
    assert not is_in_fit(replace(STEP, epochs=0)), "train_on_batch"


# --- after a crash ----------------------------------------------------------------------------------------


async def crashed(tmp_path: Path, spec: RunSpec) -> RunId:
    """Anna's home after Tandem ended there during a run with Ben."""
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), QUICK, tells_busy=True) as lan:
        anna, ben, _ = nodes(lan)
        run = await train(lan, spec, anna, ben)
        summary = anna.home.runs / run / run_folder.SUMMARY
        await lan.wait_until(lambda: summary.exists() and b'"training"' in summary.read_bytes())
        then = summary.read_bytes()
    summary.write_bytes(then)  # as if nobody had ended it
    return run


async def test_after_a_crash_the_run_is_offered(tmp_path: Path, spec: RunSpec) -> None:
    run = await crashed(tmp_path, spec)
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), QUICK, tells_busy=True) as lan:
        anna, ben, _ = nodes(lan)
        for node in (anna, ben):
            await node.runs.returns.recover(node.runs.history, go_on=False)
        (notice,) = [event.problem for event in anna.events if isinstance(event, ev.NoticeRaised)]
        assert (notice.code, notice.detail) == (CUT_OFF, run) and f"tandem resume {run}" in notice.fix
        assert not ben.notices, "its part was ended"
        assert not anna.runs.busy


async def test_who_was_lost_in_a_loop_of_batches_is_back_in_the_next_fit(three: Lan, spec: RunSpec) -> None:
    anna, ben, _ = nodes(three)
    loop = replace(STEP, epochs=0)
    run = await train(three, spec, anna, ben, checkpoint=False, steps=loop)
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(anna, ben) and "train_on_batch" in said(anna))
    anna.trainers[-1].say(Progressed(progress=replace(loop, step=41, batch=41)))
    await three.wait_until(lambda: newest(anna) == 41 and has_looked(anna))
    assert run_of(anna) == run and isinstance(anna.phase, Training)
    anna.trainers[-1].say(Progressed(progress=replace(STEP, step=42, batch=1)))
    keep(anna.home.runs / run / run_folder.CHECKPOINTS, 40)
    anna.trainers[-1].say(Kept())
    anna.trainers[-1].say(Progressed(progress=replace(STEP, step=43, batch=2)))
    await goes_on_with(three, run, anna, ben)
    await finish(three, anna, ben)


@pytest.mark.parametrize("go_on", [False, True])
async def test_a_run_of_one_laptop_that_was_rebooted_is_cut_off_as_by_a_crash(
    tmp_path: Path, spec: RunSpec, go_on: bool
) -> None:
    async with Lan(tmp_path, ("Anna",), QUICK) as lan:
        (anna,) = lan.nodes.values()
        run = await train(lan, replace(spec, solo=True), anna)
        await lan.wait_until(lambda: anna.runs.returns._has_checkpoint())
        await anna.runs.close(leaves=True)
        assert anna.trainers[-1].forces == [0] and anna.trainers[-1].over
        assert not anna.last_phases()
        del lan.nodes["Anna"]  # closed already
    async with Lan(tmp_path, ("Anna",), QUICK) as lan:
        (anna,) = lan.nodes.values()
        await anna.runs.returns.recover(anna.runs.history, go_on=go_on)
        assert anna.notices == ([] if go_on else [CUT_OFF])
        if go_on:
            await lan.wait_until(lambda: anna.state.run is not None)
            await to_training(lan, anna)
            plan = anna.state.run.plan if anna.state.run else None
            assert plan is not None and plan.resume is not None and plan.resume.run == run
            await finish(lan, anna)


async def test_after_a_crash_the_run_goes_on_by_itself_where_that_is_set(
    tmp_path: Path, spec: RunSpec
) -> None:
    run = await crashed(tmp_path, spec)
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), QUICK, tells_busy=True) as lan:
        anna, ben, _ = nodes(lan)
        await anna.runs.returns.recover(anna.runs.history, go_on=True)
        await lan.wait_until(lambda: anna.state.run is not None and ben.state.run is not None)
        await to_training(lan, anna, ben)
        plan = anna.state.run.plan if anna.state.run else None
        assert plan is not None and plan.resume is not None and plan.resume.run == run
        assert not anna.notices
        await finish(lan, anna, ben)


async def test_nobody_is_brought_into_another_run_than_the_one_that_a_crash_cut_off(
    tmp_path: Path, spec: RunSpec
) -> None:
    await crashed(tmp_path, spec)
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), QUICK, tells_busy=True) as lan:
        anna, ben, _ = nodes(lan)
        lan.lose(anna, ben, LOST)
        await anna.runs.returns.recover(anna.runs.history, go_on=True)
        await lan.wait_until(lambda: anna.runs.busy)
        anna.runs.stop()
        await lan.wait_until(lambda: not anna.runs.busy)
        run = await train(lan, replace(spec, solo=True), anna)
        messages = heard(ben)
        lan.mend(anna, ben)
        await lan.wait_until(lambda: is_idle_for(anna, ben) and has_looked(anna))
        assert not messages and run_of(anna) == run
        await finish(lan, anna)


async def test_after_a_crash_missing_laptops_are_added_later(tmp_path: Path, spec: RunSpec) -> None:
    run = await crashed(tmp_path, spec)
    hasty = dataclasses.replace(QUICK, recover_s=0.05)
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), hasty, tells_busy=True) as lan:
        anna, ben, _ = nodes(lan)
        lan.lose(anna, ben, LOST)
        await anna.runs.returns.recover(anna.runs.history, go_on=True)
        await lan.wait_until(lambda: anna.state.run is not None)
        await to_training(lan, anna)
        alone = run_of(anna)
        assert members(anna) == {"Anna"} and alone != run
        keep(anna.home.runs / alone / run_folder.CHECKPOINTS, 40)
        anna.trainers[-1].say(Kept())
        lan.mend(anna, ben)
        await lan.wait_until(lambda: ben.state.run is not None)
        await goes_on_with(lan, alone, anna, ben)
        await finish(lan, anna, ben)


async def test_a_member_resumes_a_run_that_it_took_part_in_with_the_files_that_it_has(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    three.lose(anna, ben, LOST)
    three.lose(anna, cleo, LOST)
    await three.wait_until(lambda: ben.runs.returns.continuation.next and not cleo.runs.busy)
    ben.runs.stop()  # it does not go on by itself
    await three.wait_until(lambda: not ben.runs.busy)
    wanted = RunSpec(script="", devices=(cleo.device,), resume=run)
    again = await ben.runs.start(wanted)
    await to_training(three, ben, cleo)
    plan = cleo.state.run.plan if cleo.state.run else None
    assert plan is not None and plan.run == again and plan.starter == ben.device
    assert plan.resume is not None and plan.resume.moment.step == 40
    assert (ben.trainers[-1].work / "data.csv").read_bytes() == b"1,2\n" * 100_000
    assert ben.trainers[-1].work.is_relative_to(ben.home.runs / again)
    await finish(three, ben, cleo)
    await finish(three, anna)


async def test_invariant_another_laptops_script_that_is_resumed_here_stays_within_walls(
    three: Lan, spec: RunSpec
) -> None:
    """Also when the run that resumed it is resumed, or its script is started anew."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    await stop(three, anna, ben, cleo)
    again = await ben.runs.start(RunSpec(script="", devices=(cleo.device,), resume=run))
    await to_training(three, ben, cleo)
    keep(ben.home.runs / again / run_folder.CHECKPOINTS, 40)
    await stop(three, ben, cleo)
    source = (await ben.runs.history.find(again)).entry.source
    await ben.runs.start(RunSpec(script=source, solo=True, resume=again))
    await to_training(three, ben)
    await stop(three, ben)
    await ben.runs.start(RunSpec(script=source, solo=True))
    await to_training(three, ben)
    await stop(three, ben)
    first, *of_bens = (trainer.train.walls for trainer in ben.trainers)
    assert first is not None and len(of_bens) == 3 and None not in of_bens
    assert anna.trainers[-1].train.walls is None, "it is Anna's own"


async def test_a_member_without_the_project_says_where_to_resume(three: Lan, spec: RunSpec) -> None:
    anna, ben, _ = nodes(three)
    run = await train(three, spec, anna, ben)
    three.lose(anna, ben, LOST)
    await three.wait_until(lambda: ben.runs.returns.continuation.next)
    ben.runs.stop()
    await three.wait_until(lambda: not ben.runs.busy)
    for path in ben.home.projects.glob("*.json"):
        path.unlink()
    with pytest.raises(TandemError, match="not kept here any more") as refused:
        await ben.runs.start(RunSpec(script="", solo=True, resume=run))
    assert "Resume it on Anna" in refused.value.fix
    await finish(three, anna)


# --- consent ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", ["bytes", "arguments", "network", "nothing"])
async def test_invariant_a_run_that_goes_on_runs_nothing_that_was_not_allowed(
    three: Lan, spec: RunSpec, changed: str
) -> None:
    """Ben allowed Anna's run once. Without asking him, she can continue it, and nothing else."""
    anna, ben, _ = nodes(three)
    ben.ask_before_running(anna)
    run = await anna.runs.start(replace(spec, devices=(ben.device,)))
    await three.wait_until(lambda: ben.state.consents)
    await ben.runs.answer_consent(run, "once")
    await to_training(three, anna, ben)
    keep(anna.home.runs / run / run_folder.CHECKPOINTS, 40)
    anna.runs.stop()
    await three.wait_until(lambda: anna.over and ben.over)
    wanted = replace(spec, devices=(ben.device,), resume=run)
    match changed:
        case "bytes":
            Path(spec.script).with_name("data.csv").write_text("other")
        case "arguments":
            wanted = replace(wanted, arguments=("--steal",))
        case "network":
            wanted = replace(wanted, strategy="own")
    if changed == "network":  # its own strategy can't be resumed into: it is a run of its own
        wanted = replace(wanted, resume=None)
    again = await anna.runs.start(wanted, ())
    trainers = len(ben.trainers)
    if changed == "nothing":
        await to_training(three, anna, ben)
        await finish(three, anna, ben)
        return
    await three.wait_until(lambda: any(consent.run == again for consent in ben.state.consents))
    assert len(ben.trainers) == trainers, "nothing of it ran before the answer"
    await ben.runs.answer_consent(again, "no")
    await three.wait_until(lambda: anna.over)


async def test_invariant_a_yes_to_one_starter_is_none_to_another(three: Lan, spec: RunSpec) -> None:
    """Cleo, who took part too, continues Anna's run: Ben is asked whether he runs it for her."""
    anna, ben, cleo = nodes(three)
    ben.ask_before_running(anna)
    run = await anna.runs.start(replace(spec, devices=(ben.device, cleo.device)))
    await three.wait_until(lambda: ben.state.consents)
    await ben.runs.answer_consent(run, "once")
    await to_training(three, anna, ben, cleo)
    for node in (anna, cleo):
        keep(node.home.runs / run / run_folder.CHECKPOINTS, 40)
    anna.runs.stop()
    await three.wait_until(lambda: all(node.over for node in (anna, ben, cleo)))
    ben.ask_before_running(cleo)
    again = await cleo.runs.start(RunSpec(script="", devices=(ben.device,), resume=run), ())
    await three.wait_until(lambda: any(consent.run == again for consent in ben.state.consents))
    await ben.runs.answer_consent(again, "no")
    await three.wait_until(lambda: cleo.over)


async def test_the_time_to_read_the_question_does_not_count_as_part_of_a_return(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, _ = nodes(three)
    ben.ask_before_running(anna)
    run = await anna.runs.start(replace(spec, devices=(ben.device,)))
    await three.wait_until(lambda: ben.state.consents and anna.member_phase(anna) == "prepared")
    three.clock.advance(120.0)
    await ben.runs.answer_consent(run, "once")
    await to_training(three, anna, ben)
    assert anna.runs.returns._restart_s < 120.0
    await stop(three, anna, ben)


async def test_a_laptops_reports_about_files_before_it_wants_any_are_not_shown(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    asked = await unanswered(three, run)
    told = ev.MemberPhaseChanged(run=asked.run, device=cleo.device, phase="receiving", done=4, total=10)
    asked.on_message(cleo.device, ms.EventTold(event=told))
    assert anna.state.joining is None
    await stop(three, anna, ben)


async def test_a_laptop_that_began_its_own_run_meanwhile_is_invited_again_afterwards(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    messages = heard(cleo)
    anna.runs.returns.add(run, (cleo.device,))
    await three.wait_until(lambda: anna.runs.returns.invitation)
    asked = anna.runs.returns.invitation
    assert asked is not None
    busy = Problem(code="device-busy", what="Cleo has a run under way.")
    asked.on_message(cleo.device, ms.Declined(run=asked.run, problem=busy))
    assert anna.runs.returns.invitation is None and "goes on without" not in said(anna)
    await three.wait_until(lambda: has_timer_in(three, BUSY_S))
    before = len([each for each in messages if isinstance(each, Prepare)])
    three.clock.advance(BUSY_S)
    await three.wait_until(lambda: len([e for e in messages if isinstance(e, Prepare)]) > before)
    await goes_on_with(three, run, anna, ben, cleo)
    await finish(three, anna, ben, cleo)


@pytest.mark.parametrize("told_busy", [False, True])
async def test_a_laptop_that_is_invited_while_it_closes_is_invited_again_as_soon_as_it_is_open(
    three: Lan, spec: RunSpec, told_busy: bool
) -> None:
    """``told_busy``: it still answers, while its run ends, that it is busy."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    cleo.ask_before_running(anna)
    anna.runs.returns.add(run, (cleo.device,))
    await three.wait_until(lambda: anna.runs.returns.invitation)
    asked = anna.runs.returns.invitation
    assert asked is not None
    if told_busy:
        busy = Problem(code="device-busy", what="Cleo has a run under way.")
        asked.on_message(cleo.device, ms.Declined(run=asked.run, problem=busy))
    three.lose(anna, cleo, CLOSED)
    await three.wait_until(lambda: has_looked(anna))
    assert "goes on without" not in said(anna)
    messages = heard(cleo)
    three.mend(anna, cleo)
    await three.wait_until(lambda: any(isinstance(each, Prepare) for each in messages))
    await stop(three, anna, ben)
