"""Runs under any order of events, losses, stops and silences: invariants that always hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.vocabulary import trainer_messages
from core.vocabulary.errors import GOES_BACK, LEFT_RUN, Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Exit, Starting, Training, ended
from core.vocabulary.plan import Plan, Role
from core.vocabulary.waits import PeerWait, TrainerStatus
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.world import FINISHED, LOST, MANIFEST, World, failing, progress

LEFT = Problem(code=LEFT_RUN, what="it left")
EXITS = (
    FINISHED,
    Exit(reason="stopped"),
    Exit(reason="finished", shared=False),
    failing("script-error"),
    failing("lost-peer"),
    failing("never-met"),
    failing("killed"),
    failing("out-of-memory"),
    Exit(reason="killed", problem=LEFT),
    Exit(reason="stopped", problem=Problem(code=GOES_BACK, what="it goes back")),
)
WISHES = (
    *(co.StopWanted("Anna's", force) for force in (0, 1, 2)),
    co.GoesOn(("Cleo's",)),
    co.GoesOn((), elsewhere=True),
    co.WaitedOn(),
    co.NodeEnds("Anna's"),
    co.GivesWay(LOST),
    co.Broke(LOST),
)
REPORTS = (
    trainer_messages.Booted(seconds=1.0, devices=()),
    trainer_messages.Connecting(),
    trainer_messages.Met(strategy="MirroredStrategy", replicas=2),
    progress(),
    trainer_messages.StatusChanged(
        status=TrainerStatus(activity="script", where="train.py, line 1", lasted_s=3.0)
    ),
    trainer_messages.StatusChanged(
        status=TrainerStatus(
            activity="exchange", peers=(PeerWait(rank=0, lasted_s=3.0), PeerWait(rank=1, lasted_s=3.0))
        )
    ),
    trainer_messages.StatusChanged(),
)
PLANS = (
    plan_of(project=MANIFEST.digest),
    plan_of((ANNA,), project=MANIFEST.digest),
    plan_of((ANNA, BEN, CLEO), fixed={CLEO: (Role.CHIEF,)}, project=MANIFEST.digest),
    plan_of((BEN, CLEO), project=MANIFEST.digest),
    plan_of((BEN, ANNA, CLEO), project=MANIFEST.digest),
    plan_of(
        fixed={BEN: (Role.CHIEF, Role.PS), ANNA: (Role.WORKER,)}, strategy="own", project=MANIFEST.digest
    ),
)


Pick = Callable[[Sequence[Any]], Any]
ORDERS = 100_000


def choices(world: World, pick: Pick) -> list[Callable[[], None]]:
    """Everything that could happen next."""
    found = list(world.possible())
    for wait in tuple(world.waits):
        found.append(lambda wait=wait: world.fire(wait))  # type: ignore[misc]
    wish = pick(WISHES)
    found.append(lambda: world.tell(wish))
    for device, side in world.members.items():
        if device != ANNA and device not in world.cut | world.lost:
            found.append(lambda device=device: world.cut_link(device))  # type: ignore[misc]
        if device != ANNA and device not in world.lost:
            found.append(lambda device=device: world.lose_link(device))  # type: ignore[misc]
        if device in world.cut:
            found.append(lambda device=device: world.restore_link(device))  # type: ignore[misc]
        if side.known is None:
            continue
        for wait in tuple(side.waits):
            found.append(lambda d=device, wait=wait: world.fire_member(d, wait))  # type: ignore[misc]
        for allowed in (True, False):
            found.append(
                lambda d=device, allowed=allowed: world.tell_member(d, pa.Decided(allowed))  # type: ignore[misc]
            )
        for told in (pa.PreparingFailed(LOST), pa.LeaveWanted(LEFT)):
            found.append(lambda d=device, told=told: world.tell_member(d, told))  # type: ignore[misc]
        for task in tuple(side.trainers):
            report, end = pick(REPORTS), pick(EXITS)
            found.append(lambda d=device, t=task, r=report: world.trainer_says(d, t, r))  # type: ignore[misc]
            found.append(lambda d=device, t=task, e=end: world.trainer_ends(d, t, e))  # type: ignore[misc]
    return found


def running(world: World) -> list[DeviceId]:
    unheard = world.cut | world.lost
    return [device for device, side in world.members.items() if side.trainers and device not in unheard]


def check_that_something_is_waited_for(world: World) -> None:
    """A run that is not over has a running limit, or trainers whose end will be reported."""
    if ended(world.phase) or world.waits or world.possible():
        return
    assert isinstance(world.phase, Training | Starting), world.phase
    assert running(world)


def drain(world: World) -> None:
    """Nothing more happens from outside; requested ends arrive, then time passes."""
    for _ in range(200):
        world.settle()
        asked = [
            (device, task)
            for device, side in world.members.items()
            for task, force in side.trainers.items()
            if force == 2
        ]
        if asked:
            world.trainer_ends(*asked[0], failing("killed"))
        elif limits := [wait for wait in world.waits if wait != "look"]:
            world.fire(limits[0])
        elif member_limits := [
            (d, w) for d, side in world.members.items() for w in side.waits if w != "look"
        ]:
            world.fire_member(*member_limits[0])
        elif left := [(d, t) for d, side in world.members.items() for t in side.trainers]:
            assert not ended(world.phase), "a trainer outlives its run"
            world.trainer_ends(*left[0], FINISHED)
        elif waiting := [
            device
            for device, side in world.members.items()
            if side.known is not None and isinstance(side.known.stage, pa.Asking)
        ]:
            world.tell_member(waiting[0], pa.Decided(False))
        elif looks := [(d, w) for d, side in world.members.items() for w in side.waits]:
            world.fire_member(*looks[0])
        else:
            return
    raise AssertionError("it never comes to an end")


@effort(max_examples=150, deadline=None)
@given(plan=st.sampled_from(PLANS), allowed=st.booleans(), further=st.booleans(), data=st.data())
def test_every_run_ends_once_and_with_all_its_trainers(
    plan: Plan, allowed: bool, further: bool, data: st.DataObject
) -> None:
    steps = data.draw(st.integers(0, 30))
    ends(plan, allowed, further, steps, lambda them: data.draw(st.sampled_from(them)))


@pytest.mark.complete
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_runs_end_once_and_with_all_their_trainers() -> None:
    """In half of them the training is under way before anything else happens."""
    for seed in range(ORDERS):
        any_of = random.Random(seed)
        plan, allowed = any_of.choice(PLANS), any_of.random() < 0.9
        further, trains = any_of.random() < 0.8, any_of.random() < 0.5
        try:
            ends(plan, allowed, further, any_of.randrange(31), any_of.choice, trains=trains)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_a_member_that_stops_to_go_on_alone_has_a_limit_even_once_the_starter_has_ended_the_run() -> None:
    world = World(plan_of(project=MANIFEST.digest))
    world.start_training()
    world.cut_link(BEN)
    ben = world.members[BEN]
    while "away" in ben.waits:
        world.fire_member(BEN, "away")
    assert ben.trainers == {"worker:0": 0}, "it may end its step"
    world.tell(co.Broke(LOST))
    world.restore_link(BEN)
    world.settle()
    world.fire_member(BEN, "leave")
    assert ben.trainers == {"worker:0": 2}


def ends(plan: Plan, allowed: bool, further: bool, steps: int, pick: Pick, *, trains: bool = False) -> None:
    """Whatever happens in this order, and then nothing. ``further``: all that needs nobody has happened
    before. ``trains``: the training is under way."""
    world = World(plan, allowed=allowed)
    if allowed and trains:
        world.start_training()
    elif allowed and further:
        world.settle()
    for _ in range(steps):
        pick(choices(world, pick))()
        check_that_something_is_waited_for(world)
    drain(world)
    assert ended(world.phase)
    assert world.over
    assert not world.waits
    assert len(world.last_phases()) == 1
    for device, side in world.members.items():
        assert not side.trainers
        assert not side.waits
        if side.known is None:
            continue
        assert isinstance(side.known.stage, pa.Gone), device
        assert len(world.last_phases(side.shown)) == (1 if world.screens[device].run else 0)
