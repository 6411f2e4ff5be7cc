"""When laptops join a run and leave it."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.history.attendance import Attendance, MemberChange, Track
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.laptops import Change
from core.vocabulary.phases import Exit, ExitReason, Stopping
from core.vocabulary.waits import Cause, WaitsFor
from tests.core.cluster.laptops import ANNA, BEN

RUN = RunId("r")
KILLED = Exit(reason="killed", problem=Problem(code="killed", what="It was killed.", fix="Look why."))


def waits(*devices: DeviceId, cause: Cause = "away") -> ev.WaitingChanged:
    return ev.WaitingChanged(
        run=RUN, waits=tuple(WaitsFor(device=each, cause=cause, lasted_s=12.0) for each in devices)
    )


def trains(device: DeviceId) -> ev.MemberPhaseChanged:
    return ev.MemberPhaseChanged(run=RUN, device=device, phase="training")


def ended(device: DeviceId, exit: Exit) -> ev.MemberEnded:
    return ev.MemberEnded(run=RUN, device=device, task="worker:0", exit=exit)


def heard(*events: ev.Event) -> list[MemberChange]:
    attendance = Attendance()
    return [turn for event in events for turn in attendance.on_event(event)]


def test_a_laptop_that_sleeps_is_away_once_and_back_once() -> None:
    assert heard(trains(ANNA), trains(BEN), waits(BEN), waits(BEN), waits(), waits()) == [
        MemberChange(ANNA, "joined"),
        MemberChange(BEN, "joined"),
        MemberChange(BEN, "away"),
        MemberChange(BEN, "back"),
    ]


@pytest.mark.parametrize(
    ("code", "change"),
    [("left", "left"), ("closed", "left"), ("stopped", "left"), ("killed", "lost"), ("device-away", "lost")],
)
def test_a_member_whose_user_took_it_out_has_left_and_any_other_was_lost(code: str, change: Change) -> None:
    why = Problem(code=code, what="So it was.")
    assert heard(ev.MemberLeft(run=RUN, device=BEN, problem=why)) == [MemberChange(BEN, change, "So it was.")]
    assert heard(ended(BEN, Exit(reason="killed", problem=why))) == [MemberChange(BEN, change, "So it was.")]


def test_a_script_that_fails_and_a_training_that_goes_back_lose_no_laptop() -> None:
    wrong = Problem(code="script-error", what="ValueError: no.")
    assert heard(ended(BEN, Exit(reason="script-error", problem=wrong))) == [
        MemberChange(BEN, "left", "ValueError: no.")
    ]
    again = Problem(code="goes-back", what="An audit found a difference.")
    assert heard(ended(BEN, Exit(reason="stopped", problem=again))) == []


def test_a_member_that_the_others_went_on_without_has_left_once() -> None:
    left = ev.MemberLeft(run=RUN, device=BEN, problem=Problem(code="closed", what="It was closed."))
    assert heard(waits(BEN), left, waits(), left) == [
        MemberChange(BEN, "away"),
        MemberChange(BEN, "left", "It was closed."),
    ]
    assert heard(ended(BEN, KILLED), left) == [MemberChange(BEN, "lost", "It was killed.")]


def test_a_member_that_is_waited_for_without_being_away_has_not_left() -> None:
    assert heard(waits(BEN, cause="wire"), waits(BEN, cause="silent"), waits()) == []
    assert heard(waits(BEN), waits(BEN, cause="wire")) == [
        MemberChange(BEN, "away"),
        MemberChange(BEN, "back"),
    ]


def test_a_trainer_that_is_killed_is_lost_once_and_says_why() -> None:
    assert heard(ended(BEN, KILLED), ended(BEN, KILLED)) == [MemberChange(BEN, "lost", "It was killed.")]
    assert heard(waits(BEN), ended(BEN, KILLED), waits()) == [
        MemberChange(BEN, "away"),
        MemberChange(BEN, "lost", "It was killed."),
    ], "and does not come back"


def test_a_killed_laptop_is_lost_and_those_that_end_because_of_it_are_not() -> None:
    lost = ev.MemberPhaseChanged(run=RUN, device=BEN, phase="ended", words="its link was lost")
    for reason, code in (("lost-peer", "lost-peer"), ("never-met", "never-met"), ("killed", "stop-forced")):
        problem = Problem(code=code, what="Another member went away.", fix="Look there.")
        survivor = ended(ANNA, Exit(reason=cast("ExitReason", reason), problem=problem))
        assert heard(survivor, lost, lost) == [MemberChange(BEN, "lost", "its link was lost")]
        assert heard(lost, survivor) == [MemberChange(BEN, "lost", "its link was lost")]


def test_a_laptop_that_had_done_its_part_is_not_lost() -> None:
    lost = ev.MemberPhaseChanged(run=RUN, device=BEN, phase="ended", words="its link was lost")
    assert heard(ended(BEN, Exit(reason="finished")), lost) == []
    assert heard(ev.RunPhaseChanged(run=RUN, phase=Stopping()), lost) == []


def test_a_run_that_stops_brings_nobody_back() -> None:
    stopping = ev.RunPhaseChanged(run=RUN, phase=Stopping())
    assert heard(waits(BEN), stopping, waits()) == [MemberChange(BEN, "away")]
    assert heard(ended(ANNA, Exit(reason="finished"))) == []


def test_a_second_is_mapped_to_the_runs_step_at_that_time() -> None:
    track = Track([(0.0, 3.0), (1.0, 9.0), (1.0, 8.0), (5.0, 7.0)])
    assert [track.step(second) for second in (-1.0, 0.0, 0.9, 1.0, 99.0)] == [None, 3.0, 3.0, 9.0, 9.0]
    assert Track([]).step(1.0) is None


@given(reports=st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6))), seconds=st.lists(st.floats(0, 1e6)))
def test_steps_never_fall(reports: list[tuple[float, float]], seconds: list[float]) -> None:
    track = Track(reports)
    steps = [step for second in sorted(seconds) if (step := track.step(second)) is not None]
    assert steps == sorted(steps)
