"""A run whose members connect over TLS waits for a silent one, reports that, and goes on where it was once
the member is back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.link import problems as link
from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Failed, Finished, Preparing, Starting, Stopped, Training
from core.vocabulary.plan import Plan, Role
from core.vocabulary.progress import EpochEnd, LogLines
from core.vocabulary.traffic import From, LinkBack
from core.vocabulary.trainer_messages import Connecting, EpochEnded, StatusChanged
from core.vocabulary.waits import Cause, PeerWait, TrainerStatus
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.world import CLOSED, FINISHED, MANIFEST, World, failing, progress

TLS = plan_of(project=MANIFEST.digest)
BENS = plan_of(strategy="own", fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)
"""A custom loop: no run continues without one of its members."""
"""Ben's is the chief, which no run continues without; for other members see ``test_losses``."""


def training(plan: Plan = TLS) -> World:
    world = World(plan)
    world.start_training()
    assert isinstance(world.phase, Training)
    return world


def waits_for_ben(lasted_s: float = 3.0, come: int = 0) -> StatusChanged:
    peer = PeerWait(rank=1, lasted_s=lasted_s, bytes_come=come, bytes_total=100)
    return StatusChanged(status=TrainerStatus(activity="exchange", lasted_s=lasted_s, peers=(peer,)))


def busy(where: str = "train.py, line 3") -> StatusChanged:
    return StatusChanged(status=TrainerStatus(activity="callback", where=where, lasted_s=3.0))


def ben_is_busy(world: World) -> None:
    world.trainer_says(BEN, "worker:0", busy())
    world.trainer_says(ANNA, "chief:0", waits_for_ben())
    world.settle()


def told(world: World) -> list[ev.WaitingChanged]:
    return [event for event in world.events if isinstance(event, ev.WaitingChanged)]


def shown(world: World, device: DeviceId) -> list[str]:
    """What a screen shows now: the starter's, or a member's."""
    state = world.state if device == ANNA else world.screens[device]
    assert state.run is not None
    return [wait.cause for wait in state.run.waiting.waits] if state.run.waiting else []


def epoch(number: int) -> EpochEnded:
    return EpochEnded(epoch=EpochEnd(at_s=1.0, epoch=number, epochs=9, step=1, logs={}, seconds=1.0))


def epochs(world: World) -> list[int]:
    return [
        event.epoch.epoch
        for event in world.events
        if isinstance(event, ev.MemberEndedEpoch) and event.device == BEN
    ]


# --- what is told ------------------------------------------------------------------------------------------


def test_a_wait_is_on_every_screen_until_the_run_goes_on() -> None:
    world = training()
    ben_is_busy(world)
    assert shown(world, ANNA) == shown(world, BEN) == ["script"]
    world.each_trainer_says(StatusChanged())
    assert shown(world, ANNA) == shown(world, BEN) == []
    assert "look" not in world.waits


def test_nobody_is_waited_for_any_more_while_outputs_come() -> None:
    world = training(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest))
    world.trainer_says(BEN, "chief:0", busy())
    peer = PeerWait(rank=0, lasted_s=3.0)
    world.trainer_says(
        ANNA, "worker:0", StatusChanged(status=TrainerStatus(activity="exchange", peers=(peer,)))
    )
    world.settle()
    assert shown(world, ANNA) == shown(world, BEN) == ["script"]
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    while world.to_starter[ANNA] or world.to_starter[BEN]:  # nobody has looked for the outputs yet
        world.deliver_to_starter(ANNA if world.to_starter[ANNA] else BEN)
    assert isinstance(world.starter.stage, co.Draining)
    world.fire("look")
    assert told(world)[-1].waits == () and "look" not in world.waits
    count = len(told(world))
    world.settle()
    assert isinstance(world.phase, Finished) and len(told(world)) == count


def test_an_unchanged_wait_is_reported_every_few_seconds_and_no_more() -> None:
    world = training()
    ben_is_busy(world)
    for _ in range(5):
        world.fire("look")
        world.settle()
    lasted = [event.waits[0].lasted_s for event in told(world)]
    assert lasted == [3.0, 9.0], "at the first look after five seconds"


def test_the_status_of_an_unknown_trainer_is_ignored() -> None:
    world = training()
    status = ms.StatusTold(run=TLS.run, task="worker:7", status=busy().status)
    world.tell(From(BEN, status))
    world.tell(From(BEN, replace(status, task="chief:0")))
    assert not world.starter.statuses


# --- who is away -------------------------------------------------------------------------------------------


def test_a_silent_laptop_is_away_on_both_screens_and_the_run_goes_on_with_it() -> None:
    world = training()
    world.cut_link(BEN)
    world.settle()
    assert isinstance(world.phase, Training)
    assert shown(world, ANNA) == shown(world, BEN) == [], "the link may have been replaced"
    world.fire("look")
    world.fire_member(BEN, "look")
    assert shown(world, ANNA) == shown(world, BEN) == ["away"]
    assert world.members[BEN].trainers == {"worker:0": -1}, "its trainer goes on"
    world.now_s += 100.0
    world.restore_link(BEN)
    world.settle()
    assert shown(world, ANNA) == shown(world, BEN) == []
    assert "away" not in world.waits and "away" not in world.members[BEN].waits
    world.each_trainer_ends()
    assert isinstance(world.phase, Finished)
    assert len(world.last_phases(world.members[BEN].shown)) == 1


def test_a_link_that_is_replaced_makes_nobody_away() -> None:
    world = training()
    world.cut_link(BEN)
    world.now_s += 1.0
    world.restore_link(BEN)
    world.settle()
    assert told(world) == [] and "is back" not in world.said()
    assert not {"look", "away"} & set(world.waits)


def test_messages_to_a_laptop_that_is_away_arrive_once_when_it_is_back() -> None:
    world = training()
    world.trainer_says(BEN, "worker:0", epoch(0))
    world.settle()
    world.trainer_says(BEN, "worker:0", epoch(1))
    world.trainer_says(ANNA, "chief:0", epoch(0))
    world.cut_link(BEN)
    world.trainer_says(BEN, "worker:0", epoch(2))
    world.settle()
    assert epochs(world) == [0]
    world.restore_link(BEN)
    world.settle()
    assert epochs(world) == [0, 1, 2]
    on_bens = [event.device for event in world.members[BEN].shown if isinstance(event, ev.MemberEndedEpoch)]
    assert sorted(on_bens) == sorted([ANNA, BEN, BEN, BEN])


def test_a_trainer_that_ended_meanwhile_is_known_to_have_ended() -> None:
    world = training()
    world.cut_link(BEN)
    world.trainer_ends(BEN, "worker:0", failing("script-error", "its own fault"))
    world.restore_link(BEN)
    world.settle()
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed)
    assert "its own fault" in world.phase.problem.what


def test_a_laptop_that_stays_away_too_long_ends_a_custom_loop_on_both_sides() -> None:
    world = training(BENS)
    world.cut_link(BEN)
    world.fire("away")
    world.settle()
    world.fire_member(BEN, "away")
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed)
    assert world.phase.problem.code == "device-away" and "Ben's" in world.phase.problem.what
    (phase,) = world.last_phases(world.members[BEN].shown)
    assert isinstance(phase, Failed) and "Anna's" in phase.problem.what


def test_nobody_is_given_up_while_steps_end() -> None:
    world = training()
    world.cut_link(BEN)
    for _ in range(3):
        world.now_s += limits.LIVELY_S - 2
        world.trainer_says(ANNA, "chief:0", progress())
        world.settle()
        world.waits["away"] = 1.0
        world.fire("away")
        assert isinstance(world.phase, Training) and "away" in world.waits


@pytest.mark.parametrize("code", ["forgotten", "bad-frame", "nobody-listens", "link-renewed"])
def test_a_laptop_that_is_known_to_be_gone_ends_a_custom_loop_at_once(code: str) -> None:
    world = training(BENS)
    world.lose_link(BEN, replace(CLOSED, code=code))
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and "Tandem was closed there" in world.phase.problem.what


@pytest.mark.parametrize("told", ["by a message", "by its link"])
def test_a_user_who_closes_tandem_has_stopped_a_custom_loop(told: str) -> None:
    world = training(BENS)
    if told == "by a message":
        closed = Problem(code="closed", what="Tandem was closed on Ben's.")
        world.tell(From(BEN, ms.Declined(run=TLS.run, problem=closed)))
    world.lose_link(BEN, replace(CLOSED, code="closed"))
    world.each_trainer_ends(failing("killed"))
    assert world.phase == Stopped(by="Ben's")


def test_a_known_failure_stays_one_when_a_user_leaves() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", failing("lost-peer"))
    world.tell(From(BEN, ms.Declined(run=TLS.run, problem=Problem(code="closed", what="Closed."))))
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed)


def test_an_absent_laptop_that_turns_out_to_be_gone_is_waited_for_no_longer() -> None:
    world = training(BENS)
    world.cut_link(BEN)
    world.lose_link(BEN, replace(CLOSED, code="nobody-listens"))
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and world.phase.problem.code == "device-lost"
    assert "away" not in world.waits


def test_a_laptop_that_gave_up_a_custom_loop_while_away_ends_it_when_it_is_back() -> None:
    world = training(BENS)
    world.cut_link(BEN)
    world.fire_member(BEN, "away")
    assert isinstance(world.phase, Training)
    world.restore_link(BEN)
    world.settle()
    world.each_trainer_ends(failing("killed"))
    assert isinstance(world.phase, Failed) and "it has left the run" in world.phase.problem.what


def test_stop_ends_the_run_at_once_while_somebody_is_away() -> None:
    world = training()
    world.cut_link(BEN)
    world.press_stop()
    world.end_trainer(ANNA, "chief:0", failing("killed"))
    assert isinstance(world.phase, Stopped)


@pytest.mark.parametrize(
    ("cause", "annas", "force"),
    [
        ("stopped", PeerWait(rank=1, lasted_s=9.0), 1),
        ("silent", PeerWait(rank=1, lasted_s=9.0, heard_s=9.0), 1),
        ("connection", PeerWait(rank=1, lasted_s=9.0, heard_s=9.0, connected=False), 1),
        ("wire", PeerWait(rank=1, lasted_s=9.0), 0),
    ],
)
def test_stop_does_not_wait_for_the_end_of_a_step_that_cannot_end(
    cause: Cause, annas: PeerWait, force: int
) -> None:
    world = training()
    bens = PeerWait(rank=0, lasted_s=9.0)
    for device, task, peer in ((ANNA, "chief:0", annas), (BEN, "worker:0", bens)):
        status = TrainerStatus(activity="exchange", lasted_s=9.0, peers=(peer,))
        world.trainer_says(device, task, StatusChanged(status=status))
    if cause == "stopped":
        world.tell_member(BEN, pa.TrainersChecked(frozenset({"worker:0"})))
    world.settle()
    assert cause in shown(world, ANNA)
    world.press_stop()
    assert world.waits["stop"] == limits.STOP_S[force]
    assert world.members[BEN].trainers == {"worker:0": force}


def test_a_laptop_that_comes_back_after_the_end_learns_of_it() -> None:
    world = training()
    world.cut_link(BEN)
    world.tell(co.StopWanted("Anna's", 0))
    assert not world.over
    world.restore_link(BEN)
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2}


# --- away before the launch --------------------------------------------------------------------------------


def train_on(world: World) -> None:
    """From any state to a good end."""
    world.settle()
    world.each_trainer_says(progress())
    world.each_trainer_ends(FINISHED)
    assert isinstance(world.phase, Finished), world.phase
    bens, annas = world.screens[BEN].run, world.state.run
    assert bens is not None and annas is not None
    assert (bens.phase, bens.plan, bens.summary) == (annas.phase, annas.plan, annas.summary)


def test_a_laptop_lost_at_any_moment_of_preparing_comes_back_and_the_run_begins() -> None:
    moments = 0
    while True:
        world = World(TLS)
        for _ in range(moments):
            todo = world.possible()
            if not todo:
                break
            todo[0]()
        if not isinstance(world.starter.stage, co.Assembling):
            break
        world.cut.add(BEN)  # nobody notices it at first
        world.settle()
        world.cut_link(BEN)
        assert isinstance(world.phase, Preparing | Starting)
        assert not {"consent", "receive", "start"} & set(world.waits)
        world.fire("look")
        assert shown(world, ANNA) == ["away"]
        world.restore_link(BEN)
        train_on(world)
        moments += 1
    assert moments > 6


def test_nobody_launches_while_a_laptop_that_was_ready_is_away() -> None:
    world = World(plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest), allowed=False)
    world.settle()
    for device in (BEN, CLEO):
        world.tell_member(device, pa.Decided(True))
        if device == BEN:
            world.settle()
            world.cut_link(BEN)
    world.settle()
    assert all(part.prepared is not None for part in world.starter.parts.values())
    assert isinstance(world.starter.stage, co.Assembling)
    world.restore_link(BEN)
    train_on(world)


def test_an_answer_given_while_the_starter_is_away_counts_once_it_is_back() -> None:
    world = World(TLS, allowed=False)
    world.settle()
    world.cut_link(BEN)
    world.tell_member(BEN, pa.Decided(True))
    world.settle()
    assert not world.starter.parts[BEN].joined and world.members[BEN].waits.keys() == {"away", "look"}
    world.restore_link(BEN)
    assert "consent" in world.waits
    train_on(world)


def test_the_question_of_a_run_that_was_given_up_is_withdrawn_when_the_laptop_is_back() -> None:
    world = World(TLS, allowed=False)
    world.settle()
    world.cut_link(BEN)
    world.tell(co.StopWanted("Anna's", 0))
    assert world.phase == Stopped(by="Anna's"), "Stop works at once"
    bens = world.members[BEN].known
    assert bens is not None and isinstance(bens.stage, pa.Asking)
    world.restore_link(BEN)
    world.settle()
    assert ev.ConsentSettled(run=TLS.run, allowed=False) in world.members[BEN].shown
    bens = world.members[BEN].known
    assert bens is not None and isinstance(bens.stage, pa.Gone)


def test_a_laptop_away_too_long_before_the_launch_ends_the_run_with_nothing_to_resume() -> None:
    world = World(TLS)
    world.cut_link(BEN)
    world.fire("away")
    assert isinstance(world.phase, Failed) and world.phase.problem.code == "device-away"
    assert "train again" in world.phase.problem.fix and "resume" not in world.phase.problem.fix


def test_reports_about_trainers_before_any_runs_are_ignored() -> None:
    world = World(TLS)
    world.tell(From(BEN, ms.StatusTold(run=TLS.run, task="worker:0", status=busy().status)))
    assert not world.starter.statuses


def test_a_starter_that_takes_no_part_tells_a_returning_laptop_that_the_run_is_over() -> None:
    world = World(plan_of((BEN, CLEO), project=MANIFEST.digest))
    world.start_training()
    world.cut_link(BEN)
    world.tell(co.StopWanted("Anna's", 0))
    assert isinstance(world.starter.stage, co.Ending)
    world.restore_link(BEN)
    world.settle()
    assert world.members[BEN].trainers == {"worker:0": 2} or world.members[BEN].trainers == {"chief:0": 2}


# --- the start ---------------------------------------------------------------------------------------------


def test_the_start_waits_as_long_for_the_others_as_the_run_does_for_a_silent_one() -> None:
    world = World(replace(TLS, away_s=1200.0))
    world.settle()
    assert world.waits["start"] == limits.LOAD_S + 1200.0 + limits.START_MORE_S
    world = World(plan_of(strategy="own", project=MANIFEST.digest))
    world.settle()
    assert world.waits["start"] == 2 * limits.LOAD_S + limits.START_MORE_S


def test_a_member_at_work_after_another_one_ended_is_not_given_up() -> None:
    world = training()
    world.end_trainer(ANNA, "chief:0", replace(failing("finished"), problem=None))
    assert "finish" not in world.waits
    world.trainer_says(BEN, "worker:0", busy())
    world.settle()
    assert shown(world, ANNA) == ["script"]


def test_a_chief_that_has_nothing_left_to_send_is_not_waited_for_at_the_end() -> None:
    world = training(plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest))
    world.end_trainer(BEN, "chief:0", FINISHED)
    assert world.starter.outputs == "here"
    world.cut_link(BEN)
    world.fire("look")
    assert shown(world, ANNA) == []
    world.end_trainer(ANNA, "worker:0", FINISHED)
    assert isinstance(world.phase, Finished)


BENS_CHIEF = plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)


def bring_outputs_after_an_absence(world: World) -> None:
    world.trainer_ends(ANNA, "worker:0", FINISHED)
    if BEN in world.cut:
        world.restore_link(BEN)
    world.settle()
    assert world.starter.tally.known.outputs == ("model.keras",)
    assert isinstance(world.phase, Finished)


def test_outputs_found_while_the_starter_was_away_are_offered_once_it_is_back() -> None:
    world = training(BENS_CHIEF)
    world.cut_link(BEN)
    world.end_trainer(BEN, "chief:0", FINISHED)
    assert world.starter.outputs == "expected"
    bring_outputs_after_an_absence(world)


def bring_until(world: World, outputs: str) -> None:
    while world.starter.outputs != outputs:
        world.possible()[0]()


def test_outputs_that_came_whole_just_before_the_link_was_lost_are_stored() -> None:
    world = training(BENS_CHIEF)
    world.trainer_ends(BEN, "chief:0", FINISHED)
    bring_until(world, "coming")
    world.cut_link(BEN)
    world.do_job()
    assert world.starter.outputs == "here"
    bring_outputs_after_an_absence(world)


def drains(world: World) -> None:
    """Every trainer has ended and that is known; nobody has looked for the chief's outputs yet."""
    for device, task in ((ANNA, "worker:0"), (BEN, "chief:0")):
        world.trainer_ends(device, task, FINISHED)
    while world.to_starter[ANNA] or world.to_starter[BEN]:
        world.deliver_to_starter(ANNA if world.to_starter[ANNA] else BEN)
    assert isinstance(world.starter.stage, co.Draining) and world.starter.outputs == "expected"


@pytest.mark.parametrize("moment", ["before they are found", "before they are offered", "midway"])
def test_a_chief_that_is_silent_when_all_is_done_but_for_its_outputs_is_waited_for(moment: str) -> None:
    world = training(BENS_CHIEF)
    drains(world)
    if moment != "before they are found":
        world.do_job_of(BEN)
    if moment == "midway":
        bring_until(world, "coming")
        rest = world.jobs.popleft()
    world.cut_link(BEN)
    assert isinstance(world.phase, Training) and "outputs" not in world.waits
    world.fire("look")
    world.fire_member(BEN, "look")
    assert shown(world, ANNA) == shown(world, BEN) == ["away"]
    if moment == "midway":
        world.jobs.append(rest)
    bring_outputs_after_its_return(world)


def bring_outputs_after_its_return(world: World) -> None:
    world.restore_link(BEN)
    assert "outputs" in world.waits and shown(world, ANNA) == []
    world.settle()
    assert world.starter.tally.known.outputs == ("model.keras",)
    assert isinstance(world.phase, Finished)


def test_a_chief_that_is_away_when_the_others_end_is_waited_for_longer_than_outputs_are() -> None:
    world = training(BENS_CHIEF)
    world.trainer_ends(BEN, "chief:0", FINISHED)
    while world.to_starter[BEN]:
        world.deliver_to_starter(BEN)
    world.cut_link(BEN)
    world.end_trainer(ANNA, "worker:0", FINISHED)
    assert isinstance(world.starter.stage, co.Draining) and "outputs" not in world.waits
    bring_outputs_after_its_return(world)


def test_outputs_of_a_laptop_that_stays_away_are_named_as_what_is_missing() -> None:
    world = training(BENS_CHIEF)
    drains(world)
    world.cut_link(BEN)
    world.fire("away")
    world.settle()
    assert isinstance(world.phase, Failed) and world.phase.problem.code == "outputs-missing"
    assert "Ben's was silent for 10 min" in world.phase.problem.what


def test_stop_ends_the_wait_for_outputs_at_once() -> None:
    world = training(BENS_CHIEF)
    drains(world)
    world.cut_link(BEN)
    world.tell(co.StopWanted("Anna's", world.starter.next_force))
    assert world.phase == Stopped(by="Anna's") and world.over


def test_a_chief_that_ended_and_falls_silent_while_others_stop_is_waited_for() -> None:
    world = training(BENS_CHIEF)
    world.press_stop()
    world.trainer_ends(BEN, "chief:0", FINISHED)
    while world.to_starter[BEN]:
        world.deliver_to_starter(BEN)
    world.cut_link(BEN)
    assert isinstance(world.starter.stage, co.Halting)
    world.end_trainer(ANNA, "worker:0", FINISHED)
    world.restore_link(BEN)
    world.settle()
    assert world.phase == Stopped(by="Anna's") and world.starter.tally.known.outputs == ("model.keras",)


def test_a_member_that_was_asked_to_stop_does_not_wait_for_a_starter_that_is_lost() -> None:
    world = training()
    world.press_stop()
    world.cut_link(BEN)
    assert world.members[BEN].trainers == {"worker:0": 2}


def test_a_laptop_that_slept_itself_goes_on_with_the_run() -> None:
    world = training()
    world.cut_link(BEN, link.slept("Ben's", 30.0))
    world.fire("look")
    assert shown(world, ANNA) == ["away"] and isinstance(world.phase, Training)
    assert world.members[BEN].trainers == {"worker:0": -1}


# --- the question ------------------------------------------------------------------------------------------


def test_before_the_first_step_nobody_is_asked_at_once_however_long_the_laptop_has_been_on() -> None:
    world = World(TLS)
    world.now_s = 100_000.0
    world.settle()
    world.trainer_says(ANNA, "chief:0", Connecting())
    world.trainer_says(ANNA, "chief:0", waits_for_ben())
    world.settle()
    assert told(world)[-1].waits and not told(world)[-1].asks
    while not told(world)[-1].asks:
        world.fire("look")
        world.settle()
    assert world.now_s >= 100_000.0 + world.starter.plan.ask_after_s


def test_after_long_without_progress_the_user_is_asked_and_may_let_the_run_wait() -> None:
    world = training(replace(TLS, ask_after_s=60.0))
    ben_is_busy(world)
    while not told(world)[-1].asks:
        assert world.now_s < 100.0
        world.fire("look")
        world.settle()
    assert world.now_s >= 60.0
    bens = world.screens[BEN].run
    assert bens is not None and bens.waiting is not None and bens.waiting.asks
    assert isinstance(world.phase, Training), "it goes on waiting until somebody says no"
    world.tell(co.WaitedOn())
    assert not told(world)[-1].asks
    until_s = world.now_s + 60.0
    while not told(world)[-1].asks:
        world.fire("look")
    assert world.now_s >= until_s


def test_unreported_meetings_are_progress() -> None:
    world = training(replace(TLS, ask_after_s=60.0))
    world.now_s += 360.0  # predict: exchanges end, no step is reported, no wait is long enough to report
    world.trainer_says(BEN, "worker:0", busy())
    world.trainer_says(ANNA, "chief:0", waits_for_ben(lasted_s=2.0))
    world.settle()
    assert told(world)[-1].waits and not told(world)[-1].asks
    until_s = world.now_s + 50.0
    while not told(world)[-1].asks:
        world.trainer_says(ANNA, "chief:0", waits_for_ben(lasted_s=9.0))  # the same wait is no progress
        world.settle()
        world.fire("look")
    assert until_s < world.now_s < until_s + 15.0


def test_the_user_is_asked_if_all_scripts_hang() -> None:
    world = training(replace(TLS, ask_after_s=60.0))
    asked_s = 0.0
    for lasted_s in range(2, 80, 4):
        world.now_s += 4.0
        status = StatusChanged(
            status=TrainerStatus(activity="script", where="train.py, line 9", lasted_s=lasted_s)
        )
        world.each_trainer_says(status)
        if not asked_s and told(world) and told(world)[-1].asks:
            asked_s = float(lasted_s)
    assert 60.0 <= asked_s <= 68.0
    assert shown(world, ANNA) == shown(world, BEN) == ["script", "script"]


def test_scripts_that_all_hang_are_named_even_if_nobody_is_to_be_asked() -> None:
    world = training(replace(TLS, ask_after_s=0.0))
    for lasted_s in (200.0, 301.0):
        assert not told(world)
        world.each_trainer_says(
            StatusChanged(status=TrainerStatus(activity="script", where="t.py", lasted_s=lasted_s))
        )
    assert shown(world, ANNA) == ["script", "script"] and not told(world)[-1].asks


def test_bytes_that_come_are_progress() -> None:
    world = training(replace(TLS, ask_after_s=60.0))
    for come in range(60):
        world.trainer_says(BEN, "worker:0", busy())
        world.trainer_says(ANNA, "chief:0", waits_for_ben(come=come))
        world.settle()
        world.fire("look")
    assert world.now_s > 60.0
    assert not any(event.asks for event in told(world))


def test_zero_never_asks() -> None:
    world = training(replace(TLS, ask_after_s=0.0))
    ben_is_busy(world)
    for _ in range(500):
        world.fire("look")
    assert not any(event.asks for event in told(world))


def test_an_answer_that_nobody_asked_for_changes_nothing() -> None:
    world = training()
    before = world.starter
    world.tell(co.WaitedOn())
    world.tell(LinkBack(BEN))
    world.tell(LinkBack(CLEO))
    assert world.starter == before


def test_a_stopped_process_is_reported_by_its_node_until_it_goes_on() -> None:
    world = training()
    world.trainer_says(ANNA, "chief:0", waits_for_ben())
    world.fire_member(BEN, "look")
    assert world.members[BEN].looked == 1
    world.tell_member(BEN, pa.TrainersChecked(frozenset({"worker:0"})))
    world.settle()
    assert shown(world, ANNA) == ["stopped"]
    world.tell_member(BEN, pa.TrainersChecked(frozenset({"worker:0"})))
    assert not world.to_starter[BEN], "no news"
    world.tell_member(BEN, pa.TrainersChecked(frozenset()))
    world.settle()
    assert shown(world, ANNA) != ["stopped"]


# --- a process that cannot speak ---------------------------------------------------------------------------


def cannot_hear_ben(lasted_s: float = 10.0, heard_s: float = 9.0) -> StatusChanged:
    peer = PeerWait(rank=1, lasted_s=lasted_s, heard_s=heard_s)
    return StatusChanged(status=TrainerStatus(activity="exchange", lasted_s=lasted_s, peers=(peer,)))


def ben_says_nothing(world: World, cpu_s: float = 12.0) -> None:
    world.now_s += 2.0
    world.tell_member(BEN, pa.TrainersChecked(frozenset(), {"worker:0": 4.0}))
    world.now_s += limits.HELD_S
    world.tell_member(BEN, pa.TrainersChecked(frozenset(), {"worker:0": cpu_s}))
    world.settle()


def test_a_trainer_whose_interpreter_is_blocked_is_reported_by_its_node_with_its_cpu_use() -> None:
    world = training()
    ben_says_nothing(world)
    assert shown(world, ANNA) == [], "nobody needs anything of it"
    world.trainer_says(ANNA, "chief:0", cannot_hear_ben())
    world.settle()
    (wait,) = told(world)[-1].waits
    assert (wait.device, wait.cause, wait.held, wait.cores) == (BEN, "script", True, 1.0)
    assert shown(world, BEN) == ["script"]
    world.trainer_says(BEN, "worker:0", progress(2))
    world.settle()
    assert not world.starter.statuses.keys() & {"worker:0"}, "it speaks again"


def test_stop_does_not_wait_for_a_step_whose_interpreter_is_blocked() -> None:
    world = training()
    ben_says_nothing(world)
    world.trainer_says(ANNA, "chief:0", cannot_hear_ben())
    world.settle()
    world.press_stop()
    assert world.members[BEN].trainers == {"worker:0": 1}


def test_a_quiet_trainer_is_not_suspected_while_its_keep_alives_come() -> None:
    world = training()
    ben_says_nothing(world)
    world.trainer_says(ANNA, "chief:0", cannot_hear_ben(lasted_s=3.0, heard_s=0.5))
    world.settle()
    assert shown(world, ANNA) == ["wire"] or shown(world, ANNA) == []
    assert not any(wait.held for event in told(world) for wait in event.waits)


def test_trainers_that_are_quiet_for_long_are_not_taken_for_hanging_scripts() -> None:
    world = training(replace(TLS, ask_after_s=60.0))
    for _ in range(40):
        for device, task in ((ANNA, "chief:0"), (BEN, "worker:0")):
            world.tell_member(device, pa.TrainersChecked(frozenset(), {task: world.now_s}))
        world.now_s += 4.0
        world.settle()
    assert {"chief:0", "worker:0"} <= set(world.starter.statuses)
    assert told(world) == [], "predict, say: each of its batches ends soon"


def test_a_trainer_that_has_not_met_the_others_yet_may_be_silent() -> None:
    world = World(TLS)
    world.settle()
    world.trainer_says(BEN, "worker:0", Connecting())
    ben_says_nothing(world)
    assert "worker:0" not in world.starter.statuses


@pytest.mark.parametrize("stopped_at_last", [True, False])
def test_a_process_that_is_stopped_or_goes_on_while_the_link_is_lost_is_reported_afterwards(
    stopped_at_last: bool,
) -> None:
    world = training()
    stopped, none = frozenset({"worker:0"}), frozenset[str]()
    world.trainer_says(ANNA, "chief:0", waits_for_ben())
    world.tell_member(BEN, pa.TrainersChecked(none if stopped_at_last else stopped))
    world.settle()
    world.cut_link(BEN)
    at_last = pa.TrainersChecked(stopped if stopped_at_last else none)
    world.tell_member(BEN, at_last)
    world.restore_link(BEN)
    world.settle()
    world.tell_member(BEN, at_last)
    world.trainer_says(ANNA, "chief:0", waits_for_ben())
    world.settle()
    assert ("stopped" in shown(world, ANNA)) == stopped_at_last


def test_a_member_checks_its_trainers_as_long_as_they_run() -> None:
    world = training()
    for _ in range(3):
        world.fire_member(BEN, "look")
    assert world.members[BEN].looked == 3
    world.end_trainer(BEN, "worker:0", FINISHED)
    world.fire_member(BEN, "look")
    assert world.members[BEN].looked == 3 and "look" not in world.members[BEN].waits


def test_lines_are_repeated_too() -> None:
    world = training()
    world.cut_link(BEN)
    lines = LogLines(task="worker:0", stream="stdout", text="while away\n")
    world.tell_member(BEN, pa.TrainerWrote(lines))
    world.restore_link(BEN)
    world.settle()
    assert "while away" in world.said()
