"""The starter's machine among real members' machines: who is told what, and which verdict comes out."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.runtime.timers import TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.limits import Wait
from core.vocabulary.phases import Exit, Failed, Finished, Preparing, Starting, Stopped, Stopping, Training
from core.vocabulary.plan import Plan, Role
from core.vocabulary.progress import Expectation, LogLines, Progress
from core.vocabulary.trainer_messages import Booted, Measured, Meeting, Met, Progressed
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.world import FINISHED, LOST, MANIFEST, OUTPUTS, World, failing


def verdict(world: World) -> Problem:
    assert isinstance(world.phase, Failed)
    return world.phase.problem


def training(world: World | None = None) -> World:
    world = world or World()
    world.start_training()
    assert isinstance(world.phase, Training)
    return world


def phases_of(world: World) -> list[str]:
    return [type(event.phase).__name__ for event in world.events if isinstance(event, ev.RunPhaseChanged)]


# --- the usual way ---------------------


def test_a_run_of_two_goes_its_way_and_both_screens_show_the_same() -> None:
    world = training()
    world.each_trainer_ends()
    assert phases_of(world) == ["Preparing", "Starting", "Training", "Finished"]
    assert world.screens[BEN].run == world.state.run
    assert world.state.run is not None
    summary = world.state.run.summary
    assert summary is not None
    assert summary.strategy == "MultiWorkerMirroredStrategy"
    assert summary.weights_sha256 == {ANNA: "f" * 64, BEN: "f" * 64}
    assert summary.outputs == ("model.keras",)
    assert summary.steps == 1
    assert world.over
    assert not world.waits
    assert all(side.outputs_taken is not None for side in world.members.values())


EXPECTED = Expectation(alone_s=(0.1, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1_000, shares=(43, 21))


def test_what_the_members_measure_is_shown_to_all_and_stays_with_what_came_out() -> None:
    world = World()
    world.start_training()
    world.each_trainer_says(Measured(expectation=EXPECTED))
    assert len([event for event in world.events if isinstance(event, ev.MemberMeasured)]) == 1
    for state in (world.state, world.screens[BEN]):
        assert state.run is not None and state.run.expectation == EXPECTED
    for number in range(3):
        world.now_s += 1.0
        step = Progress(at_s=number, epoch=0, epochs=1, step=number, batch=number, step_s=0.08, share=43)
        world.each_trainer_says(Progressed(progress=step))
    world.each_trainer_ends()
    run = world.screens[BEN].run
    assert run is not None and run.summary is not None and run.summary.settled is not None
    assert run.summary.expectation == EXPECTED
    assert run.summary.settled.step_s == 0.08


def test_odd_numbers_of_a_chief_do_not_cost_the_rest_of_the_summary() -> None:
    world = training()
    step = Progress(at_s=1.0, epoch=0, epochs=1, step=1, batch=1, step_s=0.08, samples_s=1e300, wire_s=1e300)
    world.each_trainer_says(Progressed(progress=step))
    tally = world.starter.tally
    odd = dataclasses.replace(tally, expectation=replace(EXPECTED, alone_s=(0.1,)))
    world.starter = dataclasses.replace(world.starter, tally=odd)
    world.each_trainer_ends()
    run = world.state.run
    assert run is not None and run.summary is not None
    assert run.summary.steps > 0
    assert run.summary.expectation is None and run.summary.settled is None


def test_only_the_chief_measures_and_only_what_can_be() -> None:
    world = training()
    odd = replace(EXPECTED, shares=(1, 2, 3))
    for device, expectation in ((BEN, EXPECTED), (ANNA, odd)):
        event = ev.MemberMeasured(run=world.starter.plan.run, device=device, expectation=expectation)
        world.tell(ms.From(device, ms.Reported(event=event)))
    assert world.state.run is not None and world.state.run.expectation is None
    assert not [event for event in world.events if isinstance(event, ev.MemberMeasured)]


def test_three_members_are_launched_together() -> None:
    world = World(plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest))
    ben = world.members[BEN]
    while not (ben.known and isinstance(ben.known.stage, pa.Ready)):
        world.possible()[0]()
    assert not any(side.trainers for side in world.members.values())
    training(world)
    assert all(side.trainers for side in world.members.values())
    world.each_trainer_ends()
    assert isinstance(world.phase, Finished)


def test_one_device_alone_needs_nobody() -> None:
    world = World(plan_of((ANNA,), project=MANIFEST.digest))
    training(world)
    world.each_trainer_ends()
    assert isinstance(world.phase, Finished)


def test_a_starter_that_takes_no_part_coordinates_all_the_same() -> None:
    world = World(plan_of((BEN, CLEO), project=MANIFEST.digest))
    training(world)
    world.each_trainer_ends()
    assert isinstance(world.phase, Finished)
    assert world.screens[CLEO].run == world.state.run


def test_outputs_of_a_remote_chief_are_taken_and_acknowledged() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    world.each_trainer_ends()
    assert isinstance(world.phase, Finished)
    assert world.members[BEN].outputs_taken is True


def test_members_see_nothing_of_a_run_before_their_user_allows_it() -> None:
    world = World(allowed=False)
    world.settle()
    assert [type(event) for event in world.members[BEN].shown] == [ev.ConsentAsked]
    world.tell_member(BEN, pa.Decided(True))
    training(world)
    assert world.screens[BEN].run == world.state.run


def test_the_place_of_the_project_is_told_to_nobody_else() -> None:
    world = World()
    prepare = world.to_member[BEN][0]
    assert isinstance(prepare, ms.Prepare)
    assert prepare.source == ""
    own = world.to_member[ANNA][0]
    assert isinstance(own, ms.Prepare)
    assert own.source == "/home/anna/project"


# --- preparing ---------------------


def test_a_user_who_says_no_is_named() -> None:
    world = World(allowed=False)
    world.settle()
    world.tell_member(BEN, pa.Decided(False))
    world.settle()
    assert "Ben's does not take part: its user did not allow" in verdict(world).what
    assert world.members[BEN].shown == [
        world.members[BEN].shown[0],
        ev.ConsentSettled(run=world.starter.plan.run, allowed=False),
    ]


def test_a_user_who_never_answers_is_named_and_the_question_taken_away() -> None:
    world = World(allowed=False)
    world.settle()
    assert world.waits["consent"] == limits.CONSENT_S
    world.fire("consent")
    world.settle()
    assert verdict(world).code == "no-consent"
    assert "Ben's" in verdict(world).what
    assert isinstance(world.members[BEN].shown[-1], ev.ConsentSettled)


def test_a_member_that_stops_receiving_is_named() -> None:
    world = World()
    while not world.members[BEN].jobs:
        world.possible()[0]()
    world.members[BEN].jobs.clear()
    world.settle()
    world.tell(ms.From(BEN, ms.FilesWanted(run=world.starter.plan.run, files=(0,))))
    world.fire("receive")
    assert verdict(world).code == "not-prepared"
    assert "Ben's" in verdict(world).what


def test_receiving_slowly_is_a_sign_of_life() -> None:
    world = World()
    world.tell(ms.From(BEN, ms.FilesWanted(run=world.starter.plan.run, files=(0,))))
    del world.waits["receive"]
    event = ev.MemberPhaseChanged(run=world.starter.plan.run, device=BEN, phase="receiving", done=1, total=9)
    world.tell(ms.From(BEN, ms.Reported(event=event)))
    assert world.waits["receive"] == limits.RECEIVE_S


def test_a_project_that_cannot_be_sent_ends_the_run() -> None:
    world = World()
    world.tell(co.SendingFailed(BEN, Problem(code="project-changed", what="train.py changed.")))
    assert verdict(world).code == "project-changed"


@pytest.mark.parametrize("ports", [{}, {"worker:0": 80}, {"worker:0": 20001, "ps:0": 20002}])
def test_ports_that_cannot_be_end_the_run(ports: dict[str, int]) -> None:
    world = World()
    run = world.starter.plan.run
    world.tell(ms.From(BEN, ms.FilesWanted(run=run, files=())))
    world.tell(ms.From(BEN, ms.Prepared(run=run, ports=ports)))
    assert verdict(world).code == "broken-talk"


BY_TENSORFLOW = plan_of(project=MANIFEST.digest)
TLS = plan_of(exchange="tls", project=MANIFEST.digest)


@pytest.mark.parametrize(
    ("plan", "certificates"),
    [
        (TLS, {}),
        (TLS, {"worker:0": b""}),
        (TLS, {"worker:0": bytes(4000)}),
        (TLS, {"worker:0": b"one", "chief:0": b"another"}),
        (BY_TENSORFLOW, {"worker:0": b"of no use"}),
    ],
)
def test_certificates_that_cannot_be_end_the_run(plan: Plan, certificates: dict[str, bytes]) -> None:
    world = World(plan)
    world.tell(ms.From(BEN, ms.FilesWanted(run=plan.run, files=())))
    world.tell(ms.From(BEN, ms.Prepared(run=plan.run, ports={"worker:0": 21_000}, certificates=certificates)))
    assert verdict(world).code == "broken-talk"


def test_everybody_is_told_everybodys_port_and_certificate() -> None:
    world = World(TLS)
    for device, task, port in ((ANNA, "chief:0", 21_000), (BEN, "worker:0", 22_000)):
        world.tell(ms.From(device, ms.FilesWanted(run=TLS.run, files=())))
        made = {task: f"{task}'s".encode()}
        world.tell(ms.From(device, ms.Prepared(run=TLS.run, ports={task: port}, certificates=made)))
    for device in (ANNA, BEN):
        launch = world.to_member[device].pop()
        assert isinstance(launch, ms.Launch)
        told = [(task.name, task.port, task.certificate) for task in launch.plan.tasks]
        assert told == [("chief:0", 21_000, b"chief:0's"), ("worker:0", 22_000, b"worker:0's")]


def test_two_members_that_choose_one_address_are_told_so() -> None:
    loopback = plan_of(hosts={ANNA: "127.0.0.1", BEN: "127.0.0.1"}, project=MANIFEST.digest)
    world = World(loopback)
    for device, task in ((ANNA, "chief:0"), (BEN, "worker:0")):
        world.tell(ms.From(device, ms.FilesWanted(run=loopback.run, files=())))
        world.tell(ms.From(device, ms.Prepared(run=loopback.run, ports={task: 21_000})))
    assert verdict(world).code == "same-address"


def test_a_member_lost_while_preparing_is_named() -> None:
    world = World(allowed=False)
    world.settle()
    world.cut_link(BEN)
    assert verdict(world).code == "device-lost"
    assert "Ben's" in verdict(world).what


def test_only_who_has_not_answered_is_waited_for_and_named() -> None:
    world = World(plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest), allowed=False)
    world.settle()
    run = world.starter.plan.run
    world.tell(ms.From(BEN, ms.FilesWanted(run=run, files=())))
    assert "consent" in world.waits
    world.tell(ms.From(BEN, ms.Prepared(run=run, ports={"worker:0": 20001})))
    assert "receive" not in world.waits, "who has answered is ready"
    world.fire("consent")
    assert "Cleo's" in verdict(world).what
    assert "Ben's" not in verdict(world).what


def test_only_who_is_not_ready_is_named_as_such() -> None:
    world = World()
    run = world.starter.plan.run
    for device in (ANNA, BEN):
        world.tell(ms.From(device, ms.FilesWanted(run=run, files=())))
    assert "consent" not in world.waits
    world.tell(ms.From(ANNA, ms.Prepared(run=run, ports={"chief:0": 20000})))
    world.fire("receive")
    assert verdict(world).code == "not-prepared"
    assert "Ben's" in verdict(world).what
    assert "Anna's" not in verdict(world).what


@pytest.mark.parametrize(("port", "is_taken"), [(1023, False), (1024, True), (65535, True), (65536, False)])
def test_a_port_that_others_connect_to_is_an_ordinary_one(port: int, is_taken: bool) -> None:
    world = World()
    run = world.starter.plan.run
    world.tell(ms.From(BEN, ms.FilesWanted(run=run, files=())))
    world.tell(ms.From(BEN, ms.Prepared(run=run, ports={"worker:0": port})))
    assert isinstance(world.phase, Preparing if is_taken else Failed)


def test_a_member_is_ready_only_once_and_only_after_it_has_agreed() -> None:
    world = World()
    run = world.starter.plan.run
    world.tell(ms.From(BEN, ms.Prepared(run=run, ports={})))
    assert world.starter.parts[BEN].prepared is None
    world.tell(ms.From(BEN, ms.FilesWanted(run=run, files=())))
    world.tell(ms.From(BEN, ms.Prepared(run=run, ports={"worker:0": 20001})))
    world.tell(ms.From(BEN, ms.Prepared(run=run, ports={})))
    prepared = world.starter.parts[BEN].prepared
    assert prepared is not None and prepared.ports == {"worker:0": 20001}


def test_words_about_another_run_are_not_heard() -> None:
    world = training()
    known, another = world.starter, RunId("another")
    world.tell(ms.From(BEN, ms.StopAsked(run=another)))
    world.tell(ms.From(BEN, ms.Declined(run=another, problem=LOST)))
    assert world.starter == known


# --- starting ---------------------


def test_trainers_that_never_start_are_named_with_their_ports() -> None:
    world = World()
    world.settle()
    assert isinstance(world.phase, Starting)
    world.fire("start")
    assert isinstance(world.starter.stage, co.Ending)
    assert "Anna's and Ben's" in str(world.starter.stage.cause)
    assert "20000 and 20001" in str(world.starter.stage.cause)
    world.each_trainer_ends(failing("killed"))
    assert verdict(world).code == "not-started"


def test_an_own_loop_trains_as_soon_as_its_script_runs() -> None:
    world = World(plan_of(strategy="own", project=MANIFEST.digest))
    world.settle()
    world.each_trainer_says(Booted(seconds=1, devices=()))
    assert isinstance(world.phase, Training)
    assert "start" not in world.waits


def test_a_member_that_ended_at_once_is_not_waited_for_at_the_start() -> None:
    world = World()
    world.settle()
    world.trainer_ends(BEN, "worker:0", FINISHED)
    world.settle()
    assert "start" in world.waits
    world.trainer_says(ANNA, "chief:0", Booted(seconds=1, devices=()))
    world.trainer_says(ANNA, "chief:0", Meeting())
    world.trainer_says(ANNA, "chief:0", Met(strategy="MultiWorkerMirroredStrategy", replicas=2))
    world.settle()
    assert "start" not in world.waits


# --- the first cause ---------------------


def test_a_script_error_is_named_with_its_member_and_ends_all_at_once() -> None:
    world = training()
    world.trainer_ends(BEN, "worker:0", failing("script-error", "ValueError in line 7."))
    world.settle()
    assert world.members[ANNA].trainers == {"chief:0": 2}
    world.trainer_ends(ANNA, "chief:0", failing("killed"))
    world.settle()
    assert verdict(world).what == "On Ben's: ValueError in line 7."


def test_a_script_error_that_comes_after_its_consequence_is_still_the_cause() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", failing("lost-peer"))
    world.settle()
    assert world.waits == {"cause": limits.CAUSE_S}
    assert world.members[BEN].trainers == {"worker:0": -1}
    world.trainer_ends(BEN, "worker:0", failing("script-error", "ValueError in line 7."))
    world.settle()
    assert verdict(world).what == "On Ben's: ValueError in line 7."


def test_a_consequence_alone_is_the_verdict_after_a_moment() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.settle()
    world.fire("cause")
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.trainer_ends(BEN, "worker:0", failing("killed"))
    world.settle()
    assert verdict(world).what == "On Anna's: A peer was lost."


def test_a_laptop_that_fell_silent_is_the_cause_although_tensorflow_missed_it_sooner() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.settle()
    world.fire("cause")
    world.settle()
    world.cut_link(BEN)
    world.settle()
    assert verdict(world).code == "device-lost"


def test_a_fault_of_its_own_that_is_told_at_the_very_end_is_the_cause() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.settle()
    world.fire("cause")
    world.settle()
    world.trainer_ends(BEN, "worker:0", failing("script-error", "ValueError in line 7."))
    world.settle()
    assert verdict(world).what == "On Ben's: ValueError in line 7."


def test_a_lost_member_is_shown_as_ended_with_the_reason() -> None:
    world = training()
    world.cut_link(BEN)
    told = [event for event in world.events if isinstance(event, ev.MemberPhaseChanged)][-1]
    assert (told.device, told.phase, told.words) == (BEN, "ended", "its link was lost")


def test_the_moment_for_a_better_cause_leaves_time_within_three_seconds() -> None:
    assert limits.CAUSE_S <= 1.5


def test_a_lost_member_ends_the_others_at_once_and_is_named() -> None:
    world = training()
    world.cut_link(BEN)
    world.settle()
    assert world.members[ANNA].trainers == {"chief:0": 2}
    world.trainer_ends(ANNA, "chief:0", failing("killed"))
    world.settle()
    assert verdict(world).code == "device-lost"
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.trainer_ends(BEN, "worker:0", failing("killed"))
    assert [phase.problem.code for phase in world.last_phases(world.members[BEN].shown)] == [  # type: ignore[union-attr]
        "starter-lost"
    ]


def test_a_member_that_does_not_end_is_not_waited_for_without_end() -> None:
    world = training()
    world.trainer_ends(BEN, "worker:0", failing("killed"))
    world.settle()
    world.fire("end")
    assert isinstance(world.phase, Failed)
    assert "Anna's did not say" in world.said()


def test_what_was_killed_by_us_is_never_the_cause() -> None:
    world = training()
    world.trainer_ends(BEN, "worker:0", failing("out-of-memory", "Memory was full."))
    world.settle()
    world.trainer_ends(ANNA, "chief:0", failing("killed", "Killed."))
    world.settle()
    assert verdict(world).code == "out-of-memory"


# --- stopping ---------------------


def test_stop_asks_all_at_the_same_time_and_brings_the_outputs() -> None:
    world = training()
    world.tell(co.StopWanted("Anna's", 0))
    world.settle()
    assert [side.trainers for side in world.members.values()] == [{"chief:0": 0}, {"worker:0": 0}]
    world.each_trainer_ends(Exit(reason="stopped"))
    assert world.phase == Stopped(by="Anna's")
    assert phases_of(world)[-2:] == ["Stopping", "Stopped"]
    assert world.starter.tally.outputs == ("model.keras",)


def test_each_further_stop_is_harder_and_a_member_may_stop_too() -> None:
    world = training()
    run = world.starter.plan.run
    for force in (0, 1, 2):
        world.tell(ms.From(BEN, ms.StopAsked(run=run, force=force)))
        world.settle()
        assert world.members[ANNA].trainers == {"chief:0": force}
    world.each_trainer_ends(failing("killed"))
    assert world.phase == Stopped(by="Ben's")


def test_a_stop_that_takes_too_long_grows_by_itself() -> None:
    world = training()
    world.tell(co.StopWanted("Anna's", 0))
    for force in (1, 2):
        world.fire("stop")
        world.settle()
        assert world.members[BEN].trainers == {"worker:0": force}
    world.fire("stop")
    world.fire("end")
    assert world.phase == Stopped(by="Anna's")
    assert "is now terminated" in world.said()
    assert "is now killed" in world.said()


def test_stop_before_any_step_does_not_wait_for_one() -> None:
    world = World()
    world.settle()
    world.tell(co.StopWanted("Anna's", 0))
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 1}
    world.each_trainer_ends(Exit(reason="stopped"))
    assert isinstance(world.phase, Stopped)


def test_stop_while_preparing_ends_the_run_there() -> None:
    world = World(allowed=False)
    world.settle()
    before = world.phase
    assert isinstance(before, Preparing)
    world.tell(co.StopWanted("Anna's", 0))
    world.settle()
    assert world.phase == Stopped(by="Anna's")
    assert isinstance(world.members[BEN].shown[-1], ev.ConsentSettled)


def test_a_script_that_fails_while_stopping_gently_failed() -> None:
    world = training()
    world.tell(co.StopWanted("Anna's", 0))
    world.settle()
    assert isinstance(world.phase, Stopping)
    world.trainer_ends(BEN, "worker:0", failing("script-error", "The callback broke."))
    world.settle()
    world.trainer_ends(ANNA, "chief:0", failing("killed"))
    world.settle()
    assert verdict(world).code == "script-error"


def test_a_member_lost_while_stopping_ends_the_others_and_the_stop_stands() -> None:
    world = training()
    world.tell(co.StopWanted("Anna's", 0))
    world.settle()
    world.cut_link(BEN)
    world.settle()
    assert world.members[ANNA].trainers == {"chief:0": 2}
    world.trainer_ends(ANNA, "chief:0", failing("killed"))
    world.settle()
    assert isinstance(world.phase, Stopped)


def test_a_fault_while_everything_is_being_killed_does_not_turn_a_stop_into_a_failure() -> None:
    world = training()
    world.tell(co.StopWanted("Anna's", 1))
    world.trainer_ends(BEN, "worker:0", failing("script-error", "Interrupted."))
    world.settle()
    for wait in ("stop", "stop"):
        world.fire(wait)
        world.settle()
    world.trainer_ends(ANNA, "chief:0", failing("script-error", "Interrupted."))
    world.settle()
    assert world.phase == Stopped(by="Anna's")


def test_a_stop_harder_than_any_is_the_hardest() -> None:
    world = training()
    world.tell(co.StopWanted("Anna's", 9))
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2}
    assert world.waits == {"stop": limits.STOP_S[2]}
    world.tell(co.StopWanted("Anna's", 0))
    world.settle()
    assert world.waits == {"stop": limits.STOP_S[2]}, "a gentler one changes nothing"


def test_closing_tandem_ends_the_run_as_a_stop() -> None:
    world = training()
    world.tell(co.NodeEnds("Anna's"))
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.each_trainer_ends(failing("killed"))
    assert world.phase == Stopped(by="Anna's")


def test_closing_tandem_while_a_cause_is_looked_for_keeps_the_cause() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.settle()
    world.tell(co.NodeEnds("Anna's"))
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.each_trainer_ends(failing("killed"))
    assert verdict(world).what == "On Anna's: A peer was lost."


def test_who_stopped_first_is_named_although_tandem_is_closed_afterwards() -> None:
    world = training()
    world.tell(co.StopWanted("Ben's", 2))
    world.tell(co.NodeEnds("Anna's"))
    world.tell(co.NodeEnds("Anna's"))
    world.each_trainer_ends(failing("killed"))
    assert world.phase == Stopped(by="Ben's")


# --- unequal ends ---------------------


def test_a_member_that_never_ends_is_named() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", FINISHED)
    world.settle()
    assert world.waits["finish"] == limits.FINISH_S
    world.fire("finish")
    world.settle()
    world.trainer_ends(BEN, "worker:0", failing("killed"))
    world.settle()
    assert verdict(world).code == "still-running"
    assert "Ben's" in verdict(world).what


def served_run() -> World:
    fixed = {ANNA: (Role.CHIEF,), BEN: (Role.WORKER, Role.PS)}
    return training(World(plan_of(fixed=fixed, strategy="own", project=MANIFEST.digest)))


def test_what_only_serves_is_ended_once_the_chief_has_finished() -> None:
    world = served_run()
    world.trainer_ends(ANNA, "chief:0", FINISHED)
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 1, "ps:0": 1}
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Finished)


def test_what_only_serves_is_killed_if_it_does_not_end() -> None:
    world = served_run()
    world.trainer_ends(ANNA, "chief:0", FINISHED)
    world.settle()
    world.fire("finish")
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2, "ps:0": 2}
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Finished)


def test_a_parameter_server_that_dies_fails_the_run() -> None:
    world = served_run()
    world.trainer_ends(BEN, "ps:0", failing("killed", "It was killed."))
    world.settle()
    world.each_trainer_ends(failing("killed"))
    assert verdict(world).what == "On Ben's (ps:0): It was killed."


def test_outputs_that_never_come_are_said_with_where_they_are() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    world.members[BEN].jobs.clear()
    world.settle()
    world.fire("outputs")
    assert verdict(world).code == "outputs-missing"
    assert "Ben's" in verdict(world).fix


def remote_chief_offers() -> World:
    """Ben's, the chief, has offered its outputs; nothing was taken yet."""
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    while not world.jobs:
        world.possible()[0]()
    world.jobs.clear()
    world.settle()
    return world


def test_outputs_that_cannot_be_kept_here_fail_the_run_with_the_reason() -> None:
    world = remote_chief_offers()
    world.tell(co.OutputsFailed(Problem(code="disk-full", what="The disk is full.")))
    world.settle()
    assert verdict(world).code == "outputs-missing"
    assert "The disk is full." in str(verdict(world))
    assert len(world.last_phases()) == 1


def test_each_piece_of_the_outputs_is_a_sign_of_life() -> None:
    world = remote_chief_offers()
    world.waits["outputs"] = 1.0  # most of it has passed
    world.tell(co.OutputsCame())
    assert world.waits == {"outputs": limits.OUTPUTS_S}


def test_outputs_that_nobody_takes_change_nothing() -> None:
    world = training()
    known = world.starter
    world.tell(co.OutputsFailed(LOST))
    world.tell(co.OutputsStored(("model.keras",)))
    world.tell(co.OutputsCame())
    assert world.starter == known


def test_outputs_are_taken_once_and_from_the_chief_after_its_end_alone() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    offer = ms.OutputsOffered(run=world.starter.plan.run, manifest=OUTPUTS, problem=LOST)
    world.tell(ms.From(BEN, offer))
    world.trainer_ends(BEN, "chief:0", FINISHED)
    world.members[BEN].jobs.clear()
    world.settle()
    world.tell(ms.From(ANNA, offer))
    assert not world.jobs
    world.tell(ms.From(BEN, offer))
    world.tell(ms.From(BEN, offer))
    assert list(world.jobs) == [co.TakeOutputs(BEN, OUTPUTS)]
    assert world.said() == f"{LOST}\n", "what could not be brought is said"


def test_outputs_that_fail_after_a_stop_are_said_and_the_stop_stands() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    world.tell(co.StopWanted("Anna's", 0))
    world.settle()
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, Exit(reason="stopped"))
    world.members[BEN].jobs.clear()
    world.settle()
    world.fire("outputs")
    world.settle()
    assert world.phase == Stopped(by="Anna's")
    assert "Ben's" in world.said()


def test_a_chief_lost_before_its_outputs_came_failed() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    world.members[BEN].jobs.clear()
    world.settle()
    world.tell(co.MemberLost(BEN, LOST))
    assert verdict(world).code == "outputs-missing"


def test_a_worker_lost_after_its_end_does_no_harm() -> None:
    world = training()
    world.trainer_ends(BEN, "worker:0", FINISHED)
    world.settle()
    world.tell(co.MemberLost(BEN, LOST))
    world.trainer_ends(ANNA, "chief:0", FINISHED)
    world.settle()
    assert isinstance(world.phase, Finished)


def test_that_nothing_was_shared_is_said_plainly() -> None:
    world = training()
    world.each_trainer_ends(Exit(reason="finished", shared=False))
    assert isinstance(world.phase, Finished)
    assert "Nothing was shared" in world.said()


def test_different_weights_are_said() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", Exit(reason="finished", weights_sha256="1" * 64))
    world.trainer_ends(BEN, "worker:0", Exit(reason="finished", weights_sha256="2" * 64))
    world.settle()
    assert "different weights" in world.said()


def test_alone_and_in_a_loop_of_its_own_unequal_weights_are_nobodys_business() -> None:
    for plan in (
        plan_of((ANNA,), project=MANIFEST.digest),
        plan_of(strategy="own", project=MANIFEST.digest),
    ):
        world = World(plan)
        world.start_training()
        for number, (device, side) in enumerate(world.members.items()):
            for task in tuple(side.trainers):
                world.trainer_ends(
                    device,
                    task,
                    Exit(reason="finished", shared=len(world.members) > 1, weights_sha256=str(number) * 64),
                )
        world.settle()
        assert isinstance(world.phase, Finished)
        assert world.said() == ""


# --- a member that lies ---------------------


def test_a_member_speaks_for_itself_alone() -> None:
    world = training()
    before = len(world.events)
    run = world.starter.plan.run
    for event in (
        ev.MemberEnded(run=run, device=ANNA, task="chief:0", exit=FINISHED),
        ev.MemberEnded(run=run, device=BEN, task="chief:0", exit=FINISHED),
        ev.RunPhaseChanged(run=run, phase=Finished()),
        ev.RunPlanned(plan=world.starter.plan),
        ev.MemberLogged(
            run=run, device=BEN, lines=LogLines(task="chief:0", stream="stdout", text="I am Anna")
        ),
        ev.MemberLogged(run=run, device=BEN, lines=LogLines(task="made up", stream="stdout", text="x")),
    ):
        world.tell(ms.From(BEN, ms.Reported(event=event)))
    assert len(world.events) == before
    assert isinstance(world.phase, Training)


def test_a_stranger_is_not_heard() -> None:
    world = training()
    known = world.starter
    world.tell(ms.From(CLEO, ms.StopAsked(run=known.plan.run)))
    world.tell(co.MemberLost(CLEO, LOST))
    assert world.starter == known


def test_a_wait_that_was_called_off_does_nothing() -> None:
    world = training()
    waits: tuple[Wait, ...] = ("consent", "receive", "start", "stop", "end", "cause", "finish", "outputs")
    known = world.starter
    for wait in waits:
        world.tell(TimerFired(wait))
    assert world.starter == known
