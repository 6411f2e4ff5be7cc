"""The starter's machine among real members' machines: the messages to each, and the resulting verdict."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from core.home.certificate import MAX_DER_BYTES
from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.runtime.timers import TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import IllegalTransition, Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.limits import Wait
from core.vocabulary.phases import (
    ARGUMENTS_REFUSED,
    Exit,
    Failed,
    Finished,
    Preparing,
    Starting,
    Stopped,
    Stopping,
    Training,
)
from core.vocabulary.plan import Plan, Role, StrategyKind
from core.vocabulary.progress import Expectation, LogLines, Progress
from core.vocabulary.traffic import From, LinkAway, LinkLost
from core.vocabulary.trainer_messages import Booted, Connecting, Measured, Met, Progressed
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.world import CLOSED, FINISHED, LOST, MANIFEST, OUTPUTS, World, failing, progress


def verdict(world: World) -> Problem:
    assert isinstance(world.phase, Failed)
    return world.phase.problem


SEALED = plan_of(strategy="own", project=MANIFEST.digest)
"""Its trainers don't report exchanges; for waits, see ``test_patience``."""
BENS = plan_of(strategy="own", fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)
"""A custom loop: no run continues without one of its members."""
"""Ben's is the chief, which no run continues without; for other members see ``test_losses``."""


def training(world: World | None = None) -> World:
    world = world or World()
    world.start_training()
    assert isinstance(world.phase, Training)
    return world


def prepared(run: RunId, ports: dict[str, int]) -> ms.Prepared:
    """From a member that is ready to connect to the others over TLS."""
    return ms.Prepared(run=run, ports=ports, certificates={task: task.encode() for task in ports})


def phases_of(world: World) -> list[str]:
    return [type(event.phase).__name__ for event in world.events if isinstance(event, ev.RunPhaseChanged)]


# --- the usual way ---------------------


def test_a_run_of_two_finishes_and_both_screens_show_the_same() -> None:
    world = training()
    world.each_trainer_ends()
    assert phases_of(world) == ["Preparing", "Starting", "Training", "Finished"]
    assert world.screens[BEN].run == world.state.run
    assert world.state.run is not None
    summary = world.state.run.summary
    assert summary is not None
    assert (summary.strategy, summary.exchange) == ("MirroredStrategy", "tls")
    assert summary.weights_sha256 == {ANNA: "f" * 64, BEN: "f" * 64}
    assert summary.outputs == ("model.keras",)
    assert summary.steps == 1
    assert world.over
    assert not world.waits
    assert all(side.outputs_taken is not None for side in world.members.values())


EXPECTED = Expectation(alone_s=(0.1, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1_000, shares=(43, 21))


def test_measurements_are_shown_to_all_and_kept_with_the_result() -> None:
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


def test_implausible_numbers_of_a_chief_do_not_cost_the_rest_of_the_summary() -> None:
    world = training()
    step = Progress(at_s=1.0, epoch=0, epochs=1, step=1, batch=1, step_s=0.08, samples_s=1e300, wire_s=1e300)
    world.each_trainer_says(Progressed(progress=step))
    tally = world.starter.tally
    odd = tally.knowing(expectation=replace(EXPECTED, alone_s=(0.1,)))
    world.starter = dataclasses.replace(world.starter, tally=odd)
    world.each_trainer_ends()
    run = world.state.run
    assert run is not None and run.summary is not None
    assert run.summary.steps > 0
    assert run.summary.expectation is None and run.summary.settled is None


def test_only_plausible_measurements_of_the_chief_count() -> None:
    world = training()
    odd = replace(EXPECTED, shares=(1, 2, 3))
    for device, expectation in ((BEN, EXPECTED), (ANNA, odd)):
        event = ev.MemberMeasured(run=world.starter.plan.run, device=device, expectation=expectation)
        world.tell(From(device, ms.EventTold(event=event)))
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


def test_a_device_alone_needs_no_other() -> None:
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


def test_outputs_of_a_remote_chief_are_fetched_and_acknowledged() -> None:
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


def test_no_other_member_learns_the_projects_path() -> None:
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


def test_a_user_who_never_answers_is_named_and_the_question_withdrawn() -> None:
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
    world.tell(From(BEN, ms.FilesWanted(run=world.starter.plan.run, total_bytes=9)))
    world.fire("receive")
    assert verdict(world).code == "not-prepared"
    assert "Ben's" in verdict(world).what


def test_receiving_slowly_is_a_sign_of_life() -> None:
    world = World()
    world.tell(From(BEN, ms.FilesWanted(run=world.starter.plan.run, total_bytes=9)))
    del world.waits["receive"]
    event = ev.MemberPhaseChanged(run=world.starter.plan.run, device=BEN, phase="receiving", done=1, total=9)
    world.tell(From(BEN, ms.EventTold(event=event)))
    assert world.waits["receive"] == limits.RECEIVE_S


def test_checking_files_before_requesting_any_is_a_sign_of_life_too() -> None:
    world = World()
    del world.waits["consent"]
    event = ev.MemberPhaseChanged(run=world.starter.plan.run, device=BEN, phase="receiving", done=1, total=9)
    world.tell(From(BEN, ms.EventTold(event=event)))
    assert world.waits["consent"] == limits.CONSENT_S


def test_a_project_that_cannot_be_sent_ends_the_run() -> None:
    world = World()
    world.tell(co.SendingFailed(BEN, Problem(code="project-changed", what="train.py changed.")))
    assert verdict(world).code == "project-changed"


@pytest.mark.parametrize("ports", [{}, {"worker:0": 80}, {"worker:0": 20001, "ps:0": 20002}])
def test_impossible_ports_end_the_run(ports: dict[str, int]) -> None:
    world = World()
    run = world.starter.plan.run
    world.tell(From(BEN, ms.FilesWanted(run=run, total_bytes=0)))
    world.tell(From(BEN, prepared(run, ports)))
    assert verdict(world).code == "broken-talk"


TLS = plan_of(project=MANIFEST.digest)


@pytest.mark.parametrize(
    ("plan", "certificates"),
    [
        (TLS, {}),
        (TLS, {"worker:0": b""}),
        (TLS, {"worker:0": bytes(4000)}),
        (TLS, {"worker:0": b"one", "chief:0": b"another"}),
        (SEALED, {}),
    ],
)
def test_impossible_certificates_end_the_run(plan: Plan, certificates: dict[str, bytes]) -> None:
    world = World(plan)
    world.tell(From(BEN, ms.FilesWanted(run=plan.run, total_bytes=0)))
    world.tell(From(BEN, ms.Prepared(run=plan.run, ports={"worker:0": 21_000}, certificates=certificates)))
    assert verdict(world).code == "broken-talk"


def test_every_member_learns_all_ports_and_certificates() -> None:
    world = World(TLS)
    for device, task, port in ((ANNA, "chief:0", 21_000), (BEN, "worker:0", 22_000)):
        world.tell(From(device, ms.FilesWanted(run=TLS.run, total_bytes=0)))
        made = {task: f"{task}'s".encode()}
        world.tell(From(device, ms.Prepared(run=TLS.run, ports={task: port}, certificates=made)))
    for device in (ANNA, BEN):
        launch = world.to_member[device].pop()
        assert isinstance(launch, ms.Launch)
        told = [(task.name, task.port, task.certificate) for task in launch.plan.tasks]
        assert told == [("chief:0", 21_000, b"chief:0's"), ("worker:0", 22_000, b"worker:0's")]


def test_everybody_gets_the_time_that_the_slowest_needs_to_load_tensorflow() -> None:
    world = World(SEALED)
    for device, task, load_s in ((ANNA, "chief:0", 120.0), (BEN, "worker:0", 460.0)):
        world.tell(From(device, ms.FilesWanted(run=world.starter.plan.run, total_bytes=0)))
        made = {task: task.encode()}
        prepared = ms.Prepared(
            run=world.starter.plan.run, ports={task: 21_000}, certificates=made, load_s=load_s
        )
        world.tell(From(device, prepared))
    assert [
        launch.meet_s
        for device in (ANNA, BEN)
        if isinstance(launch := world.to_member[device].pop(), ms.Launch)
    ] == [460.0, 460.0]
    assert world.waits["start"] == 2 * 460.0 + limits.START_MORE_S
    world.fire("start")
    world.fire("end")
    assert verdict(world).code == "not-started"
    assert "did not start within 16 min" in verdict(world).what


def test_two_members_with_the_same_address_are_reported() -> None:
    loopback = plan_of(hosts={ANNA: "127.0.0.1", BEN: "127.0.0.1"}, project=MANIFEST.digest)
    world = World(loopback)
    for device, task in ((ANNA, "chief:0"), (BEN, "worker:0")):
        world.tell(From(device, ms.FilesWanted(run=loopback.run, total_bytes=0)))
        world.tell(From(device, prepared(loopback.run, {task: 21_000})))
    assert verdict(world).code == "same-address"


def test_a_member_lost_while_preparing_is_named() -> None:
    world = World(allowed=False)
    world.settle()
    world.tell(LinkLost(BEN, CLOSED))
    assert verdict(world).code == "device-lost"
    assert "Ben's" in verdict(world).what


def test_only_members_that_have_not_answered_are_waited_for_and_named() -> None:
    world = World(plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest), allowed=False)
    world.settle()
    run = world.starter.plan.run
    world.tell(From(BEN, ms.FilesWanted(run=run, total_bytes=0)))
    assert "consent" in world.waits
    world.tell(From(BEN, prepared(run, {"worker:0": 20001})))
    assert "receive" not in world.waits, "who has answered is ready"
    world.fire("consent")
    assert "Cleo's" in verdict(world).what
    assert "Ben's" not in verdict(world).what


def test_only_members_that_are_not_ready_are_named_as_such() -> None:
    world = World()
    run = world.starter.plan.run
    for device in (ANNA, BEN):
        world.tell(From(device, ms.FilesWanted(run=run, total_bytes=0)))
    assert "consent" not in world.waits
    world.tell(From(ANNA, prepared(run, {"chief:0": 20000})))
    world.fire("receive")
    assert verdict(world).code == "not-prepared"
    assert "Ben's" in verdict(world).what
    assert "Anna's" not in verdict(world).what


@pytest.mark.parametrize(("port", "is_taken"), [(1023, False), (1024, True), (65535, True), (65536, False)])
def test_a_port_that_others_connect_to_is_unprivileged(port: int, is_taken: bool) -> None:
    world = World()
    run = world.starter.plan.run
    world.tell(From(BEN, ms.FilesWanted(run=run, total_bytes=0)))
    world.tell(From(BEN, prepared(run, {"worker:0": port})))
    assert isinstance(world.phase, Preparing if is_taken else Failed)


def test_a_member_is_ready_only_once_and_only_after_it_has_agreed() -> None:
    world = World()
    run = world.starter.plan.run
    world.tell(From(BEN, prepared(run, {})))
    assert world.starter.parts[BEN].prepared is None
    world.tell(From(BEN, ms.FilesWanted(run=run, total_bytes=0)))
    world.tell(From(BEN, prepared(run, {"worker:0": 20001})))
    world.tell(From(BEN, prepared(run, {})))
    first = world.starter.parts[BEN].prepared
    assert first is not None and first.ports == {"worker:0": 20001}


def test_messages_about_another_run_are_ignored() -> None:
    world = training()
    known, another = world.starter, RunId("another")
    world.tell(From(BEN, ms.StopAsked(run=another)))
    world.tell(From(BEN, ms.Declined(run=another, problem=LOST)))
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


def test_a_custom_loop_trains_as_soon_as_its_script_runs() -> None:
    world = World(plan_of(strategy="own", project=MANIFEST.digest))
    world.settle()
    world.each_trainer_says(Booted(seconds=1, devices=()))
    assert isinstance(world.phase, Training)
    assert "start" not in world.waits


def test_a_member_that_ended_at_once_is_not_waited_for_at_the_start() -> None:
    world = World()
    world.settle()
    world.end_trainer(BEN, "worker:0", FINISHED)
    assert "start" in world.waits
    world.trainer_says(ANNA, "chief:0", Booted(seconds=1, devices=()))
    world.trainer_says(ANNA, "chief:0", Connecting())
    world.trainer_says(ANNA, "chief:0", Met(strategy="MirroredStrategy", replicas=2))
    world.settle()
    assert "start" not in world.waits


# --- the first cause ---------------------


def test_the_chiefs_script_error_is_named_with_its_member_and_ends_all_at_once() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("script-error", "ValueError in line 7."))
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.end_trainer(BEN, "worker:0", failing("killed"))
    assert verdict(world).what == "On Anna's: ValueError in line 7."


def a_script_fails_before_any_step() -> World:
    world = World()
    world.settle()
    world.end_trainer(BEN, "worker:0", failing("script-error", "OSError: /home/ben/x (train.py, line 7)."))
    assert world.members[ANNA].trainers == {"chief:0": -1}, "it may reach the same line"
    assert world.waits == {"cause": limits.SAME_FAULT_S} and isinstance(world.phase, Starting)
    return world


@pytest.mark.parametrize(
    "end",
    [
        failing("script-error", "OSError: /home/ben/x (train.py, line 8)."),
        failing("script-error", "ValueError: /home/ben/x (train.py, line 7)."),
        failing("killed"),
        failing("lost-peer"),
        FINISHED,
    ],
    ids=["elsewhere", "another", "killed", "a consequence", "none"],
)
def test_an_error_before_any_step_is_the_laptops_own_where_the_others_have_another_or_none(end: Exit) -> None:
    world = a_script_fails_before_any_step()
    world.end_trainer(ANNA, "chief:0", end)
    assert verdict(world).what == "On Ben's: OSError: /home/ben/x (train.py, line 7)."


def test_an_error_before_any_step_ends_all_after_a_moment() -> None:
    world = a_script_fails_before_any_step()
    world.fire("cause")
    world.settle()
    assert world.members[ANNA].trainers == {"chief:0": 2}
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert verdict(world).what == "On Ben's: OSError: /home/ben/x (train.py, line 7)."


def test_an_error_in_the_same_line_of_all_laptops_is_said_of_none_alone() -> None:
    world = a_script_fails_before_any_step()
    world.end_trainer(ANNA, "chief:0", failing("script-error", "OSError: /home/anna/x (train.py, line 7)."))
    assert verdict(world).what == "OSError: /home/anna/x (train.py, line 7)."


def test_arguments_that_the_script_refuses_end_all_at_once() -> None:
    world = World()
    world.settle()
    refused = Problem(code=ARGUMENTS_REFUSED, what="error: --epoch 3")
    world.end_trainer(BEN, "worker:0", Exit(reason="script-error", problem=refused))
    assert world.members[ANNA].trainers == {"chief:0": 2}


def test_an_error_on_all_laptops_names_no_single_one() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("script-error", "ValueError in line 7."))
    world.end_trainer(BEN, "worker:0", failing("script-error", "ValueError in line 7."))
    assert verdict(world).what == "ValueError in line 7."


def a_workers_script_fails() -> World:
    world = training()
    world.end_trainer(BEN, "worker:0", failing("script-error", "ValueError in line 7."))
    return world


@pytest.mark.parametrize(
    "end",
    [
        FINISHED,
        Exit(reason="stopped"),
        failing("lost-peer"),
        failing("script-error", "Also here."),
        failing("killed"),
    ],
    ids=lambda end: end.reason,
)
def test_when_another_members_script_fails_the_chief_saves_the_weights_before_all_ends(end: Exit) -> None:
    world = a_workers_script_fails()
    assert world.members[ANNA].trainers == {"chief:0": 0}, "asked to end, not killed"
    assert world.waits == {"cause": limits.STOP_S[0]}, "as long as a Stop leaves it for its step"
    assert isinstance(world.phase, Training)
    world.end_trainer(ANNA, "chief:0", end)
    assert verdict(world).what == "On Ben's: ValueError in line 7.", "the first cause stays"


def test_a_chief_that_takes_too_long_to_save_the_weights_is_ended() -> None:
    world = a_workers_script_fails()
    world.fire("cause")
    world.settle()
    assert world.members[ANNA].trainers == {"chief:0": 2}
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert verdict(world).what == "On Ben's: ValueError in line 7."


def test_stop_does_not_wait_for_the_weights() -> None:
    world = a_workers_script_fails()
    world.press_stop()
    assert world.members[ANNA].trainers == {"chief:0": 2}
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert verdict(world).what == "On Ben's: ValueError in line 7."


def test_a_script_error_that_comes_after_its_consequence_is_still_the_cause() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("lost-peer"))
    assert world.waits == {"cause": limits.CAUSE_S}
    assert world.members[BEN].trainers == {"worker:0": -1}
    world.end_trainer(BEN, "worker:0", failing("script-error", "ValueError in line 7."))
    assert verdict(world).what == "On Ben's: ValueError in line 7."


def test_a_consequence_alone_is_the_verdict_after_a_moment() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.fire("cause")
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.end_trainer(BEN, "worker:0", failing("killed"))
    assert verdict(world).what == "On Anna's: A peer was lost."


def test_a_laptop_that_fell_silent_is_the_cause_although_tensorflow_missed_it_sooner() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.fire("cause")
    world.settle()
    world.cut_link(BEN)
    world.settle()
    assert verdict(world).code == "device-lost"


def test_a_fault_of_its_own_that_is_reported_at_the_very_end_is_the_cause() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.fire("cause")
    world.settle()
    world.end_trainer(BEN, "worker:0", failing("script-error", "ValueError in line 7."))
    assert verdict(world).what == "On Ben's: ValueError in line 7."


def test_a_lost_member_is_shown_as_ended_with_the_reason() -> None:
    world = training(World(BENS))
    world.tell(LinkLost(BEN, CLOSED))
    told = [event for event in world.events if isinstance(event, ev.MemberPhaseChanged)][-1]
    assert (told.device, told.phase, told.words) == (BEN, "ended", "its link was lost")


def test_waiting_for_a_better_cause_leaves_time_within_three_seconds() -> None:
    assert limits.CAUSE_S <= 1.5


def test_a_loss_ends_a_custom_loop_at_once_and_is_named() -> None:
    world = training(World(BENS))
    world.lose_link(BEN, Problem(code="link-failed", what="The link failed."))
    world.settle()
    assert world.members[ANNA].trainers == {"worker:0": 2}
    world.end_trainer(ANNA, "worker:0", failing("killed"))
    assert verdict(world).code == "device-lost"
    assert world.members[BEN].trainers == {"chief:0": 2}
    world.trainer_ends(BEN, "chief:0", failing("killed"))
    assert [phase.problem.code for phase in world.last_phases(world.members[BEN].shown)] == [  # type: ignore[union-attr]
        "starter-lost"
    ]


def test_a_member_that_does_not_end_is_not_waited_for_forever() -> None:
    world = training(World(BENS))
    world.end_trainer(BEN, "chief:0", failing("killed"))
    world.fire("end")
    assert isinstance(world.phase, Failed)
    assert "Anna's did not say" in world.said()


def test_a_trainer_that_tandem_killed_is_never_the_cause() -> None:
    world = training(World(BENS))
    world.end_trainer(BEN, "chief:0", failing("out-of-memory", "Memory was full."))
    world.end_trainer(ANNA, "worker:0", failing("killed", "Killed."))
    assert verdict(world).code == "out-of-memory"


# --- stopping ---------------------


def test_stop_asks_all_at_the_same_time_and_brings_the_outputs() -> None:
    world = training()
    world.press_stop()
    assert [side.trainers for side in world.members.values()] == [{"chief:0": 0}, {"worker:0": 0}]
    world.each_trainer_ends(Exit(reason="stopped"))
    assert world.phase == Stopped(by="Anna's")
    assert phases_of(world)[-2:] == ["Stopping", "Stopped"]
    assert world.starter.tally.known.outputs == ("model.keras",)


def test_each_further_stop_has_more_force_and_a_member_may_stop_too() -> None:
    world = training()
    run = world.starter.plan.run
    for force in (0, 1, 2):
        world.tell(From(BEN, ms.StopAsked(run=run, force=force)))
        world.settle()
        assert world.members[ANNA].trainers == {"chief:0": force}
    world.each_trainer_ends(failing("killed"))
    assert world.phase == Stopped(by="Ben's")


def test_a_stop_that_takes_too_long_gets_more_force_by_itself() -> None:
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
    world.press_stop()
    assert world.members[BEN].trainers == {"worker:0": 1}
    world.each_trainer_ends(Exit(reason="stopped"))
    assert isinstance(world.phase, Stopped)


def test_stop_while_preparing_ends_the_run_there() -> None:
    world = World(allowed=False)
    world.settle()
    before = world.phase
    assert isinstance(before, Preparing)
    world.press_stop()
    assert world.phase == Stopped(by="Anna's")
    assert isinstance(world.members[BEN].shown[-1], ev.ConsentSettled)


def test_a_script_that_fails_during_a_gentle_stop_fails_the_run() -> None:
    world = training()
    world.press_stop()
    assert isinstance(world.phase, Stopping)
    world.end_trainer(BEN, "worker:0", failing("script-error", "The callback broke."))
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert verdict(world).code == "script-error"


def test_a_member_lost_while_stopping_ends_the_others_and_the_run_stays_stopped() -> None:
    world = training()
    world.press_stop()
    world.cut_link(BEN)
    world.settle()
    assert world.members[ANNA].trainers == {"chief:0": 2}
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert isinstance(world.phase, Stopped)


def test_a_fault_while_everything_is_being_killed_does_not_turn_a_stop_into_a_failure() -> None:
    world = training()
    world.tell(co.StopWanted("Anna's", 1))
    world.end_trainer(BEN, "worker:0", failing("script-error", "Interrupted."))
    for wait in ("stop", "stop"):
        world.fire(wait)
        world.settle()
    world.end_trainer(ANNA, "chief:0", failing("script-error", "Interrupted."))
    assert world.phase == Stopped(by="Anna's")


def test_a_stop_with_too_much_force_has_the_most() -> None:
    world = training()
    world.press_stop(9)
    assert world.members[BEN].trainers == {"worker:0": 2}
    assert world.waits == {"stop": limits.STOP_S[2]}
    world.press_stop()
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
    world.end_trainer(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.tell(co.NodeEnds("Anna's"))
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.each_trainer_ends(failing("killed"))
    assert verdict(world).what == "On Anna's: A peer was lost."


def test_the_first_to_stop_is_named_even_if_tandem_is_closed_afterwards() -> None:
    world = training()
    world.tell(co.StopWanted("Ben's", 2))
    world.tell(co.NodeEnds("Anna's"))
    world.tell(co.NodeEnds("Anna's"))
    world.each_trainer_ends(failing("killed"))
    assert world.phase == Stopped(by="Ben's")


# --- unequal ends ---------------------


def test_a_member_that_never_ends_is_named() -> None:
    world = training(World(SEALED))
    world.end_trainer(ANNA, "chief:0", FINISHED)
    assert world.waits["finish"] == limits.FINISH_S
    world.fire("finish")
    world.settle()
    world.end_trainer(BEN, "worker:0", failing("killed"))
    assert verdict(world).code == "still-running"
    assert "Ben's" in verdict(world).what


def served_run() -> World:
    fixed = {ANNA: (Role.CHIEF,), BEN: (Role.WORKER, Role.PS)}
    return training(World(plan_of(fixed=fixed, strategy="own", project=MANIFEST.digest)))


def test_serving_tasks_are_ended_once_the_chief_has_finished() -> None:
    world = served_run()
    world.end_trainer(ANNA, "chief:0", FINISHED)
    assert world.members[BEN].trainers == {"worker:0": 1, "ps:0": 1}
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Finished)


def test_serving_tasks_are_killed_if_they_do_not_end() -> None:
    world = served_run()
    world.end_trainer(ANNA, "chief:0", FINISHED)
    world.fire("finish")
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2, "ps:0": 2}
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Finished)


def test_a_parameter_server_that_dies_fails_the_run() -> None:
    world = served_run()
    world.end_trainer(BEN, "ps:0", failing("killed", "It was killed."))
    world.each_trainer_ends(failing("killed"))
    assert verdict(world).what == "On Ben's (ps:0): It was killed."


def test_outputs_that_never_come_are_reported_with_their_place() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    world.members[BEN].jobs.clear()
    world.settle()
    world.fire("outputs")
    assert verdict(world).code == "outputs-missing"
    assert "Ben's" in verdict(world).fix


def remote_chief_offers() -> World:
    """Ben's, the chief, has offered its outputs; nothing was fetched yet."""
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    while not world.jobs:
        world.possible()[0]()
    world.jobs.clear()
    world.settle()
    return world


def test_outputs_that_cannot_be_stored_here_fail_the_run_with_the_reason() -> None:
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


def test_outputs_are_fetched_once_and_only_from_the_chief_after_its_end() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    offer = ms.OutputsOffered(run=world.starter.plan.run, manifest=OUTPUTS, problem=LOST)
    world.tell(From(BEN, offer))
    world.trainer_ends(BEN, "chief:0", FINISHED)
    world.members[BEN].jobs.clear()
    world.settle()
    world.tell(From(ANNA, offer))
    assert not world.jobs
    world.tell(From(BEN, offer))
    world.tell(From(BEN, offer))
    assert list(world.jobs) == [co.TakeOutputs(BEN, OUTPUTS)]
    assert world.said() == f"{LOST}\n", "what could not be brought is said"


def test_outputs_that_fail_after_a_stop_are_logged_and_the_run_stays_stopped() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    world.press_stop()
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, Exit(reason="stopped"))
    world.members[BEN].jobs.clear()
    world.settle()
    world.fire("outputs")
    world.settle()
    assert world.phase == Stopped(by="Anna's")
    assert "Ben's" in world.said()


def test_a_chief_lost_before_its_outputs_came_fails_the_run() -> None:
    world = training(World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    world.members[BEN].jobs.clear()
    world.settle()
    world.tell(LinkLost(BEN, CLOSED))
    assert verdict(world).code == "outputs-missing"


def test_a_worker_lost_after_its_end_does_no_harm() -> None:
    world = training()
    world.end_trainer(BEN, "worker:0", FINISHED)
    world.tell(LinkLost(BEN, LOST))
    world.end_trainer(ANNA, "chief:0", FINISHED)
    assert isinstance(world.phase, Finished)


def test_a_run_that_shared_nothing_says_so() -> None:
    world = training()
    world.each_trainer_ends(Exit(reason="finished", shared=False))
    assert isinstance(world.phase, Finished)
    assert "Nothing was shared" in world.said()


def test_different_weights_are_a_failure() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", Exit(reason="finished", weights_sha256="1" * 64))
    world.end_trainer(BEN, "worker:0", Exit(reason="finished", weights_sha256="2" * 64))
    assert verdict(world).code == "members-differ"
    assert "different weights" in verdict(world).what and verdict(world).fix


def test_unequal_weights_do_not_matter_alone_or_in_a_custom_loop() -> None:
    for plan in (
        plan_of((ANNA,), project=MANIFEST.digest),
        plan_of(strategy="own", project=MANIFEST.digest),
    ):
        world = World(plan)
        world.start_training()
        for number, (device, side) in enumerate(world.members.items()):
            for task in tuple(side.trainers):
                world.end_trainer(
                    device,
                    task,
                    Exit(reason="finished", shared=len(world.members) > 1, weights_sha256=str(number) * 64),
                )
        assert isinstance(world.phase, Finished)
        assert world.said() == ""


# --- a member that lies ---------------------


def test_a_member_reports_only_about_itself() -> None:
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
        world.tell(From(BEN, ms.EventTold(event=event)))
    assert len(world.events) == before
    assert isinstance(world.phase, Training)


def test_a_stranger_is_ignored() -> None:
    world = training()
    known = world.starter
    world.tell(From(CLEO, ms.StopAsked(run=known.plan.run)))
    world.tell(LinkLost(CLEO, LOST))
    assert world.starter == known


def test_a_cancelled_wait_does_nothing() -> None:
    world = training()
    waits: tuple[Wait, ...] = ("consent", "receive", "start", "stop", "end", "cause", "finish", "outputs")
    known = world.starter
    for wait in waits:
        world.tell(TimerFired(wait))
    assert world.starter == known


# --- who is heard, and who is told ---------------------


def said_by(device: DeviceId, event: ev.MirroredEvent) -> From:
    return From(device, ms.EventTold(event=event))


def mirrored_to(world: World, device: DeviceId) -> list[ev.MirroredEvent]:
    return [message.event for message in world.to_member[device] if isinstance(message, ms.EventTold)]


def three() -> World:
    return World(plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest))


def of_a_remote_chief(strategy: StrategyKind = "managed") -> World:
    return World(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest, strategy=strategy))


def test_a_member_whose_link_is_lost_is_ignored_and_sent_nothing() -> None:
    world = training(three())
    world.end_trainer(BEN, "worker:0", FINISHED)
    world.tell(LinkLost(BEN, LOST))
    world.to_member[BEN].clear()
    known, events = world.starter, len(world.events)
    world.tell(From(BEN, ms.StopAsked(run=known.plan.run, force=2)))
    world.tell(LinkLost(BEN, LOST))
    assert world.starter == known and len(world.events) == events, "it is lost once"
    world.tell(co.StopWanted("Anna's", 0))
    assert not world.to_member[BEN]


def test_files_that_cannot_be_sent_any_more_do_not_end_what_has_begun() -> None:
    world = training()
    known = world.starter
    world.tell(co.SendingFailed(BEN, LOST))
    assert world.starter == known


def test_a_member_that_agrees_twice_gets_the_files_once() -> None:
    world = World()
    wanted = ms.FilesWanted(run=world.starter.plan.run, total_bytes=9)
    world.tell(From(BEN, wanted))
    known = world.starter
    world.tell(From(BEN, wanted))
    assert list(world.jobs) == [co.OfferFiles(BEN)]
    assert world.starter == known


def test_a_member_that_has_all_files_is_sent_none() -> None:
    world = World()
    world.tell(From(BEN, ms.FilesWanted(run=world.starter.plan.run, total_bytes=0)))
    assert not world.jobs


def fetches(world: World, device: DeviceId) -> list[DeviceId]:
    """The device from which it is told to fetch."""
    return [message.giver for message in world.to_member[device] if isinstance(message, ms.FilesFrom)]


def gives(world: World, device: DeviceId) -> list[DeviceId]:
    return [message.to for message in world.to_member[device] if isinstance(message, ms.GiveFiles)]


def test_each_member_fetches_from_the_one_that_began_before_it() -> None:
    world = World(plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest))
    wanted = ms.FilesWanted(run=world.starter.plan.run, total_bytes=9)
    world.tell(From(CLEO, wanted))
    world.tell(From(BEN, wanted))
    assert fetches(world, CLEO) == [ANNA] and fetches(world, BEN) == [CLEO]
    assert gives(world, CLEO) == [BEN] and not gives(world, BEN) and not gives(world, ANNA)
    assert list(world.jobs) == [co.OfferFiles(CLEO), co.OfferFiles(BEN)], "whatever a member does not give"


def test_a_member_that_has_all_files_or_is_away_forwards_nothing() -> None:
    plan = plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest)
    world = World(plan)
    world.tell(From(CLEO, ms.FilesWanted(run=plan.run, total_bytes=0)))
    world.tell(From(BEN, ms.FilesWanted(run=plan.run, total_bytes=9)))
    assert fetches(world, BEN) == [ANNA] and not fetches(world, CLEO)
    world = World(replace(plan, exchange="tls"))
    world.tell(From(CLEO, ms.FilesWanted(run=plan.run, total_bytes=9)))
    world.tell(LinkAway(CLEO, LOST))
    assert world.starter.parts[CLEO].away_s is not None
    world.tell(From(BEN, ms.FilesWanted(run=plan.run, total_bytes=9)))
    assert fetches(world, BEN) == [ANNA] and not gives(world, CLEO)


def test_events_go_to_members_that_agreed_and_never_to_the_starters_own_part() -> None:
    world = World()
    run = world.starter.plan.run
    assert not mirrored_to(world, ANNA) and not mirrored_to(world, BEN)
    world.tell(From(ANNA, ms.FilesWanted(run=run, total_bytes=0)))
    phase = ev.MemberPhaseChanged(run=run, device=ANNA, phase="prepared")
    world.tell(said_by(ANNA, phase))
    assert not mirrored_to(world, ANNA) and not mirrored_to(world, BEN)
    world.tell(From(BEN, ms.FilesWanted(run=run, total_bytes=0)))
    assert [type(event) for event in mirrored_to(world, BEN)] == [ev.RunPlanned, ev.RunPhaseChanged]
    world.tell(said_by(ANNA, phase))
    assert mirrored_to(world, BEN)[-1] == phase
    assert not mirrored_to(world, ANNA)


def test_the_starters_own_part_gets_the_last_phase() -> None:
    world = World()
    world.tell(co.StopWanted("Anna's", 0))
    assert [event.phase for event in mirrored_to(world, ANNA) if isinstance(event, ev.RunPhaseChanged)] == [
        Stopped(by="Anna's")
    ]


def test_a_members_events_of_another_run_are_not_shown() -> None:
    world = training()
    known = world.starter
    world.tell(said_by(BEN, ev.MemberPhaseChanged(run=RunId("another"), device=BEN, phase="stopping")))
    assert world.starter == known


# --- ports, waits and the start ---------------------


@pytest.mark.parametrize(("port", "is_taken"), [(-1, False), (0, True)])
def test_a_laptop_that_trains_alone_needs_no_port(port: int, is_taken: bool) -> None:
    plan = plan_of((ANNA,), project=MANIFEST.digest)
    assert plan.solo
    world = World(plan)
    world.tell(From(ANNA, ms.FilesWanted(run=plan.run, total_bytes=0)))
    world.tell(From(ANNA, ms.Prepared(run=plan.run, ports={"chief:0": port})))
    assert isinstance(world.phase, Starting if is_taken else Failed)


@pytest.mark.parametrize(("size", "is_taken"), [(1, True), (MAX_DER_BYTES, True), (MAX_DER_BYTES + 1, False)])
def test_a_certificate_may_be_as_long_as_any_and_no_longer(size: int, is_taken: bool) -> None:
    world = World(TLS)
    world.tell(From(BEN, ms.FilesWanted(run=TLS.run, total_bytes=0)))
    made = {"worker:0": bytes(size)}
    world.tell(From(BEN, ms.Prepared(run=TLS.run, ports={"worker:0": 21_000}, certificates=made)))
    assert isinstance(world.phase, Preparing if is_taken else Failed)


def test_only_receiving_is_a_sign_that_files_still_come() -> None:
    world = World()
    run = world.starter.plan.run
    world.tell(From(BEN, ms.FilesWanted(run=run, total_bytes=9)))
    world.waits["receive"] = 1.0
    world.tell(said_by(BEN, ev.MemberPhaseChanged(run=run, device=BEN, phase="prepared")))
    assert world.waits["receive"] == 1.0


def test_a_late_report_of_receiving_starts_no_wait() -> None:
    world = training()
    event = ev.MemberPhaseChanged(run=world.starter.plan.run, device=BEN, phase="receiving")
    world.tell(said_by(BEN, event))
    assert world.waits == {}


def test_members_that_have_not_agreed_are_not_named_as_not_ready() -> None:
    world = three()
    world.tell(From(BEN, ms.FilesWanted(run=world.starter.plan.run, total_bytes=9)))
    world.fire("receive")
    assert "Ben's" in verdict(world).what
    assert "Cleo's" not in verdict(world).what and "Anna's" not in verdict(world).what


def test_only_members_that_have_not_started_are_named_with_their_ports() -> None:
    world = World()
    world.settle()
    world.trainer_says(ANNA, "chief:0", Met(strategy="MirroredStrategy", replicas=2))
    world.settle()
    world.fire("start")
    assert isinstance(world.starter.stage, co.Ending)
    cause = world.starter.stage.cause
    assert cause is not None
    assert "Ben's" in cause.what and "Anna's" not in cause.what
    assert "20001" in str(cause) and "20000 and" not in str(cause)


def test_trainers_that_have_met_train_from_their_first_step_on() -> None:
    world = World()
    world.settle()
    world.each_trainer_says(Met(strategy="MirroredStrategy", replicas=2))
    assert isinstance(world.phase, Starting) and "start" not in world.waits
    world.each_trainer_says(progress())
    assert isinstance(world.phase, Training)


def test_a_step_that_comes_after_the_verdict_does_not_begin_the_training() -> None:
    world = World()
    world.settle()
    world.fire("start")
    world.trainer_says(BEN, "worker:0", progress())
    world.deliver_to_starter(BEN)
    assert phases_of(world) == ["Preparing", "Starting"]


# --- exits, one by one ---------------------


def test_a_trainer_cannot_end_before_the_launch() -> None:
    world = World()
    known = world.starter
    world.tell(
        said_by(BEN, ev.MemberEnded(run=known.plan.run, device=BEN, task="worker:0", exit=failing("killed")))
    )
    assert world.starter == known


def test_a_trainer_ends_once() -> None:
    world = training()
    run = world.starter.plan.run
    world.tell(said_by(BEN, ev.MemberEnded(run=run, device=BEN, task="worker:0", exit=FINISHED)))
    known = world.starter
    again = ev.MemberEnded(run=run, device=BEN, task="worker:0", exit=failing("script-error"))
    world.tell(said_by(BEN, again))
    assert world.starter == known


def test_a_member_has_ended_with_the_last_of_its_trainers() -> None:
    world = served_run()
    run = world.starter.plan.run
    world.tell(said_by(BEN, ev.MemberEnded(run=run, device=BEN, task="worker:0", exit=FINISHED)))
    assert world.starter.parts[BEN].phase == "training"
    world.tell(said_by(BEN, ev.MemberEnded(run=run, device=BEN, task="ps:0", exit=FINISHED)))
    assert world.starter.parts[BEN].phase == "ended"


def test_a_member_that_is_lost_with_one_trainer_still_running_fails_the_run() -> None:
    world = served_run()
    world.end_trainer(BEN, "worker:0", FINISHED)
    world.tell(LinkLost(BEN, LOST))
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert verdict(world).code == "device-lost"


def test_each_further_exit_does_not_lengthen_the_wait_for_the_last() -> None:
    world = training(three())
    world.end_trainer(ANNA, "chief:0", FINISHED)
    world.waits["finish"] = 1.0
    world.end_trainer(BEN, "worker:0", FINISHED)
    assert world.waits["finish"] == 1.0


def test_consequences_alone_are_the_verdict_at_once_when_nobody_is_left() -> None:
    world = training()
    world.each_trainer_ends(failing("lost-peer", "A peer was lost."))
    assert verdict(world).what == "On Anna's: A peer was lost."


def test_the_first_of_two_consequences_is_kept_and_gets_no_more_time() -> None:
    world = training(three())
    world.end_trainer(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.waits["cause"] = 1.0
    world.end_trainer(BEN, "worker:0", failing("lost-peer", "A peer was lost."))
    assert world.waits["cause"] == 1.0
    world.end_trainer(CLEO, "worker:1", failing("lost-peer", "A peer was lost."))
    assert verdict(world).what == "On Anna's: A peer was lost."


def test_a_laptop_that_had_ended_is_not_the_cause_when_its_link_goes() -> None:
    world = training(three())
    world.end_trainer(BEN, "worker:0", failing("lost-peer", "A peer was lost."))
    world.fire("cause")
    world.settle()
    world.tell(LinkLost(BEN, LOST))
    for device, task in ((ANNA, "chief:0"), (CLEO, "worker:1")):
        world.end_trainer(device, task, failing("killed"))
    assert verdict(world).what == "On Ben's: A peer was lost."


def test_a_laptop_that_is_lost_while_tandem_is_closed_does_not_turn_the_stop_into_a_failure() -> None:
    world = training()
    world.tell(co.NodeEnds("Anna's"))
    world.settle()
    world.tell(LinkLost(BEN, LOST))
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert world.phase == Stopped(by="Anna's")


def test_the_first_of_two_faults_is_named() -> None:
    world = training(three())
    world.end_trainer(BEN, "worker:0", failing("script-error", "First."))
    world.trainer_ends(CLEO, "worker:1", failing("script-error", "Second."))
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert verdict(world).what == "On Ben's: First."


def test_a_member_that_reports_no_weights_has_no_different_ones() -> None:
    world = training()
    world.trainer_ends(ANNA, "chief:0", FINISHED)
    world.end_trainer(BEN, "worker:0", Exit(reason="finished"))
    assert isinstance(world.phase, Finished)
    assert world.said() == ""


# --- what only serves ---------------------


def test_serving_tasks_are_stopped_once_the_tasks_that_they_serve_have_stopped() -> None:
    world = served_run()
    world.press_stop()
    world.end_trainer(BEN, "worker:0", Exit(reason="stopped"))
    assert world.members[BEN].trainers == {"ps:0": 0}
    world.end_trainer(ANNA, "chief:0", Exit(reason="stopped"))
    assert world.members[BEN].trainers == {"ps:0": 1}
    world.each_trainer_ends(failing("killed"))
    assert world.phase == Stopped(by="Anna's")


def test_an_evaluator_serves_until_every_worker_has_finished() -> None:
    fixed: dict[DeviceId, tuple[Role, ...]] = {CLEO: (Role.EVALUATOR,)}
    plan = plan_of((ANNA, BEN, CLEO), fixed=fixed, strategy="own", project=MANIFEST.digest)
    world = training(World(plan))
    world.end_trainer(ANNA, "chief:0", FINISHED)
    assert world.members[CLEO].trainers == {"evaluator:0": -1}
    world.end_trainer(BEN, "worker:0", FINISHED)
    assert world.members[CLEO].trainers == {"evaluator:0": 1}


def test_a_trainer_that_ends_before_it_has_met_the_others_is_not_waited_for_at_the_start() -> None:
    fixed: dict[DeviceId, tuple[Role, ...]] = {ANNA: (Role.CHIEF,), BEN: (Role.PS,), CLEO: (Role.WORKER,)}
    world = World(plan_of((ANNA, BEN, CLEO), fixed=fixed, strategy="own", project=MANIFEST.digest))
    world.settle()
    run = world.starter.plan.run
    world.tell(said_by(CLEO, ev.MemberPhaseChanged(run=run, device=CLEO, phase="training")))
    world.tell(said_by(ANNA, ev.MemberEnded(run=run, device=ANNA, task="chief:0", exit=FINISHED)))
    assert "start" in world.waits
    world.tell(said_by(BEN, ev.MemberEnded(run=run, device=BEN, task="ps:0", exit=failing("killed"))))
    assert "start" not in world.waits


def test_a_serving_task_that_cannot_even_be_killed_is_named() -> None:
    world = served_run()
    world.end_trainer(ANNA, "chief:0", FINISHED)
    for wait in ("finish", "finish", "end"):
        world.fire(wait)
        world.settle()
    assert verdict(world).code == "still-running"
    assert "Ben's" in verdict(world).what and "Anna's" not in verdict(world).what


# --- Stop, in every stage ---------------------


def test_the_first_to_press_stop_is_named_and_the_phase_is_reported_once() -> None:
    world = training()
    world.tell(co.StopWanted("Ben's", 0))
    world.press_stop(1)
    world.each_trainer_ends(Exit(reason="stopped"))
    assert world.phase == Stopped(by="Ben's")
    assert phases_of(world).count("Stopping") == 1


def test_a_stop_with_the_most_force_stays_so_while_starting() -> None:
    world = World()
    world.settle()
    world.press_stop(2)
    assert world.members[BEN].trainers == {"worker:0": 2}


def test_stop_while_a_cause_is_looked_for_keeps_the_cause() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("lost-peer", "A peer was lost."))
    world.press_stop()
    assert world.members[BEN].trainers == {"worker:0": 2}
    world.each_trainer_ends(failing("killed"))
    assert verdict(world).what == "On Anna's: A peer was lost."


def test_stop_gives_up_outputs_that_are_waited_for() -> None:
    world = remote_chief_offers()
    world.tell(co.StopWanted("Anna's", 0))
    assert world.phase == Stopped(by="Anna's")


def test_only_a_stop_with_more_force_gives_up_the_outputs_of_a_stopped_run() -> None:
    world = training(of_a_remote_chief())
    world.press_stop(by="Ben's")
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, Exit(reason="stopped"))
    world.members[BEN].jobs.clear()
    world.settle()
    world.tell(co.StopWanted("Anna's", 0))
    before = world.phase
    assert isinstance(before, Stopping)
    world.tell(co.StopWanted("Anna's", 1))
    assert world.phase == Stopped(by="Ben's")


# --- outputs, early and late ---------------------


def test_outputs_may_come_while_others_still_train_and_set_no_limit_to_them() -> None:
    world = training(of_a_remote_chief("own"))
    world.end_trainer(BEN, "chief:0", FINISHED)
    assert world.starter.outputs == "here"
    assert set(world.waits) == {"finish"}
    world.tell(LinkLost(BEN, LOST))
    assert isinstance(world.starter.stage, co.Running), "its chief has nothing left to give"
    world.end_trainer(ANNA, "worker:0", FINISHED)
    assert isinstance(world.phase, Finished)


def test_a_worker_that_goes_while_only_outputs_are_waited_for_does_no_harm() -> None:
    world = chief_offers_to_a_run_of_three()
    world.each_trainer_ends()
    world.tell(LinkLost(CLEO, LOST))
    assert set(world.waits) == {"outputs"}
    world.tell(co.OutputsStored(("model.keras",)))
    assert isinstance(world.phase, Finished)


def test_an_offer_of_outputs_is_a_sign_of_life() -> None:
    world = training(of_a_remote_chief())
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    world.members[BEN].jobs.clear()
    world.settle()
    world.waits["outputs"] = 1.0
    world.tell(From(BEN, ms.OutputsOffered(run=world.starter.plan.run, manifest=OUTPUTS)))
    assert world.waits == {"outputs": limits.OUTPUTS_S}


def chief_offers_to_a_run_of_three() -> World:
    """Ben's, the chief, has finished and its outputs are being fetched; the others train."""
    world = training(World(plan_of((ANNA, BEN, CLEO), fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)))
    world.trainer_ends(BEN, "chief:0", FINISHED)
    while not world.jobs:
        world.possible()[0]()
    world.jobs.clear()
    world.settle()
    return world


def test_outputs_of_a_run_that_is_being_ended_are_not_taken() -> None:
    world = training(of_a_remote_chief())
    world.trainer_ends(BEN, "chief:0", FINISHED)
    world.members[BEN].jobs.clear()
    world.settle()
    world.tell(co.NodeEnds("Anna's"))
    world.tell(From(BEN, ms.OutputsOffered(run=world.starter.plan.run, manifest=OUTPUTS)))
    assert not world.jobs and world.starter.outputs == "expected"


def test_outputs_that_are_lost_after_a_fault_do_not_replace_it_as_the_cause() -> None:
    world = chief_offers_to_a_run_of_three()
    world.tell(co.OutputsFailed(LOST))
    assert isinstance(world.starter.stage, co.Ending)
    world = chief_offers_to_a_run_of_three()
    task = next(iter(world.members[CLEO].trainers))
    world.end_trainer(CLEO, task, failing("script-error", "First."))
    world.tell(co.OutputsFailed(LOST))
    world.each_trainer_ends(failing("killed"))
    assert verdict(world).what == "On Cleo's: First."


def test_outputs_that_are_lost_while_a_stopped_run_ends_are_logged_and_nobody_is_told_again() -> None:
    world = chief_offers_to_a_run_of_three()
    world.tell(co.NodeEnds("Anna's"))
    world.tell(co.OutputsFailed(LOST))
    told = [message for message in world.to_member[CLEO] if isinstance(message, ms.RunAbandoned)]
    assert len(told) == 1
    assert "Ben's" in world.said()
    world.settle()
    world.each_trainer_ends(failing("killed"))
    assert world.phase == Stopped(by="Anna's")


def test_a_message_that_no_member_sends_is_an_error() -> None:
    world = training()
    with pytest.raises(IllegalTransition):
        world.tell(From(BEN, ms.Launch(plan=world.starter.plan)))


def test_a_lost_peer_in_a_run_that_was_started_from_elsewhere_is_a_cause_like_another() -> None:
    world = World(plan_of((BEN, CLEO), project=MANIFEST.digest))
    world.start_training()
    world.end_trainer(CLEO, "worker:0", failing("lost-peer", "A peer was lost."))
    world.fire("cause")
    world.each_trainer_ends(failing("killed"))
    assert verdict(world).what == "On Cleo's: A peer was lost."
