"""The state follows from its events; an impossible event raises."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.vocabulary import events as ev
from core.vocabulary import phases
from core.vocabulary.errors import IllegalTransition, Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.plan import Member, Moment, Plan, Role, Task
from core.vocabulary.progress import EpochEnd, Expectation, LogLines, Progress, Summary
from core.vocabulary.readings import Reading
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from core.vocabulary.text import LOG_LENGTH, LOG_LINE_LENGTH, LOG_LINES_KEPT
from tests.core.fake_node import HARDWARE, ME, OTHER, VERSIONS, found, started
from tests.core.samples import sample

RUN = RunId("20261121-191204-9f3a01bc")
PROBLEM = Problem(code="some-problem", what="Something happened.", fix="Mend it.")
READING = Reading(
    at_s=1.0, cpu_pct=5.0, memory_used_bytes=1, memory_total_bytes=2, sent_bytes_s=0.0, received_bytes_s=0.0
)
PLAN = Plan(
    run=RUN,
    starter=ME,
    project=ProjectId("c" * 64),
    script="train.py",
    members=(Member(device=ME, name="here"), Member(device=OTHER, name="other")),
    tasks=(Task(device=ME, role=Role.CHIEF, index=0), Task(device=OTHER, role=Role.WORKER, index=0)),
)
PAIRED = ev.DevicePaired(device=OTHER, name="other", policy="always", addresses=("192.168.1.3:27600",))
LINKED = ev.LinkUp(
    device=OTHER, name="Other", address="192.168.1.9:27600", versions=VERSIONS, hardware=HARDWARE, busy=True
)


def after(*events: ev.Event) -> State:
    state = apply(State(), started())
    for event in events:
        state = apply(state, event)
    return state


def phase(kind: phases.Phase) -> ev.RunPhaseChanged:
    return ev.RunPhaseChanged(run=RUN, phase=kind)


# --- the node -----------------------------------------------------------------------------------------------


def test_nothing_happens_before_the_node_has_started() -> None:
    with pytest.raises(IllegalTransition):
        apply(State(), ev.AddressesChanged(addresses=()))


def test_changed_settings_change_the_name_unless_it_is_empty() -> None:
    me = after(ev.SettingsChanged(settings=Settings(name="Büro"))).me
    assert me is not None and me.name == "Büro"

    me = after(ev.SettingsChanged(settings=Settings(theme="dark"))).me
    assert me is not None and me.name == "here" and me.settings.theme == "dark"


def test_a_cleared_name_gives_way_to_the_systems_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "laptop-7.example.org")
    named, cleared = (
        ev.SettingsChanged(settings=Settings(name="Büro")),
        ev.SettingsChanged(settings=Settings()),
    )
    me = after(named, cleared).me
    assert me is not None and me.name == "laptop-7"


def test_a_started_node_has_the_facts_of_its_first_event() -> None:
    event = started()
    me = after().me
    assert me is not None and me.reading is None
    for field in ("device", "name", "addresses", "versions", "hardware", "settings", "home"):
        assert getattr(me, field) == getattr(event, field)


def test_new_addresses_replace_the_old_ones() -> None:
    me = after(ev.AddressesChanged(addresses=("10.0.0.5:27600",))).me
    assert me is not None and me.addresses == ("10.0.0.5:27600",)


def test_a_stopped_node_says_so_and_a_running_one_does_not() -> None:
    assert not after().stopped
    assert after(ev.NodeStopped()).stopped


def test_the_twenty_newest_notices_are_kept() -> None:
    problems = [replace(PROBLEM, code=f"problem-{number}") for number in range(25)]
    assert after(*(ev.NoticeRaised(problem=each) for each in problems)).notices == tuple(problems[5:])


def test_a_notice_that_comes_again_is_kept_once_as_the_newest() -> None:
    other = Problem(code="other", what="Other.")
    again = Problem(code="some-problem", what="Again.")

    notices = after(*(ev.NoticeRaised(problem=problem) for problem in (PROBLEM, other, again))).notices

    assert notices == (other, again)


def test_the_readings_of_this_laptop_are_its_own() -> None:
    state = after(PAIRED, ev.TelemetryReported(device=ME, reading=READING))

    assert state.me is not None and state.me.reading == READING
    assert state.devices[OTHER].reading is None


# --- devices ------------------------------------------------------------------------------------------------


def test_a_found_device_is_neither_paired_nor_linked() -> None:
    device = after(found()).devices[OTHER]

    assert device.seen and not device.paired and not device.linked


def test_a_found_device_that_goes_is_forgotten() -> None:
    assert after(found(), ev.DeviceGone(device=OTHER)).devices == {}


def test_a_paired_device_that_goes_stays() -> None:
    device = after(found(), PAIRED, ev.DeviceGone(device=OTHER)).devices[OTHER]

    assert device.paired and not device.seen


def test_a_network_record_cannot_rename_a_paired_device() -> None:
    assert after(PAIRED, found("evil")).devices[OTHER].name == "other"
    assert after(found("before"), PAIRED).devices[OTHER].name == "other"


def test_a_link_reports_name_versions_and_whether_the_device_is_busy() -> None:
    device = after(PAIRED, LINKED).devices[OTHER]

    assert device.linked and device.busy
    assert (device.name, device.versions, device.hardware) == ("Other", VERSIONS, HARDWARE)
    assert device.addresses == ("192.168.1.9:27600", "192.168.1.3:27600")


def test_a_links_address_comes_first_and_only_once() -> None:
    moved = replace(LINKED, address="192.168.1.3:27600")
    assert after(PAIRED, LINKED, moved).devices[OTHER].addresses == ("192.168.1.3:27600", "192.168.1.9:27600")


def test_a_link_reports_why_no_run_is_possible_over_it() -> None:
    assert after(PAIRED, replace(LINKED, problem=PROBLEM)).devices[OTHER].problem == PROBLEM
    assert after(PAIRED, replace(LINKED, problem=PROBLEM), LINKED).devices[OTHER].problem is None


def test_pairing_sets_nickname_and_policy_and_clears_an_old_problem() -> None:
    lost = ev.LinkDown(device=OTHER, problem=PROBLEM)
    again = replace(PAIRED, nickname="desk", policy="always")
    device = after(PAIRED, LINKED, lost, again).devices[OTHER]
    assert (device.nickname, device.policy, device.problem) == ("desk", "always", None)


def test_pairing_without_addresses_keeps_discovered_ones() -> None:
    assert after(found(), replace(PAIRED, addresses=())).devices[OTHER].addresses == found().addresses
    assert after(found(), PAIRED).devices[OTHER].addresses == PAIRED.addresses


def test_a_device_that_is_found_again_has_the_newest_addresses() -> None:
    moved = replace(found(), addresses=("10.0.0.7:27600",))
    device = after(PAIRED, moved).devices[OTHER]
    assert device.addresses == ("10.0.0.7:27600",) and device.seen


def test_a_network_record_renames_a_device_that_has_said_nothing_itself() -> None:
    assert after(found("before"), found("now")).devices[OTHER].name == "now"
    assert after(LINKED, found("evil")).devices[OTHER].name == "Other"


def test_a_linked_device_that_is_seen_no_longer_stays() -> None:
    assert after(found(), LINKED, ev.DeviceGone(device=OTHER)).devices[OTHER].linked


def test_the_latest_policy_reading_and_busyness_count() -> None:
    device = after(
        PAIRED,
        LINKED,
        ev.CodePolicyChanged(device=OTHER, policy="ask"),
        ev.TelemetryReported(device=OTHER, reading=READING),
        ev.BusyChanged(device=OTHER, busy=False),
    ).devices[OTHER]
    assert (device.policy, device.reading, device.busy) == ("ask", READING, False)
    assert device.linked and device.paired


def test_a_laptops_newly_found_seal_replaces_the_old_one() -> None:
    state = after(PAIRED, LINKED)
    assert state.me is not None and state.me.versions.seal == ""
    state = apply(state, ev.SealChanged(device=state.me.device, seal="namespace"))
    state = apply(state, ev.SealChanged(device=OTHER, seal="other"))
    assert state.me is not None and state.me.versions.seal == "namespace"
    other = state.devices[OTHER].versions
    assert other is not None and other.seal == "other"


def test_a_device_renamed_during_a_run_has_the_new_name() -> None:
    renamed = after(PAIRED, LINKED, ev.BusyChanged(device=OTHER, busy=True, name="Annas Büro"))
    assert renamed.devices[OTHER].name == "Annas Büro"
    assert apply(renamed, ev.BusyChanged(device=OTHER, busy=False)).devices[OTHER].name == "Annas Büro"


def test_the_no_network_notice_ends_when_there_is_a_network() -> None:
    alone = ev.NoticeRaised(problem=Problem(code="no-network", what="This laptop is not on a network."))
    other = ev.NoticeRaised(problem=PROBLEM)
    for addresses in ((), ("127.0.0.1:27600", "[::1]:27600")):
        state = after(alone, other, ev.AddressesChanged(addresses=addresses))
        assert state.notices == (alone.problem, PROBLEM)
    assert apply(state, ev.AddressesChanged(addresses=("10.0.0.5:27600",))).notices == (PROBLEM,)


def test_one_device_changes_and_the_others_stay() -> None:
    third = DeviceId("e" * 64)
    state = after(PAIRED, ev.DevicePaired(device=third, name="third"))
    assert set(apply(state, ev.BusyChanged(device=OTHER, busy=True)).devices) == {OTHER, third}
    assert set(apply(state, ev.DeviceForgotten(device=OTHER)).devices) == {third}


def test_a_lost_link_says_why_and_the_device_is_not_busy_any_more() -> None:
    device = after(PAIRED, LINKED, ev.LinkDown(device=OTHER, problem=PROBLEM)).devices[OTHER]

    assert (device.linked, device.busy, device.problem) == (False, False, PROBLEM)


def test_a_forgotten_device_loses_its_name_its_policy_and_its_place() -> None:
    nicknamed = ev.DeviceRenamed(device=OTHER, nickname="desk")

    assert after(PAIRED, nicknamed, ev.DeviceForgotten(device=OTHER)).devices == {}
    device = after(found(), PAIRED, LINKED, nicknamed, ev.DeviceForgotten(device=OTHER)).devices[OTHER]
    assert device.seen
    assert (device.paired, device.linked, device.nickname, device.policy) == (False, False, "", "ask")


def test_events_of_an_unknown_device_change_nothing() -> None:
    state = after()

    for event in (
        ev.DeviceGone(device=OTHER),
        ev.LinkDown(device=OTHER, problem=PROBLEM),
        ev.TelemetryReported(device=OTHER, reading=READING),
        ev.BusyChanged(device=OTHER, busy=True),
    ):
        assert apply(state, event) == state


def test_a_nickname_is_shown_before_the_name() -> None:
    state = after(PAIRED, ev.DeviceRenamed(device=OTHER, nickname="desk"))
    assert state.devices[OTHER].shown_name == "desk"

    state = apply(state, ev.DeviceRenamed(device=OTHER, nickname=""))
    assert state.devices[OTHER].shown_name == "other"


def test_a_device_without_any_name_is_shown_by_the_beginning_of_its_id() -> None:
    assert after(found("")).devices[OTHER].shown_name == "bbbbbbbb"


# --- pairing ------------------------------------------------------------------------------------------------


def test_a_pairing_goes_from_connecting_to_done() -> None:
    began = ev.PairingBegan(incoming=False, name="other", address="192.168.1.3:27600")
    shown = ev.PairingCodeShown(device=OTHER, name="Other", code="408355")
    stages = []
    state = after()
    for event in (began, shown, ev.PairingAnswered(), ev.PairingEnded(device=OTHER)):
        state = apply(state, event)
        assert state.pairing is not None
        stages.append(state.pairing.stage)

    assert stages == ["connecting", "comparing", "waiting", "done"]
    assert state.pairing is not None and state.pairing.code == "408355"


def test_a_pairing_records_who_called() -> None:
    began = ev.PairingBegan(incoming=True, name="other", address="192.168.1.3:27600", device=OTHER)
    pairing = after(began).pairing
    assert pairing is not None
    assert (pairing.incoming, pairing.name, pairing.address, pairing.device) == (
        True,
        "other",
        "192.168.1.3:27600",
        OTHER,
    )


def test_a_code_comes_with_the_name_and_the_warning_of_its_device() -> None:
    began = ev.PairingBegan(incoming=False, name="192.168.1.3", address="192.168.1.3:27600")
    code = ev.PairingCodeShown(device=OTHER, name="Other", code="408355", warning=PROBLEM)
    for events in ((began, code), (began, code, ev.PairingEnded(problem=PROBLEM))):
        pairing = after(*events).pairing
        assert pairing is not None
        assert (pairing.device, pairing.name, pairing.warning) == (OTHER, "Other", PROBLEM)


def test_the_end_of_a_pairing_that_never_began_is_no_pairing() -> None:
    assert after(ev.PairingEnded(problem=PROBLEM)).pairing is None


def test_a_failed_pairing_keeps_its_reason_until_the_next() -> None:
    began = ev.PairingBegan(incoming=True, name="other", address="192.168.1.3:27600")
    failed = after(began, ev.PairingEnded(problem=PROBLEM))
    assert failed.pairing is not None
    assert (failed.pairing.stage, failed.pairing.problem) == ("failed", PROBLEM)

    again = apply(failed, began).pairing
    assert again is not None and again.problem is None


def test_a_code_without_a_pairing_is_a_bug() -> None:
    with pytest.raises(IllegalTransition):
        after(ev.PairingCodeShown(device=OTHER, name="other", code="000000"))


# --- consent ------------------------------------------------------------------------------------------------


def test_a_question_stays_until_it_is_settled() -> None:
    asked = sample(ev.ConsentAsked)
    other = ev.ConsentSettled(run=RUN, allowed=True)

    assert [consent.run for consent in after(asked, other).consents] == [asked.run]
    assert after(asked, ev.ConsentSettled(run=asked.run, allowed=False)).consents == ()


def test_a_question_has_everything_that_its_user_needs_to_know() -> None:
    asked = replace(sample(ev.ConsentAsked), checkpoint_bytes=5)
    (consent,) = after(asked).consents
    for field in consent.__struct_fields__:
        assert getattr(consent, field) == getattr(asked, field)


def test_questions_are_in_order_of_arrival() -> None:
    asked = [replace(sample(ev.ConsentAsked), run=RunId(run)) for run in ("one", "two")]
    assert [consent.run for consent in after(*asked).consents] == ["one", "two"]


# --- runs ---------------------------------------------------------------------------------------------------


def test_a_run_goes_through_its_phases() -> None:
    state = after(ev.RunPlanned(plan=PLAN))
    assert state.busy
    for kind in (phases.Preparing(), phases.Starting(), phases.Training(), phases.Finished()):
        state = apply(state, phase(kind))

    assert state.run is not None and state.run.over
    assert not state.busy


def test_members_are_idle_once_a_run_is_over() -> None:
    third = DeviceId("e" * 64)
    away = ev.LinkUp(
        device=third, name="third", address="a:1", versions=VERSIONS, hardware=HARDWARE, busy=True
    )
    state = after(PAIRED, LINKED, away, ev.RunPlanned(plan=PLAN), phase(phases.Preparing()))
    assert state.devices[OTHER].busy
    state = apply(state, phase(phases.Stopped()))
    assert not state.devices[OTHER].busy
    assert state.devices[third].busy  # in its own run


def test_a_repeated_plan_keeps_its_members_progress() -> None:
    moved = ev.MemberPhaseChanged(run=RUN, device=OTHER, phase="receiving", done=1, total=2)
    completed = ev.RunPlanned(plan=PLAN)

    run = after(ev.RunPlanned(plan=PLAN), moved, completed).run

    assert run is not None and run.members[OTHER].phase == "receiving"


def test_a_members_activity_is_shown_in_words_and_numbers() -> None:
    moved = ev.MemberPhaseChanged(run=RUN, device=OTHER, phase="receiving", words="3 files", done=1, total=2)
    run = after(ev.RunPlanned(plan=PLAN), moved).run
    assert run is not None
    member = run.members[OTHER]
    assert (member.words, member.done, member.total) == ("3 files", 1, 2)
    assert run.members[ME].phase == "waiting"


def test_a_run_that_only_changes_its_phase_keeps_its_members_busy() -> None:
    assert after(PAIRED, LINKED, ev.RunPlanned(plan=PLAN), phase(phases.Preparing())).devices[OTHER].busy


def test_two_runs_at_once_are_a_bug() -> None:
    other = Plan(**{**{f: getattr(PLAN, f) for f in PLAN.__struct_fields__}, "run": RunId("another")})
    with pytest.raises(IllegalTransition):
        after(ev.RunPlanned(plan=PLAN), ev.RunPlanned(plan=other))

    state = after(ev.RunPlanned(plan=PLAN), phase(phases.Failed(problem=PROBLEM)), ev.RunPlanned(plan=other))
    assert state.run is not None and state.run.plan == other and state.run.phase == phases.Planning()


def test_events_of_another_run_or_a_stranger_are_bugs() -> None:
    planned = ev.RunPlanned(plan=PLAN)
    stranger = DeviceId("d" * 64)
    for event in (
        ev.RunPhaseChanged(run=RunId("another"), phase=phases.Preparing()),
        ev.MemberPhaseChanged(run=RUN, device=stranger, phase="training"),
    ):
        with pytest.raises(IllegalTransition):
            after(planned, event)
    with pytest.raises(IllegalTransition):
        after(phase(phases.Preparing()))


def test_a_member_shows_its_newest_step_epoch_and_end() -> None:
    progress = Progress(at_s=1.0, epoch=0, epochs=2, step=3, batch=3)
    epoch = EpochEnd(at_s=2.0, epoch=0, epochs=2, step=9, logs={"loss": 0.5}, seconds=1.0)
    end = phases.Exit(reason="finished", weights_sha256="e" * 64)
    run = after(
        ev.RunPlanned(plan=PLAN),
        ev.MemberProgressed(run=RUN, device=OTHER, progress=progress),
        ev.MemberEndedEpoch(run=RUN, device=OTHER, epoch=epoch),
        ev.MemberEnded(run=RUN, device=OTHER, task="worker:0", exit=end),
        ev.RunSummarised(run=RUN, summary=Summary(epochs=2)),
    ).run

    assert run is not None and run.summary == Summary(epochs=2)
    member = run.members[OTHER]
    assert (member.progress, member.epoch, member.phase) == (progress, epoch, "ended")
    assert member.exits == {"worker:0": end}
    assert run.members[ME].progress is None


def test_the_reason_why_a_member_left_is_kept_and_the_run_goes_on() -> None:
    why = Problem(code="killed", what="its trainer was killed.")
    progress = Progress(at_s=1.0, epoch=0, epochs=2, step=3, batch=3)
    run = after(
        ev.RunPlanned(plan=PLAN),
        phase(phases.Preparing()),
        phase(phases.Starting()),
        phase(phases.Training()),
        ev.MemberProgressed(run=RUN, device=OTHER, progress=progress),
        ev.MemberLeft(run=RUN, device=OTHER, problem=why),
    ).run
    assert run is not None and run.phase == phases.Training()
    member = run.members[OTHER]
    assert (member.left, member.phase, member.progress) == (why, "ended", progress)
    assert run.members[ME].left is None


def test_measurements_belong_to_the_run_and_must_be_possible() -> None:
    expectation = Expectation(alone_s=(0.1, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1, shares=(43, 21))
    measured = ev.MemberMeasured(run=RUN, device=ME, expectation=expectation)
    planned = ev.RunPlanned(plan=PLAN)
    run = after(planned, measured).run
    assert run is not None and run.expectation == expectation
    fewer = replace(PLAN, members=PLAN.members[:1], tasks=PLAN.tasks[:1])
    for plan, known in ((PLAN, expectation), (fewer, None)):
        run = after(planned, measured, ev.RunPlanned(plan=plan)).run
        assert run is not None and run.expectation == known
    odd = replace(expectation, alone_s=(0.1, float("nan")))
    for event in (
        replace(measured, expectation=odd),
        ev.RunSummarised(run=RUN, summary=Summary(expectation=odd)),
    ):
        with pytest.raises(IllegalTransition):
            after(planned, event)


def test_only_the_newest_lines_of_a_log_are_kept() -> None:
    state = after(ev.RunPlanned(plan=PLAN))
    for start in range(0, LOG_LINES_KEPT * 2, 100):
        text = "\n".join(f"line {number}" for number in range(start, start + 100))
        lines = LogLines(task="chief:0", stream="stdout", text=text)
        state = apply(state, ev.MemberLogged(run=RUN, device=ME, lines=lines))

    assert state.run is not None
    log = state.run.members[ME].log["chief:0"]
    assert len(log) == LOG_LINES_KEPT
    assert log[-1] == f"line {LOG_LINES_KEPT * 2 - 1}"


def test_a_line_of_thousands_of_characters_is_not_kept_whole() -> None:
    state = after(ev.RunPlanned(plan=PLAN))
    lines = LogLines(task="chief:0", stream="stdout", text="x" * 19_000 + "\nshort")
    state = apply(state, ev.MemberLogged(run=RUN, device=ME, lines=lines))
    assert state.run is not None
    assert [len(line) for line in state.run.members[ME].log["chief:0"]] == [LOG_LINE_LENGTH, 5]


def test_only_as_many_long_log_lines_are_kept_as_fit() -> None:
    state = after(ev.RunPlanned(plan=PLAN))
    lines = LogLines(task="chief:0", stream="stdout", text="\n".join(["x" * 5_000] * 3))
    for _ in range(20):
        state = apply(state, ev.MemberLogged(run=RUN, device=ME, lines=lines))
    assert state.run is not None
    assert sum(map(len, state.run.members[ME].log["chief:0"])) == LOG_LENGTH


def test_a_made_up_task_is_not_the_devices() -> None:
    state = after(ev.RunPlanned(plan=PLAN))
    lines = LogLines(task="chief:0", stream="stdout", text="x")
    for event in (
        ev.MemberLogged(run=RUN, device=OTHER, lines=lines),
        ev.MemberEnded(run=RUN, device=ME, task="worker:0", exit=phases.Exit(reason="finished")),
    ):
        with pytest.raises(IllegalTransition, match="task"):
            apply(state, event)


@given(st.lists(st.sampled_from(get_args(phases.Phase)), max_size=8))
def test_phases_never_leave_the_transition_table(kinds: list[type[phases.Phase]]) -> None:
    state = after(ev.RunPlanned(plan=PLAN))
    for kind in kinds:
        assert state.run is not None
        before = state.run.phase
        if kind in phases.NEXT[type(before)]:
            state = apply(state, phase(sample(kind)))
            assert state.run is not None and type(state.run.phase) is kind
        else:
            with pytest.raises(IllegalTransition):
                apply(state, phase(sample(kind)))
            assert state.run is not None and state.run.phase is before


def test_every_phase_that_is_not_an_outcome_leads_to_one() -> None:
    for kind, following in phases.NEXT.items():
        assert not following if kind in get_args(phases.Outcome) else phases.Failed in following


def test_the_newest_report_of_a_checkpoint_counts_until_its_laptop_is_gone() -> None:
    third = ev.CheckpointFound(run=RunId("another"), device=DeviceId("c" * 64), moment=Moment(step=1))
    older = ev.CheckpointFound(run=RUN, device=OTHER, moment=Moment(step=40))
    newer = replace(older, moment=Moment(step=60))
    state = after(ev.DevicePaired(device=OTHER, name="a"), third, older, newer)
    assert state.checkpoints == {third.run: third, RUN: newer}
    state = apply(state, ev.LinkDown(device=OTHER, problem=Problem(code="silent", what="It fell silent.")))
    assert state.checkpoints == {third.run: third}


def test_progress_of_fetching_a_checkpoint_is_shown() -> None:
    came = ev.CheckpointCame(run=RUN, device=OTHER, done=1, total=2)
    state = after(came)
    assert state.fetch == came
    assert apply(state, ev.FetchEnded(run=RUN)).fetch is None


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in get_args(ev.Event)])
def test_every_event_is_known_to_the_state(kind: type[ev.Event]) -> None:
    """Each either changes a running node's state, or is refused as out of place; none is overlooked."""
    event = sample(kind)
    device = getattr(event, "device", None) or OTHER
    seen = ev.DeviceFound(device=device, name="a", addresses=())
    state = after(seen, ev.DevicePaired(device=device, name="a"))
    try:
        changed = apply(state, event) != state
    except IllegalTransition:
        changed = True

    nothing_to_settle = isinstance(event, ev.ConsentSettled | ev.PairingEnded | ev.FetchEnded)
    is_asked_for = isinstance(event, ev.HistoryChanged)
    assert changed or nothing_to_settle or is_asked_for
