"""A sealed run waits for a silent laptop, too: its relays outlast the silence. A cut ends it, naming the
laptop."""

from __future__ import annotations

import pytest

from core.run.participant import state as pa
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import SILENT_S
from core.vocabulary.phases import Failed, Finished, Starting, Training
from core.vocabulary.trainer_messages import Booted
from tests.core.cluster.laptops import ANNA, BEN, plan_of
from tests.core.run.coordinator.test_patience import shown, told
from tests.core.run.world import FINISHED, LOST, MANIFEST, World, failing

SEALED = plan_of(strategy="own", project=MANIFEST.digest)


def training() -> World:
    """A script with a custom loop, whose steps nobody reports."""
    world = World(SEALED)
    assert world.starter.plan.exchange == "sealed"
    world.settle()
    world.each_trainer_says(Booted(seconds=1.0, devices=()))
    assert isinstance(world.phase, Training)
    return world


def test_a_laptop_that_is_silent_for_a_while_is_away_and_the_run_goes_on_with_it() -> None:
    world = training()
    world.cut_link(BEN)
    world.fire("look")
    world.fire_member(BEN, "look")
    assert shown(world, ANNA) == shown(world, BEN) == ["away"]
    assert world.members[BEN].trainers == {"worker:0": -1}, "its trainer goes on"
    world.now_s += 20.0
    world.restore_link(BEN)
    world.settle()
    assert shown(world, ANNA) == shown(world, BEN) == [] and isinstance(world.phase, Training)
    world.each_trainer_ends(FINISHED)
    assert isinstance(world.phase, Finished)


def test_a_member_that_stays_away_ends_the_run_with_nothing_to_resume() -> None:
    world = training()
    world.cut_link(BEN)
    world.fire("away")
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and world.phase.problem.code == "device-away"
    assert "train again" in world.phase.problem.fix and "resume" not in world.phase.problem.fix


@pytest.mark.parametrize("reason", ["lost-peer", "killed"])
def test_a_cut_between_trainers_names_the_laptop_that_is_away(reason: str) -> None:
    """TensorFlow never redials a connection; the lost laptop is the cause, not its trainer's end."""
    world = training()
    world.cut_link(BEN)
    world.end_trainer(ANNA, "chief:0", failing(reason))
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and world.phase.problem.code == "device-lost"
    assert LOST.what in world.phase.problem.what


def test_a_cut_noticed_before_the_laptops_silence_waits_for_its_name() -> None:
    """The killed laptop's trainers may end a little before its relay: that closes a connection in order."""
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("lost-peer", "Connection reset by peer"))
    world.fire("cause")
    world.settle()
    assert world.waits == {"end": limits.END_LINK_S} and limits.END_LINK_S > SILENT_S
    world.cut_link(BEN)
    world.settle()
    assert isinstance(world.phase, Failed) and world.phase.problem.code == "device-lost"


def back_again(away_s: float = 20.0) -> World:
    """A run that Ben's laptop has rejoined after a silence."""
    world = training()
    world.cut_link(BEN)
    world.now_s += away_s
    world.restore_link(BEN)
    world.settle()
    assert isinstance(world.phase, Training)
    return world


@pytest.mark.parametrize("first", [ANNA, BEN])
def test_a_cut_noticed_after_a_laptops_return_names_that_laptop(first: DeviceId) -> None:
    """For example when it returns with another address: only then the loss of the old one is noticed."""
    world = back_again()
    world.now_s += 100.0
    tasks = {ANNA: "chief:0", BEN: "worker:0"}
    for device in (first, *({ANNA, BEN} - {first})):
        world.end_trainer(device, tasks[device], failing("lost-peer", "Connection reset by peer"))
    assert isinstance(world.phase, Failed)
    problem = world.phase.problem
    assert problem.code == "device-lost" and problem.what == f"Ben's was lost during the run: {LOST.what}"
    assert problem.fix.startswith("Ben's is back") and problem.fix.endswith("Train again.")


def test_a_cut_reported_while_a_laptop_was_away_names_it() -> None:
    world = training()
    world.cut_link(BEN)
    world.trainer_ends(BEN, "worker:0", failing("lost-peer"))
    world.now_s += 20.0
    world.restore_link(BEN)
    world.settle()
    world.fire("cause")
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and "Ben's was lost" in world.phase.problem.what


@pytest.mark.parametrize(("away_s", "later_s"), [(20.0, 200.0), (0.5, 1.0)])
def test_a_laptop_that_returned_long_ago_or_was_hardly_away_is_not_blamed(
    away_s: float, later_s: float
) -> None:
    world = back_again(away_s)
    world.now_s += later_s
    world.end_trainer(ANNA, "chief:0", failing("lost-peer"))
    world.fire("cause")
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and world.phase.problem.code == "lost-peer"


def test_a_script_that_fails_after_a_laptops_return_is_blamed_itself() -> None:
    world = back_again()
    world.trainer_ends(ANNA, "chief:0", failing("lost-peer"))
    world.end_trainer(BEN, "worker:0", failing("script-error", "its own fault"))
    assert isinstance(world.phase, Failed) and "its own fault" in world.phase.problem.what


def test_a_script_that_fails_while_a_laptop_is_away_is_blamed_itself() -> None:
    world = training()
    world.cut_link(BEN)
    world.end_trainer(ANNA, "chief:0", failing("script-error", "its own fault"))
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and "its own fault" in world.phase.problem.what


def test_a_link_lost_before_the_trainers_have_begun_ends_the_run() -> None:
    """They wait for each other by TensorFlow's own limits, which don't know about an absent laptop."""
    world = World(SEALED)
    world.settle()
    assert isinstance(world.phase, Starting)
    assert world.waits["start"] == 2 * limits.LOAD_S + limits.START_MORE_S
    world.cut_link(BEN)
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and world.phase.problem.code == "device-lost"


def test_a_link_lost_while_laptops_get_ready_is_waited_for() -> None:
    world = World(SEALED)
    world.cut_link(BEN)
    world.now_s += 60.0
    assert "away" in world.waits and not world.over
    world.restore_link(BEN)
    world.settle()
    assert isinstance(world.phase, Starting)
    world.each_trainer_says(Booted(seconds=1.0, devices=()))
    world.each_trainer_ends(FINISHED)
    assert isinstance(world.phase, Finished)


def test_the_limit_between_the_members_ends_is_suspended_while_one_is_away() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", FINISHED)
    assert world.waits["finish"] == limits.FINISH_S
    world.cut_link(BEN)
    assert "finish" not in world.waits
    world.restore_link(BEN)
    world.settle()
    assert world.waits["finish"] == limits.FINISH_S
    world.end_trainer(BEN, "worker:0", FINISHED)
    assert isinstance(world.phase, Finished)


def test_an_hour_without_reported_steps_asks_nobody_whether_to_wait() -> None:
    world = training()
    world.now_s += 3600.0
    world.cut_link(BEN)
    world.now_s += 12.0
    world.fire("look")
    assert shown(world, ANNA) == ["away"] and not told(world)[-1].asks
    for _ in range(200):
        world.now_s += limits.LOOK_S
        world.fire("look")
    assert told(world)[-1].asks, "and then it is asked"


def test_a_sealed_trainer_that_is_stopped_is_reported_by_its_node() -> None:
    world = training()
    world.tell_member(BEN, pa.TrainersChecked(frozenset({"worker:0"})))
    world.settle()
    assert shown(world, ANNA) == shown(world, BEN) == ["stopped"]
    world.tell_member(BEN, pa.TrainersChecked(frozenset()))
    world.settle()
    assert isinstance(told(world)[-1], ev.WaitingChanged) and shown(world, ANNA) == []
