"""A member lost for good during training has left, and the others continue without it; and cases in which
they cannot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from msgspec.structs import replace

from core.run import departure
from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary import trainer_messages
from core.vocabulary.errors import LEFT_RUN, Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Exit, Failed, Finished, Stopped, Training
from core.vocabulary.plan import Moment, Plan, Resumption, Role
from core.vocabulary.progress import EpochEnd, Expectation
from core.vocabulary.traffic import From, LinkLost
from core.vocabulary.trainer_messages import EpochEnded, Measured, MeetWithout, StatusChanged
from core.vocabulary.waits import PeerWait, TrainerStatus
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.world import CLOSED, FINISHED, LOST, MANIFEST, World, failing, progress

TWO = plan_of(project=MANIFEST.digest)
THREE = plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest)
BENS = plan_of((ANNA, BEN, CLEO), fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)
"""The chief is not on the laptop that started the run."""
OTHERS = plan_of((BEN, CLEO), project=MANIFEST.digest)
"""The starter's laptop has no part in the run."""
EXPECTED = Expectation(
    alone_s=(0.1, 0.2, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1_000, shares=(43, 11, 10)
)
AWAY = replace(LOST, code="link-silent")


def training(plan: Plan = THREE) -> World:
    world = World(plan)
    world.start_training()
    assert isinstance(world.phase, Training)
    return world


def epoch(number: int) -> EpochEnded:
    return EpochEnded(epoch=EpochEnd(at_s=1.0, epoch=number, epochs=9, step=1, logs={}, seconds=1.0))


def killed(world: World) -> None:
    world.trainer_ends(BEN, world.starter.plan.tasks_of(BEN)[0].name, failing("killed"))


def closed(world: World) -> None:
    problem = Problem(code="closed", what="Tandem was closed on Ben's.")
    world.tell(From(BEN, ms.Declined(run=world.starter.plan.run, problem=problem)))
    world.lose_link(BEN, CLOSED)


def away_too_long(world: World) -> None:
    world.cut_link(BEN, AWAY)
    while "away" in world.waits:  # longer than expected if a step has just ended
        world.fire("away")


LOSSES: dict[str, Callable[[World], None]] = {
    "killed": killed,
    "out of memory": lambda world: world.trainer_ends(BEN, "worker:0", failing("out-of-memory")),
    "ended from outside": lambda world: world.trainer_ends(BEN, "worker:0", Exit(reason="stopped")),
    "its node is gone": lambda world: world.lose_link(BEN),
    "closed": closed,
    "away too long": away_too_long,
}


def left(world: World) -> list[ev.MemberLeft]:
    return [event for event in world.events if isinstance(event, ev.MemberLeft)]


def ends(world: World, *who: DeviceId) -> None:
    for device in who:
        for task in tuple(world.members[device].trainers):
            world.end_trainer(device, task, FINISHED)


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("plan", [TWO, THREE], ids=["two", "three"])
def test_the_others_go_on_without_a_lost_member_and_finish(lose: Callable[[World], None], plan: Plan) -> None:
    world = training(plan)
    lose(world)
    world.settle()
    assert isinstance(world.phase, Training) and isinstance(world.starter.stage, co.Running)
    (event,) = left(world)
    assert event.device == BEN and event.problem.what
    others = [device for device in world.members if device != BEN]
    for device in others:
        assert world.members[device].orders == [MeetWithout(generation=1, gone=(1,))]
        assert -1 in world.members[device].trainers.values(), "nobody asks them to end"
    assert "away" not in world.waits
    went = "left" if event.problem.code in ("closed", "stopped") else "was lost"
    assert f"Ben's {went} at step 1: {event.problem.what}" in world.said()
    ends(world, *others)
    assert isinstance(world.phase, Finished)
    assert world.state.run is not None and world.state.run.summary is not None
    assert world.state.run.summary.left == {BEN: 1}


def test_members_may_leave_one_after_another() -> None:
    world = training()
    world.lose_link(CLEO)
    world.settle()
    killed(world)
    world.settle()
    assert [event.device for event in left(world)] == [CLEO, BEN]
    first, second = MeetWithout(generation=1, gone=(2,)), MeetWithout(generation=2, gone=(1, 2))
    assert world.members[ANNA].orders == [first, second]
    assert world.members[BEN].orders == [first]
    assert "Anna's goes on alone." in world.said()
    ends(world, ANNA)
    assert isinstance(world.phase, Finished)


def test_a_member_that_left_sees_how_the_run_goes_on_and_ends() -> None:
    world = training()
    killed(world)
    world.settle()
    world.trainer_says(ANNA, "chief:0", progress(7))
    ends(world, ANNA, CLEO)
    assert world.screens[BEN].run == world.screens[CLEO].run == world.state.run
    assert world.last_phases(world.members[BEN].shown) == [Finished()]
    known = world.members[BEN].known
    assert known is not None and isinstance(known.stage, pa.Gone)


def test_a_member_that_comes_back_too_late_ends_its_trainer_and_is_ignored() -> None:
    world = training()
    away_too_long(world)
    world.restore_link(BEN)
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2}
    assert not world.members[BEN].orders
    world.end_trainer(BEN, "worker:0", failing("killed"))
    world.tell(From(BEN, ms.StopAsked(run=THREE.run)))
    assert isinstance(world.starter.stage, co.Running)
    world.cut_link(BEN)
    assert "away" not in world.waits and not world.starter.is_any_away
    ends(world, ANNA, CLEO)
    assert isinstance(world.phase, Finished)


def test_a_laptop_with_several_trainers_leaves_with_all_of_them() -> None:
    plan = plan_of(fixed={ANNA: (Role.CHIEF,), BEN: (Role.WORKER, Role.WORKER)}, project=MANIFEST.digest)
    world = training(plan)
    world.end_trainer(BEN, "worker:1", failing("killed"))
    assert world.members[ANNA].orders == [MeetWithout(generation=1, gone=(1, 2))]
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.end_trainer(BEN, "worker:0", failing("killed"))
    ends(world, ANNA)
    assert isinstance(world.phase, Finished)


def test_a_member_that_left_is_no_longer_waited_for() -> None:
    world = training()
    peer = PeerWait(rank=1, lasted_s=9.0, connected=False, heard_s=9.0)
    world.trainer_says(
        ANNA, "chief:0", StatusChanged(status=TrainerStatus(activity="exchange", lasted_s=9.0, peers=(peer,)))
    )
    world.settle()
    assert world.state.run is not None and world.state.run.waiting is not None
    killed(world)
    world.settle()
    assert world.state.run.waiting is None


def test_weights_and_faults_of_a_member_that_left_do_not_count() -> None:
    """Neither its weights nor its faults."""
    plan = plan_of(fixed={ANNA: (Role.CHIEF,), BEN: (Role.WORKER, Role.WORKER)}, project=MANIFEST.digest)
    world = training(plan)
    world.end_trainer(BEN, "worker:0", Exit(reason="finished", weights_sha256="0" * 64))
    world.end_trainer(BEN, "worker:1", failing("out-of-memory"))
    world.end_trainer(ANNA, "chief:0", FINISHED)
    assert isinstance(world.phase, Finished)


def test_the_last_member_still_at_work_may_be_lost() -> None:
    world = training(TWO)
    world.end_trainer(ANNA, "chief:0", FINISHED)
    killed(world)
    world.settle()
    assert isinstance(world.phase, Finished)


def test_a_fault_of_a_remaining_member_ends_the_run_and_is_named() -> None:
    world = training()
    killed(world)
    world.settle()
    world.end_trainer(ANNA, "chief:0", failing("lost-peer", "No meeting came about."))
    world.fire("cause")
    world.settle()
    world.end_trainer(CLEO, "worker:1", failing("killed"))
    assert isinstance(world.phase, Failed)
    assert world.phase.problem.what == "On Anna's: No meeting came about."


def test_stop_asks_the_remaining_members_and_waits_for_nobody_else() -> None:
    world = training(TWO)
    killed(world)
    world.settle()
    world.press_stop()
    world.end_trainer(ANNA, "chief:0", Exit(reason="stopped"))
    assert world.phase == Stopped(by="Anna's")


# --- the chief, and the starter's own trainer --------------------------------------------------------------


@pytest.mark.parametrize("lose", [killed, closed, away_too_long, LOSSES["its node is gone"]])
def test_the_next_member_leads_when_the_chief_is_lost_and_its_outputs_are_the_runs(
    lose: Callable[[World], None],
) -> None:
    world = training(BENS)
    lose(world)
    world.settle()
    assert [event.device for event in left(world)] == [BEN] and world.starter.chief.device == ANNA
    world.trainer_says(ANNA, "worker:0", progress(7))
    world.trainer_says(ANNA, "worker:0", Measured(expectation=EXPECTED))
    ends(world, CLEO, ANNA)
    assert isinstance(world.phase, Finished)
    assert world.taken_from == [ANNA]
    assert world.state.run is not None and world.state.run.summary is not None
    summary = world.state.run.summary
    assert (summary.steps, summary.left) == (8, {BEN: 1})
    assert summary.outputs == ("model.keras",) and summary.expectation == EXPECTED


def test_the_chiefs_trainer_may_be_lost_while_the_starters_tandem_goes_on() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert [event.device for event in left(world)] == [ANNA] and not world.members[ANNA].orders
    for device in (BEN, CLEO):
        assert world.members[device].orders == [MeetWithout(generation=1, gone=(0,))]
    world.trainer_says(BEN, "worker:0", progress(9))
    ends(world, CLEO, BEN)
    assert isinstance(world.phase, Finished)
    assert world.taken_from == [BEN] and world.members[BEN].outputs_taken
    assert not world.members[CLEO].outputs_taken
    assert world.screens[BEN].run == world.screens[CLEO].run == world.state.run
    assert world.state.run is not None and world.state.run.summary is not None
    assert world.state.run.summary.steps == 10
    assert world.state.run.summary.weights_sha256.keys() == {BEN, CLEO}


def test_the_starters_other_trainers_end_when_one_is_lost() -> None:
    plan = plan_of(fixed={ANNA: (Role.CHIEF, Role.WORKER), BEN: (Role.WORKER,)}, project=MANIFEST.digest)
    world = training(plan)
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert world.members[ANNA].trainers == {"worker:0": 2}
    world.end_trainer(ANNA, "worker:0", failing("killed"))
    ends(world, BEN)
    assert isinstance(world.phase, Finished) and world.taken_from == [BEN]


def test_outputs_of_the_next_chief_come_even_if_its_script_ended_before_it_led() -> None:
    world = training()
    ends(world, BEN)
    assert world.taken_from == []
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert world.taken_from == [BEN]
    ends(world, CLEO)
    assert isinstance(world.phase, Finished)


def test_stop_works_after_the_starters_own_trainer_is_lost() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    world.press_stop()
    for device, task in ((BEN, "worker:0"), (CLEO, "worker:1")):
        world.end_trainer(device, task, Exit(reason="stopped"))
    assert world.phase == Stopped(by="Anna's") and world.taken_from == [BEN]


def test_an_epoch_counts_once_even_if_another_member_reports_it() -> None:
    world = training()
    for device, task in ((BEN, "worker:0"), (ANNA, "chief:0")):
        world.trainer_says(device, task, epoch(0))
    world.trainer_says(BEN, "worker:0", epoch(1))
    world.settle()
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    world.trainer_says(CLEO, "worker:1", epoch(1))
    world.trainer_says(BEN, "worker:0", epoch(2))
    ends(world, BEN, CLEO)
    assert world.state.run is not None and world.state.run.summary is not None
    assert world.state.run.summary.epochs == 3


# --- where it ends as before -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end",
    [
        failing("script-error"),
        failing("lost-peer"),
        Exit(reason="killed", problem=Problem(code="script-left", what="The script ended its own process.")),
    ],
    ids=["an error", "a consequence", "os._exit"],
)
def test_an_end_that_the_script_or_another_member_may_have_caused_ends_the_run_for_all(end: Exit) -> None:
    world = training()
    world.end_trainer(BEN, "worker:0", end)
    if "cause" in world.waits:
        world.fire("cause")
    world.settle()
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and not left(world)


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(strategy="own", project=MANIFEST.digest),
        replace(TWO, exchange="sealed"),
    ],
    ids=["a strategy of its own", "sealed"],
)
def test_a_run_with_its_own_strategy_or_sealed_ends_with_a_loss(plan: Plan) -> None:
    world = training(plan)
    world.lose_link(BEN)
    world.settle()
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and not left(world)


def leaves(world: World, device: DeviceId) -> None:
    world.tell_member(device, pa.LeaveWanted(departure.left(world.starter.name(device))))
    world.settle()


@pytest.mark.parametrize("device", [ANNA, BEN, CLEO])
def test_a_member_that_leaves_ends_its_step_and_the_others_go_on_at_once(device: DeviceId) -> None:
    world = training()
    name, (task,) = world.starter.name(device), world.starter.plan.tasks_of(device)
    leaves(world, device)
    assert world.members[device].orders == [trainer_messages.Stop(leaves=True)]
    assert world.members[device].trainers[task.name] == -1, "it may end its step"
    assert not left(world)
    end = Exit(reason="killed", problem=Problem(code=LEFT_RUN, what="It left the run."))
    world.end_trainer(device, task.name, end)
    (event,) = left(world)
    assert (event.device, event.problem.code, event.problem.what) == (
        device,
        LEFT_RUN,
        f"{name} left the run.",
    )
    others = [each for each in world.members if each != device]
    rank = [each.device for each in world.starter.plan.tasks].index(device)
    for each in others:
        assert world.members[each].orders == [MeetWithout(generation=1, gone=(rank,))]
    assert f"{name} left the run. " in world.said() and "go on from step 1." in world.said()
    assert "leave" not in world.members[device].waits
    ends(world, *others)
    assert isinstance(world.phase, Finished)
    assert world.taken_from == [others[0]], "from whoever leads by then"


def test_a_trainer_that_does_not_end_its_step_is_killed() -> None:
    world = training()
    leaves(world, BEN)
    world.fire_member(BEN, "leave")
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.end_trainer(BEN, "worker:0", failing("killed"))
    assert left(world)[0].problem.code == LEFT_RUN


def test_a_trainer_whose_step_cannot_end_is_killed_at_once() -> None:
    world = training()
    world.cut_link(CLEO, AWAY)
    world.now_s += 5.0
    world.fire("look")
    world.settle()
    leaves(world, BEN)
    assert world.members[BEN].trainers == {"worker:0": 2} and not world.members[BEN].orders


def test_a_script_that_ended_just_before_has_not_left() -> None:
    world = training()
    leaves(world, BEN)
    world.end_trainer(BEN, "worker:0", FINISHED)
    assert not left(world)
    ends(world, ANNA, CLEO)
    assert isinstance(world.phase, Finished)


def test_a_run_that_all_leave_at_once_was_stopped() -> None:
    world = training(TWO)
    leaves(world, BEN)
    world.tell_member(ANNA, pa.LeaveWanted(departure.left("Anna's")))
    killed(world)
    world.settle()
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert world.phase == Stopped(by="Anna's")


def test_nobody_is_left_to_go_on() -> None:
    world = training(TWO)
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    world.lose_link(BEN)
    world.settle()
    assert isinstance(world.phase, Failed)
    assert world.phase.problem.code == "device-lost"
    assert [event.device for event in left(world)] == [ANNA]


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_loss_before_the_first_step_ends_the_run(lose: Callable[[World], None]) -> None:
    world = World(THREE)
    world.settle()
    lose(world)
    world.settle()
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed | Stopped) and not left(world)


# --- whatever is lost, and in whatever order ---------------------------------------------------------------


@effort(max_examples=100, deadline=None)
@given(data=st.data())
def test_no_run_fails_because_it_lost_members_that_it_can_do_without(data: st.DataObject) -> None:
    world = training()
    for _ in range(data.draw(st.integers(0, 12))):
        found: list[Callable[[], None]] = list(world.possible())
        found.append(lambda: world.trainer_says(ANNA, "chief:0", progress()))
        for device in (BEN, CLEO):
            if device not in world.lost:
                found.append(lambda device=device: world.lose_link(device))  # type: ignore[misc]
                if device in world.cut:
                    found.append(lambda device=device: world.restore_link(device))  # type: ignore[misc]
                else:
                    found.append(lambda device=device: world.cut_link(device))  # type: ignore[misc]
            for task, force in world.members[device].trainers.items():
                end = data.draw(st.sampled_from([failing("killed"), failing("out-of-memory")]))
                if force < 2 and device not in world.lost:
                    found.append(lambda d=device, t=task, e=end: world.trainer_ends(d, t, e))  # type: ignore[misc]
        if "away" in world.waits:
            found.append(lambda: world.fire("away"))
        data.draw(st.sampled_from(found))()
        assert isinstance(world.phase, Training)
    for device in tuple(world.cut):
        world.restore_link(device)
    world.settle()
    gone = {event.device for event in left(world)}
    assert len(left(world)) == len(gone)
    for device in world.members.keys() - world.lost - gone:
        orders = [each for each in world.members[device].orders if isinstance(each, MeetWithout)]
        assert [order.generation for order in orders] == list(range(1, len(gone) + 1))
        ranks = {rank for rank, task in enumerate(THREE.tasks) if task.device in gone}
        assert not orders or set(orders[-1].gone) == ranks
        ends(world, device)
    assert isinstance(world.phase, Finished), world.phase


@effort(max_examples=200, deadline=None)
@given(plan=st.sampled_from([THREE, BENS, OTHERS]), data=st.data())
def test_members_of_one_generation_agree_who_is_gone_wherever_links_break(
    plan: Plan, data: st.DataObject
) -> None:
    """Also between the starter and each of them, while others are still linked with it."""
    world, alone, unheard = training(plan), set[DeviceId](), set[DeviceId]()

    def lose_starter(device: DeviceId) -> None:
        alone.add(device)
        world.lost.add(device)
        world.to_member[device].clear()
        world.tell_member(device, LinkLost(ANNA, LOST))

    def lose_member(device: DeviceId) -> None:
        unheard.add(device)
        world.to_starter[device].clear()
        world.tell(LinkLost(device, LOST))

    for _ in range(data.draw(st.integers(0, 12))):
        found: list[Callable[[], None]] = list(world.possible())
        others = world.members.keys() - {ANNA}
        found += [partial(lose_starter, device) for device in sorted(others - alone)]
        found += [partial(lose_member, device) for device in sorted(others - unheard)]
        for device, side in world.members.items():
            for task, force in side.trainers.items():
                if force < 2:
                    found.append(partial(world.trainer_ends, device, task, failing("killed")))
        if found:
            data.draw(st.sampled_from(found))()
    gone_in: dict[int, set[int]] = {}
    for side in world.members.values():
        gone, generation = set[int](), 0
        for order in side.orders:
            if isinstance(order, MeetWithout):
                assert order.generation > generation, "no generation comes again"
                gone, generation = gone | set(order.gone), order.generation
                assert gone_in.setdefault(generation, gone) == gone


def test_a_laptop_does_not_leave_itself_out_of_a_continuation_that_came_to_no_step() -> None:
    """Otherwise one that cannot go on by itself would try again without end."""
    resume = Resumption(run=RunId("before"), checkpoint=MANIFEST.digest, moment=Moment())
    request = ms.Prepare(plan=replace(TWO, resume=resume), manifest=MANIFEST)
    state = co.coordinate(ANNA, request, 0.0, falls_back=True)
    parts = {device: dataclasses.replace(part, takes_part=False) for device, part in state.parts.items()}
    assert dataclasses.replace(state, parts=MappingProxyType(parts)).left_out == [BEN]
