"""A run outlives its starter's laptop, over links in memory: the others go on, and hand it back."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.project import checkpoint_store
from core.run.context import RunLimits
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder, trainer_messages
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed, Finished, Stopped, Training
from core.vocabulary.plan import RunOwner, RunSpec
from core.vocabulary.progress import EpochEnd, Progress
from core.vocabulary.trainer_messages import EpochEnded, Kept, Progressed
from tests.core.run.lan import LOST, FakeTrainer, Lan, LanNode, keep
from tests.core.run.test_returns import (
    SOON,
    STEP,
    finish,
    heard,
    left,
    members,
    nodes,
    run_of,
    to_training,
    train,
)
from tests.core.run.world import failing

QUICK = RunLimits(look_s=0.05, idle_s=0.3, stand_in_s=5.0, recover_s=5.0)


@pytest.fixture
def limits() -> RunLimits:
    return QUICK


@pytest.fixture
async def two(tmp_path: Path, limits: RunLimits) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Anna", "Ben"), limits, tells_busy=True) as lan:
        yield lan


@pytest.fixture
async def three(tmp_path: Path, limits: RunLimits) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), limits, tells_busy=True) as lan:
        yield lan


def at(step: int) -> Progressed:
    return Progressed(progress=replace(STEP, done=step))


def step_of(node: LanNode) -> int | None:
    assert node.state.run is not None
    progress = node.state.run.members[node.device].progress
    return None if progress is None else progress.done


def cut_off(lan: Lan, one: LanNode, *others: LanNode) -> None:
    """One after the other loses its link to ``one``."""
    for other in others:
        lan.lose(one, other, LOST)


async def goes_on(lan: Lan, before: RunId, *them: LanNode, step: int = 50, first: Progress = STEP) -> RunId:
    """These train in a run that resumes ``before``."""
    await lan.wait_until(lambda: all(node.state.run and run_of(node) != before for node in them))
    await to_training(lan, *them, steps=first)
    for node in them:
        node.trainers[-1].say(at(step))
        keep(node.home.runs / run_of(node) / run_folder.CHECKPOINTS, step)
        node.trainers[-1].say(Kept())
    await lan.wait_until(lambda: all(step_of(node) == step for node in them))
    assert them[0].state.run is not None
    plan = them[0].state.run.plan
    assert plan.resume is not None and plan.resume.run == before
    assert members(them[0]) == {node.name for node in them}
    return plan.run


async def test_the_other_goes_on_within_walls_and_hands_the_run_back(two: Lan, spec: RunSpec) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    trainer = ben.trainers[-1]
    two.lose(anna, ben, LOST)
    await two.wait_until(lambda: trainer.over)
    assert trainer.orders == [trainer_messages.MeetWithout(generation=3, gone=(0,))]
    assert trainer.forces == [0], "at the end of a step"

    alone = await goes_on(two, run, ben)

    assert ben.last_phases() == [Stopped(by="Ben", goes_on=True)]
    assert ben.state.run is not None
    assert ben.state.run.plan.owner == RunOwner(device=anna.device, run=run)
    ordered = ben.trainers[-1].train
    assert ordered.walls is not None and ordered.stands_in
    assert Path(ordered.folder).is_relative_to(ben.home.runs / alone)
    assert not anna.over and left(anna, ben), "and so does the starter, which was cut off"

    two.mend(anna, ben)  # 50 steps are done there, and 40 here

    again = await goes_on(two, run, anna, ben, step=60)
    failed, *_ = anna.last_phases()
    assert isinstance(failed, Failed) and failed.problem.code == "overtaken"
    assert "50 steps are done there" in failed.problem.what
    assert ben.last_phases()[1:] == [Stopped(by="Ben", goes_on=True, back=("Anna",))]
    assert anna.state.run is not None and anna.state.run.plan.resume is not None
    assert anna.state.run.plan.resume.moment.step == 50 and anna.state.run.plan.owner is None
    assert run_of(ben) == again
    await finish(two, anna, ben)
    assert (anna.home.runs / run / run_folder.SUMMARY).is_file(), "its half is kept"


async def test_a_stand_in_loads_its_next_trainer_for_the_starters_return(
    two: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    loading = list[float]()

    async def load(limit_s: float) -> bool:
        loading.append(limit_s)
        return True

    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben)
    monkeypatch.setattr(ben.runs.warm, "wait_loaded", load)
    for step in (51, 52):
        ben.trainers[-1].say(Progressed(progress=replace(STEP, done=step, epochs=90)))
        await two.wait_until(lambda: step_of(ben) == step)  # noqa: B023
    assert len(loading) == 1
    ben.runs.stop()
    anna.runs.stop()
    await two.wait_until(lambda: not (anna.runs.busy or ben.runs.busy))


async def test_the_starter_keeps_its_state_if_it_is_as_far(two: Lan, spec: RunSpec) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben, step=50)
    anna.trainers[-1].say(at(50))
    await two.wait_until(lambda: step_of(anna) == 50)
    keep(anna.home.runs / run / run_folder.CHECKPOINTS, 50, b"own" * 1000)

    two.mend(anna, ben)

    await two.wait_until(lambda: run_of(anna) != run and run_of(ben) == run_of(anna))
    await to_training(two, anna, ben)
    assert anna.last_phases() == [Stopped(by="Anna", goes_on=True, back=("Ben",))]
    checkpoint = Path(ben.trainers[-1].train.resume)
    assert (checkpoint / "now.bin").read_bytes() == b"own" * 1000
    await finish(two, anna, ben)


async def test_two_remaining_members_go_on_together_and_nobody_is_asked(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    cleo.ask_before_running(ben)
    cut_off(three, anna, cleo, ben)
    together = await goes_on(three, run, ben, cleo)
    assert not [event for event in cleo.events if isinstance(event, ev.ConsentAsked)]
    await finish(three, ben, cleo)
    assert run_of(cleo) == together


@pytest.mark.parametrize("limits", [SOON])
async def test_a_member_cut_off_alone_does_not_go_on_beside_the_others(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    three.lose(anna, ben, LOST)
    await three.wait_until(lambda: not ben.runs.busy and left(anna, ben))
    assert run_of(ben) == run and isinstance(anna.phase, Training) and isinstance(cleo.phase, Training)
    await finish(three, anna, cleo)


async def test_without_a_checkpoint_the_run_ends_with_its_starter(two: Lan, spec: RunSpec) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    await train(two, spec, anna, ben, checkpoint=False)
    two.lose(anna, ben, LOST)
    await two.wait_until(lambda: ben.over)
    assert isinstance(ben.phase, Failed) and ben.phase.problem.code == "starter-lost"


async def test_a_starter_that_crashed_takes_its_run_back(two: Lan, spec: RunSpec) -> None:
    """The setting about going on after a crash does not matter: the run never ended."""
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    checkpoint_store.clear(anna.home.runs / run / run_folder.CHECKPOINTS)  # as if it had come to none
    two.lose(anna, ben, LOST)
    alone = await goes_on(two, run, ben, step=70)

    again = await two.crash("Anna")
    two.mend(again, ben)

    await two.wait_until(lambda: again.state.run and run_of(ben) == run_of(again))
    await to_training(two, again, ben)
    assert again.state.run is not None and again.state.run.plan.resume is not None
    resumed = again.state.run.plan.resume
    assert resumed.run == run and resumed.moment.step == 70 and resumed.took_s > 0
    await finish(two, again, ben)
    for node in (again, ben):
        summary = node.state.run and node.state.run.summary
        assert summary and summary.total_s == resumed.took_s, "with the time in its absence"
    assert isinstance(ben.last_phases()[1], Stopped)
    assert (await ben.runs.history.find(alone)).entry.resumed == run


async def test_a_starter_that_was_restarted_twice_takes_its_run_back(two: Lan, spec: RunSpec) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben, step=70)
    once = await two.crash("Anna")
    assert once.notices == ["run-cut-off"]
    again = await two.crash("Anna")
    assert again.notices == [], "its user has seen it"

    two.mend(again, ben)

    await two.wait_until(lambda: again.state.run and run_of(ben) == run_of(again))
    await to_training(two, again, ben)
    assert again.state.run is not None and again.state.run.plan.resume is not None
    assert again.state.run.plan.resume.moment.step == 70
    await finish(two, again, ben)


@pytest.mark.parametrize("limits", [dataclasses.replace(QUICK, recover_s=0.05)], ids=["hasty"])
@pytest.mark.parametrize("go_on", [False, True], ids=["asks", "by itself"])
@pytest.mark.parametrize(("own", "from_step"), [(50, 70), (90, 90)], ids=["behind", "ahead"])
async def test_a_starter_that_crashed_again_after_it_went_on_alone_takes_its_run_back(
    two: Lan, spec: RunSpec, own: int, from_step: int, go_on: bool
) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben, step=70)
    once = await two.crash("Anna", go_on=True)
    alone = await goes_on(two, run, once, step=own)
    again = await two.crash("Anna", go_on=go_on)
    if go_on:
        await to_training(two, again)
        assert members(again) == {"Anna"} and run_of(again) != alone
        again.trainers[-1].say(at(own))

    two.mend(again, ben)

    await two.wait_until(lambda: again.state.run and members(again) == {"Anna", "Ben"})
    await two.wait_until(lambda: run_of(ben) == run_of(again))
    await to_training(two, again, ben)
    assert again.state.run is not None and again.state.run.plan.resume is not None
    assert again.state.run.plan.resume.moment.step == from_step
    await finish(two, again, ben)


@pytest.mark.parametrize("limits", [dataclasses.replace(QUICK, recover_s=0.05)], ids=["hasty"])
@pytest.mark.parametrize("go_on", [False, True], ids=["asks", "by itself"])
async def test_a_starter_that_crashed_again_before_its_next_checkpoint_goes_on_from_the_run_before(
    two: Lan, spec: RunSpec, go_on: bool
) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    once = await two.crash("Anna", go_on=True)
    await two.wait_until(lambda: once.trainers)
    checkpoint_store.clear(once.home.runs / run_of(once) / run_folder.CHECKPOINTS)
    again = await two.crash("Anna", go_on=go_on)
    if go_on:
        await goes_on(two, run, again)
        await finish(two, again)
    else:
        (notice,) = [event.problem for event in again.events if isinstance(event, ev.NoticeRaised)]
        assert notice.code == "run-cut-off" and notice.detail == run
    await goes_on(two, run, ben)


@pytest.mark.parametrize(("reason", "goes_back"), [("killed", True), ("script-error", False)])
async def test_a_half_that_went_on_outlives_the_starters_own_half(
    two: Lan, spec: RunSpec, reason: str, goes_back: bool
) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben, step=70)
    anna.trainers[-1].end(failing(reason))
    await two.wait_until(lambda: anna.over)
    assert isinstance(anna.phase, Failed)

    two.mend(anna, ben)

    if not goes_back:
        await two.wait_until(lambda: ben.over)
        assert ben.last_phases()[-1] == Stopped(by="Anna")
        return
    await two.wait_until(lambda: run_of(anna) != run and run_of(ben) == run_of(anna))
    await to_training(two, anna, ben)
    assert anna.state.run is not None and anna.state.run.plan.resume is not None
    assert anna.state.run.plan.resume.moment.step == 70
    await finish(two, anna, ben)


@pytest.mark.parametrize("killed", [False, True], ids=["under way", "killed"])
async def test_a_half_outlives_the_starters_own_that_another_laptop_has_come_back_to(
    three: Lan, spec: RunSpec, killed: bool
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    for other in (anna, cleo):
        three.lose(other, ben, LOST)
    await goes_on(three, run, ben, step=70)
    cleo.trainers[-1].end(failing("killed"))
    alone = await goes_on(three, run, anna, cleo)
    if killed:
        for node in (cleo, anna):
            node.trainers[-1].end(failing("killed"))
        await three.wait_until(lambda: anna.over and run_of(anna) == alone)
        assert isinstance(anna.phase, Failed) and anna.phase.problem.code == "killed"

    three.mend(anna, ben)

    await three.wait_until(lambda: run_of(anna) != alone and run_of(ben) == run_of(anna))
    await to_training(three, anna, ben, cleo)
    assert anna.state.run is not None and anna.state.run.plan.resume is not None
    assert anna.state.run.plan.resume.moment.step == 70
    await finish(three, anna, ben, cleo)


@pytest.mark.parametrize("limits", [dataclasses.replace(QUICK, recover_s=0.05)], ids=["hasty"])
async def test_a_half_that_is_given_up_while_the_run_starts_without_it_joins_afterwards(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    cut_off(three, anna, cleo, ben)
    three.lose(ben, cleo, LOST)
    await goes_on(three, run, ben, step=60)
    await goes_on(three, run, cleo, step=70)
    anna.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: anna.over)
    three.mend(anna, cleo)
    await three.wait_until(lambda: members(anna) == {"Anna", "Cleo"} and anna.runs_a_trainer)
    resumed, answers = run_of(anna), heard(ben)

    three.mend(anna, ben)

    await three.wait_until(lambda: taken_back(answers))
    assert not isinstance(anna.phase, Training)
    await goes_on(three, run, anna, cleo, step=80)
    await goes_on(three, resumed, anna, ben, cleo, step=90)
    await finish(three, anna, ben, cleo)


async def test_a_starter_that_is_in_another_laptops_run_takes_its_own_back_after_that(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    three.lose(anna, ben, LOST)
    await goes_on(three, run, ben, step=70)
    again = await three.crash("Anna")
    three.mend(again, cleo)
    await train(three, spec, cleo, again)

    three.mend(again, ben)
    await three.wait_until(lambda: again.runs.returns._succession._claims)

    assert again.notices == ["run-cut-off"] and not ben.trainers[-1].forces, "Ben goes on meanwhile"
    for node in (cleo, again):
        node.trainers[-1].end()
    await three.wait_until(lambda: run_of(ben) == run_of(again))
    await to_training(three, again, ben)
    await finish(three, again, ben)


async def test_the_starters_record_has_the_steps_that_were_done_without_it(two: Lan, spec: RunSpec) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    checkpoint_store.clear(anna.home.runs / run / run_folder.CHECKPOINTS)  # as if it had come to none
    two.lose(anna, ben, LOST)
    alone = await goes_on(two, run, ben, step=70)
    ben.runs.history._disk.post(time.sleep, 0.5)  # slow: what follows waits to be written
    epoch = EpochEnd(at_s=9.0, fit=1, epoch=1, epochs=9, step=68, seconds=1.0)
    ben.trainers[-1].say(EpochEnded(epoch=epoch))
    ben.trainers[-1].say(Progressed(progress=replace(STEP, fit=1, epoch=2, batch=1, done=69)))
    ben.trainers[-1].say(Progressed(progress=replace(STEP, fit=1, epoch=2, batch=9, done=71)))
    await two.wait_until(lambda: step_of(ben) == 71)

    again = await two.crash("Anna")
    two.mend(again, ben)
    await two.wait_until(lambda: again.state.run and run_of(ben) == run_of(again))
    await to_training(two, again, ben)
    await finish(two, again, ben)

    found = await again.runs.history.find(run_of(again))
    steps = [each.done for each in found.steps[ben.device]]
    assert 69 in steps and 71 not in steps, "which the checkpoint does not have"
    assert found.epochs[ben.device] == (epoch,)
    assert run_of(again) not in (run, alone)


def reported(node: LanNode, of: LanNode) -> int | None:
    assert node.state.run is not None
    progress = node.state.run.members[of.device].progress
    return None if progress is None else progress.done


def timed(batch: int) -> Progressed:
    return Progressed(progress=replace(STEP, fit=1, epoch=1, batch=batch, done=batch, at_s=time.time()))


async def test_the_starters_record_has_who_left_and_joined_without_it(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo, steps=timed(20).progress)
    anna.trainers[-1].say(timed(30))
    await three.wait_until(lambda: all(reported(node, anna) == 30 for node in (anna, ben, cleo)))
    again = await three.crash("Anna")  # before it knows of the loss
    three.lose(again, cleo, LOST)
    three.lose(again, ben, LOST)
    await goes_on(three, run, ben, cleo, step=70, first=timed(40).progress)
    three.lose(ben, cleo, LOST)
    await three.wait_until(lambda: left(ben, cleo))
    ben.trainers[-1].say(at(80))
    keep(ben.home.runs / run_of(ben) / run_folder.CHECKPOINTS, 80)
    ben.trainers[-1].say(Kept())
    await three.wait_until(lambda: step_of(ben) == 80)

    three.mend(again, ben)
    await three.wait_until(lambda: again.state.run and run_of(ben) == run_of(again))
    await to_training(three, again, ben, steps=timed(81).progress)
    await finish(three, again, ben)

    found = (await again.runs.history.find(run_of(again))).membership
    names = {node.device: node.name for node in (anna, ben, cleo)}
    assert [(names[turn.device], turn.change) for turn in found] == [
        *((name, "joined") for name in names.values()),
        ("Anna", "lost"),
        *(("Ben", "joined"), ("Cleo", "joined"), ("Cleo", "lost")),
        *(("Anna", "back"), ("Ben", "joined")),
    ]
    seconds = [turn.second for turn in found if turn.second is not None]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("first", ["Ben", "Cleo"])
async def test_a_starter_that_crashed_takes_its_run_back_whoever_tells_it_first(
    three: Lan, spec: RunSpec, first: str
) -> None:
    """Cleo is in the run for which Ben stands in, and tells it as well."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    cut_off(three, anna, cleo, ben)
    await goes_on(three, run, ben, cleo, step=70)

    again = await three.crash("Anna")
    for other in (ben, cleo) if first == "Ben" else (cleo, ben):
        three.mend(again, other)

    await goes_on(three, run, again, ben, cleo, step=80)
    await finish(three, again, ben, cleo)


@pytest.mark.parametrize("limits", [dataclasses.replace(QUICK, idle_s=5.0)], ids=["patient"])
@pytest.mark.parametrize("first", ["Ben", "Cleo"])
async def test_a_starter_that_went_on_alone_takes_its_run_back_whoever_tells_it_first(
    three: Lan, spec: RunSpec, first: str
) -> None:
    """Cleo is in the run for which Ben stands in, and its link may be back before Ben's."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    cleo.trainers[-1].say(at(1))
    await three.wait_until(lambda: step_of(cleo) == 1)
    cut_off(three, anna, cleo, ben)
    await goes_on(three, run, ben, cleo, step=70)
    assert not anna.over

    if first == "Ben":
        three.mend(anna, ben)
        again = await goes_on(three, run, anna, ben, step=80)
        three.mend(anna, cleo)
        await goes_on(three, again, anna, ben, cleo, step=90)
    else:
        three.mend(anna, cleo)
        await three.wait_until(anna.last_phases)
        three.mend(anna, ben)
        await goes_on(three, run, anna, ben, cleo, step=80)

    failed, *_ = anna.last_phases()
    assert isinstance(failed, Failed) and failed.problem.code == "overtaken"
    await finish(three, anna, ben, cleo)


@pytest.mark.parametrize("finished", [False, True], ids=["under way", "finished"])
@pytest.mark.parametrize("crashed", [False, True], ids=["cut off", "crashed"])
async def test_a_stand_in_hands_the_run_back_after_a_restart_too(
    two: Lan, spec: RunSpec, finished: bool, crashed: bool
) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben, step=70)
    if finished:
        await finish(two, ben)
        await two.wait_until(lambda: not ben.runs.busy)

    ben = await two.crash("Ben")
    if crashed:
        anna = await two.crash("Anna")
    two.mend(anna, ben)

    await two.wait_until(lambda: anna.state.run and run_of(anna) != run)
    await two.wait_until(lambda: ben.state.run and run_of(ben) == run_of(anna))
    await to_training(two, anna, ben)
    assert anna.state.run is not None and anna.state.run.plan.resume is not None
    assert anna.state.run.plan.resume.moment.step == 70 and anna.state.run.plan.owner is None
    await finish(two, anna, ben)

    ben = await two.crash("Ben")
    answers = heard(anna)
    two.mend(anna, ben)
    await two.wait_until(lambda: anna.state.devices[ben.device].linked)
    await asyncio.sleep(0)
    assert not [each for each in answers if isinstance(each, ms.TookOver)], "it was handed back"


async def test_a_stand_in_that_crashed_goes_on_with_the_owners_arguments(two: Lan, spec: RunSpec) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, replace(spec, arguments=("--epochs", "9")), anna, ben)
    two.lose(anna, ben, LOST)
    alone = await goes_on(two, run, ben)
    ben = await two.crash("Ben", go_on=True)
    await goes_on(two, alone, ben, step=60)
    assert ben.state.run is not None
    plan = ben.state.run.plan
    assert plan.arguments == ("--epochs", "9") and plan.owner == RunOwner(device=anna.device, run=run)
    await finish(two, ben)


async def test_steps_of_another_run_put_no_member_ahead(two: Lan, spec: RunSpec) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben, step=50)
    await finish(two, ben)
    anna.trainers[-1].say(at(60))
    await two.wait_until(lambda: step_of(anna) == 60)
    await train(two, replace(spec, solo=True), ben)
    ben.trainers[-1].say(at(1000))
    await two.wait_until(lambda: step_of(ben) == 1000)

    told, answers = ms.TakenBack(run=run), heard(ben)
    two.mend(anna, ben)

    await two.wait_until(lambda: told in answers)
    assert isinstance(anna.phase, Training) and run_of(anna) == run
    anna.runs.stop()
    await finish(two, ben)
    await two.wait_until(lambda: anna.over)


async def test_a_stand_in_for_a_stand_in_hands_the_run_back_to_its_owner(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    cut_off(three, anna, cleo, ben)
    together = await goes_on(three, run, ben, cleo)
    three.lose(ben, cleo, LOST)
    await goes_on(three, together, cleo, step=60)
    assert cleo.state.run is not None
    assert cleo.state.run.plan.owner == RunOwner(device=anna.device, run=run)

    three.mend(anna, cleo)

    await three.wait_until(lambda: run_of(cleo) not in (run, together) and cleo.last_phases()[2:])
    assert cleo.last_phases()[2] == Stopped(by="Cleo", goes_on=True, back=("Anna",))
    await three.wait_until(lambda: anna.state.run and run_of(anna) == run_of(cleo))
    assert anna.state.run is not None and anna.state.run.plan.resume is not None
    assert anna.state.run.plan.resume.moment.step == 60, "not that of the first stand-in"
    await to_training(three, anna, cleo)
    await finish(three, anna, cleo)


async def test_invariant_no_member_starts_a_run_here_by_claiming_to_have_gone_on(
    two: Lan, spec: RunSpec
) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    claim = ms.TookOver(run=run, step=10**12)
    anna.runs.on_message(ben.device, claim)
    assert isinstance(anna.phase, Training) and run_of(anna) == run, "it has not left"
    await finish(two, anna, ben)
    anna.runs.on_message(ben.device, claim)
    anna.runs.on_message(ben.device, replace(claim, run=RunId("20260101-000000-abcdef")))
    await asyncio.sleep(0)
    assert not anna.runs.busy and run_of(anna) == run and anna.last_phases() == [Finished()]
    assert all(isinstance(trainer, FakeTrainer) and trainer.over for trainer in anna.trainers)


async def test_invariant_a_laptop_that_was_never_in_a_run_does_not_get_in_by_claiming_to_be_further(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    anna.runs.on_message(cleo.device, ms.TookOver(run=run, step=10**12))
    assert isinstance(anna.phase, Training) and not any(trainer.forces for trainer in anna.trainers)
    await finish(three, anna, ben)
    assert run_of(anna) == run and anna.last_phases() == [Finished()] and not cleo.trainers


@pytest.mark.parametrize("claims", ["nothing else", "arguments", "a run that was stopped"])
async def test_invariant_a_stand_in_runs_nothing_else_without_a_question(
    three: Lan, spec: RunSpec, claims: str
) -> None:
    anna, ben, cleo = nodes(three)
    cleo.ask_before_running(ben)
    run = await train(three, spec, anna, ben, cleo)
    if claims == "a run that was stopped":
        anna.runs.stop()
        await three.wait_until(lambda: all(node.over for node in nodes(three)))
    cut_off(three, anna, cleo, ben)
    await three.wait_until(lambda: not cleo.runs_a_trainer and not ben.runs_a_trainer)
    if claims == "nothing else":
        await goes_on(three, run, ben, cleo)
        assert not [event for event in cleo.events if isinstance(event, ev.ConsentAsked)]
        await finish(three, ben, cleo)
        return
    if ben.runs.busy:
        ben.runs.stop()
    await three.wait_until(lambda: not ben.runs.busy and not cleo.runs.busy)
    again = await ben.runs.start(RunSpec(script="", devices=(cleo.device,), resume=run), ())
    trainers = len(cleo.trainers)
    if claims == "arguments":
        ben.runs.stop()
        await three.wait_until(lambda: ben.over and cleo.over)
        stolen = Path(ben.home.runs / run / run_folder.PLAN)
        stolen.write_bytes(stolen.read_bytes().replace(b'"arguments":[]', b'"arguments":["--steal"]'))
        assert b"--steal" in stolen.read_bytes()
        again = await ben.runs.start(RunSpec(script="", devices=(cleo.device,), resume=run), ())
        trainers = len(cleo.trainers)
    await three.wait_until(lambda: any(consent.run == again for consent in cleo.state.consents))
    assert len(cleo.trainers) == trainers, "nothing of it ran before the answer"
    await cleo.runs.answer_consent(again, "no")
    await three.wait_until(lambda: ben.over)


# --- members that never paired


@pytest.fixture
async def strangers(tmp_path: Path) -> AsyncIterator[Lan]:
    """Ben and Cleo are linked, as introduced, and not paired."""
    names = ("Anna", "Ben", "Cleo", "Dora")
    async with Lan(tmp_path, names, QUICK, tells_busy=True, strangers=("Ben", "Cleo")) as lan:
        yield lan


async def test_members_that_never_paired_go_on_together_and_nobody_is_asked(
    strangers: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo, _ = strangers.nodes.values()
    run = await train(strangers, spec, anna, ben, cleo)
    messages = heard(cleo)
    strangers.lose(anna, cleo, LOST)
    strangers.lose(anna, ben, LOST)

    await goes_on(strangers, run, ben, cleo)

    assert not cleo.state.devices[ben.device].paired
    assert not [event for event in cleo.events if isinstance(event, ev.ConsentAsked)]
    assert not [message for message in messages if isinstance(message, ms.ModulesAsked)]
    await finish(strangers, ben, cleo)
    anna.runs.stop()
    await strangers.wait_until(lambda: not anna.runs.busy)


async def test_no_laptop_joins_a_run_with_an_unpaired_member_until_its_starter_is_back(
    strangers: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo, dora = strangers.nodes.values()
    run = await train(strangers, spec, anna, ben, cleo, dora)
    for other in (cleo, dora, ben):
        strangers.lose(anna, other, LOST)
    await goes_on(strangers, run, ben, cleo, dora)
    dora.trainers[-1].end(failing("killed"))
    await strangers.wait_until(lambda: left(ben, dora))
    with pytest.raises(TandemError, match="is not paired with this one") as refused:
        ben.runs.returns.add(run_of(ben), (dora.device,))
    assert refused.value.code == "not-joinable"
    assert not ben.runs.returns._absent
    await finish(strangers, ben, cleo)
    anna.runs.stop()
    await strangers.wait_until(lambda: not anna.runs.busy)


async def test_invariant_a_laptop_that_is_not_paired_asks_no_user(strangers: Lan, spec: RunSpec) -> None:
    anna, ben, cleo, _ = strangers.nodes.values()
    run = await train(strangers, spec, anna, ben, cleo)
    anna.runs.stop()
    await strangers.wait_until(lambda: all(node.over for node in (anna, ben, cleo)))
    trainers = len(cleo.trainers)
    await ben.runs.start(RunSpec(script="", devices=(cleo.device,), resume=run), ())
    await strangers.wait_until(lambda: ben.over)
    failed = ben.phase
    assert isinstance(failed, Failed) and "would reach more than this user allowed" in failed.problem.what
    assert not [event for event in cleo.events if isinstance(event, ev.ConsentAsked)]
    assert len(cleo.trainers) == trainers


# --- who is heard, and when


async def test_a_stand_in_that_is_there_while_its_starter_starts_alone_is_heard_at_the_first_step(
    tmp_path: Path, spec: RunSpec
) -> None:
    hasty = dataclasses.replace(QUICK, recover_s=0.05)
    async with Lan(tmp_path, ("Anna", "Ben"), hasty, tells_busy=True) as two:
        anna, ben = two.nodes["Anna"], two.nodes["Ben"]
        run = await train(two, spec, anna, ben)
        two.lose(anna, ben, LOST)
        await goes_on(two, run, ben, step=70)
        anna = await two.crash("Anna", go_on=True)
        await two.wait_until(lambda: anna.runs_a_trainer)
        answers = heard(ben)
        two.mend(anna, ben)
        await two.wait_until(lambda: claims(anna))
        assert not taken_back(answers), "nothing is decided before the first step"
        anna.trainers[-1].meet()
        anna.trainers[-1].say(Progressed(progress=STEP))
        await two.wait_until(lambda: taken_back(answers))
        await two.wait_until(lambda: members(anna) == {"Anna", "Ben"} and run_of(anna) == run_of(ben))
        await to_training(two, anna, ben)
        plan = anna.state.run.plan if anna.state.run else None
        assert plan is not None and plan.resume is not None and plan.resume.moment.step == 70
        await finish(two, anna, ben)


async def test_a_starter_that_trains_something_else_takes_its_run_back_afterwards(
    two: Lan, spec: RunSpec
) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben, step=70)
    anna = await two.crash("Anna")
    await anna.runs.start(replace(spec, solo=True, arguments=("--other",)))
    await to_training(two, anna)
    answers = heard(ben)
    two.mend(anna, ben)
    await two.wait_until(lambda: claims(anna))
    assert not taken_back(answers) and not ben.over
    anna.trainers[-1].end()
    await two.wait_until(lambda: members(anna) == {"Anna", "Ben"} and run_of(anna) == run_of(ben))
    await to_training(two, anna, ben)
    plan = anna.state.run.plan if anna.state.run else None
    assert plan is not None and plan.resume is not None
    assert plan.resume.moment.step == 70 and "--other" not in plan.arguments
    await finish(two, anna, ben)


@pytest.mark.parametrize("how", ["stopped", "finished"])
async def test_the_stand_in_says_that_its_run_is_stopped_if_the_starter_has_ended_it(
    two: Lan, spec: RunSpec, how: str
) -> None:
    anna, ben = two.nodes["Anna"], two.nodes["Ben"]
    run = await train(two, spec, anna, ben)
    two.lose(anna, ben, LOST)
    await goes_on(two, run, ben, step=70)
    if how == "stopped":
        anna.runs.stop()
        await two.wait_until(lambda: anna.over)
    else:
        await finish(two, anna)
    two.mend(anna, ben)
    await two.wait_until(lambda: ben.over)
    assert ben.phase == Stopped(by="Anna")
    assert ben.runs.returns.continuation.next is None


async def test_the_next_member_goes_on_if_the_first_is_lost_as_well(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    ben.trainers[-1].stubborn = True  # its step takes long
    cut_off(three, anna, cleo, ben)
    await three.wait_until(lambda: not cleo.runs.busy)
    assert run_of(cleo) == run
    three.lose(ben, cleo, LOST)
    await goes_on(three, run, cleo)
    assert cleo.state.run is not None
    assert cleo.state.run.plan.owner == RunOwner(device=anna.device, run=run)
    for node in (anna, cleo):
        node.runs.stop()
    three.clock.advance(60.0)  # ben's trainer is killed
    await three.wait_until(lambda: not (anna.runs.busy or cleo.runs.busy))


async def test_a_stand_in_goes_on_alone_if_the_other_is_lost_before_the_first_step(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    cut_off(three, anna, cleo, ben)
    await three.wait_until(lambda: run_of(cleo) != run and ben.runs_a_trainer and cleo.runs_a_trainer)
    tried = run_of(ben)
    three.lose(ben, cleo, LOST)
    await three.wait_until(lambda: run_of(ben) != tried)
    await goes_on(three, run, ben)
    assert ben.last_phases()[-2:] == [Stopped(by="Ben", goes_on=True)] * 2 and not ben.notices
    for node in (anna, ben):
        node.runs.stop()
    await three.wait_until(lambda: not (anna.runs.busy or ben.runs.busy or cleo.runs.busy))


async def test_a_member_that_the_first_does_not_ask_says_so(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    await train(three, spec, anna, ben, cleo)
    ben.trainers[-1].stubborn = True
    cut_off(three, anna, cleo, ben)
    await three.wait_until(lambda: not cleo.runs.busy)
    ben.runs.returns.continuation.on_idle = lambda: None  # type: ignore[method-assign]
    three.clock.advance(QUICK.asked_s)
    (notice,) = (notice for notice in cleo.state.notices if notice.code == "not-gone-on")
    assert "Ben was to go on with it, but did not ask this laptop." in notice.what
    anna.runs.stop()
    await three.wait_until(lambda: not anna.runs.busy)


def taken_back(messages: list[ms.Message]) -> list[ms.TakenBack]:
    return [message for message in messages if isinstance(message, ms.TakenBack)]


def claims(node: LanNode) -> dict[DeviceId, tuple[RunId, int]]:
    """The laptops that went on with its run while it was lost, and have no answer yet."""
    return node.runs.returns._succession._claims
