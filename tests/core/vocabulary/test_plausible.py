"""Impossible numbers from other laptops are refused one by one; those at the limits pass."""

from typing import Any

import pytest
from msgspec.structs import replace

from core.vocabulary.errors import IllegalTransition
from core.vocabulary.events import RunPlanned, WaitingChanged
from core.vocabulary.plan import Member, Moment
from core.vocabulary.plausible import (
    LONGEST_S,
    MOST,
    SHORTEST_S,
    is_step_time,
    sound,
    sound_moment,
    sound_status,
    sound_summary,
    sound_waits,
)
from core.vocabulary.progress import Expectation, Settled, Summary
from core.vocabulary.state import State, apply
from core.vocabulary.waits import PeerWait, TrainerStatus, WaitsFor
from tests.core.vocabulary.test_plan import ANNA, BEN, TOGETHER

EXPECTED = Expectation(alone_s=(0.1, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1, shares=(43, 21))
SETTLED = Settled(step_s=0.1, samples_s=640.0, wire_s=0.01, wire_bytes=8, shares={ANNA: 43, BEN: 21})
NAN, INFINITE = float("nan"), float("inf")


def test_a_step_takes_a_time_between_the_limits_both_included() -> None:
    assert is_step_time(SHORTEST_S) and is_step_time(LONGEST_S) and is_step_time(0.1)
    for seconds in (0.0, -1.0, SHORTEST_S / 2, LONGEST_S * 2, NAN, INFINITE):
        assert not is_step_time(seconds)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"wire_s": 0.0, "wire_bytes": 0},
        {"wire_s": MOST},
        {"shares": (0, 64)},
        {"shares": (64, 0)},
        {"alone_s": (SHORTEST_S, LONGEST_S)},
    ],
)
def test_possible_measurements_are_sound(change: dict[str, Any]) -> None:
    assert sound(replace(EXPECTED, **change), TOGETHER)


@pytest.mark.parametrize(
    "change",
    [
        {"alone_s": (0.1,)},
        {"alone_s": (0.1, 0.2, 0.3)},
        {"shares": (64,)},
        {"shares": (32, 16, 16)},
        {"alone_s": (0.1,), "shares": (64,)},
        {"alone_s": (0.1, NAN)},
        {"alone_s": (0.0, 0.2)},
        {"step_s": 0.0},
        {"step_s": INFINITE},
        {"wire_s": -0.1},
        {"wire_s": NAN},
        {"wire_bytes": -1},
        {"wire_bytes": 10**16},
        {"shares": (0, 0)},
        {"shares": (65, -1)},
    ],
)
def test_impossible_measurements_are_not_sound(change: dict[str, Any]) -> None:
    assert not sound(replace(EXPECTED, **change), TOGETHER)


@pytest.mark.parametrize(
    "change",
    [{}, {"samples_s": None, "wire_s": None, "wire_bytes": None}, {"shares": {}}, {"shares": {BEN: 0}}],
)
def test_possible_results_are_sound(change: dict[str, Any]) -> None:
    assert sound_summary(Summary(settled=replace(SETTLED, **change)), TOGETHER)


@pytest.mark.parametrize(
    "change",
    [
        {"step_s": 0.0},
        {"samples_s": -1.0},
        {"wire_s": NAN},
        {"wire_bytes": -1},
        {"shares": {ANNA: -1}},
        {"shares": {"f" * 64: 1}},
    ],
)
def test_impossible_results_are_not_sound(change: dict[str, Any]) -> None:
    summary = Summary(settled=replace(SETTLED, **change))
    assert not sound_summary(summary, TOGETHER)
    assert not sound_summary(replace(summary, expectation=EXPECTED), TOGETHER)


def test_a_summary_is_as_sound_as_its_expectation() -> None:
    assert sound_summary(Summary(), TOGETHER)
    assert sound_summary(Summary(expectation=EXPECTED, settled=SETTLED), TOGETHER)
    odd = replace(EXPECTED, step_s=NAN)
    assert not sound_summary(Summary(expectation=odd, settled=SETTLED), TOGETHER)


def test_shares_may_be_of_a_member_that_computes_no_rows() -> None:
    cleo = TOGETHER.members[2]
    assert isinstance(cleo, Member)
    assert sound_summary(Summary(settled=replace(SETTLED, shares={cleo.device: 0})), TOGETHER)


def test_a_training_begins_at_nothing_and_never_before_it() -> None:
    assert sound_moment(Moment())
    assert sound_moment(Moment(step=100, fit=1, epoch=2, batch=3))
    for field in Moment.__struct_fields__:
        assert not sound_moment(Moment(**{field: -1}))
        assert not sound_moment(Moment(**{field: 10**16}))


PEER = PeerWait(rank=1, lasted_s=3.0, bytes_come=1, bytes_total=9, bytes_s=0.5, heard_s=1.0)
STAND = TrainerStatus(activity="exchange", where="train.py, line 3", lasted_s=3.0, peers=(PEER,))


def test_a_possible_status_of_a_trainer_is_sound() -> None:
    assert sound_status(STAND, TOGETHER)
    assert sound_status(TrainerStatus(activity="script", stopped=True), TOGETHER)


@pytest.mark.parametrize(
    "status",
    [
        replace(STAND, lasted_s=INFINITE),
        replace(STAND, lasted_s=-1.0),
        replace(STAND, where="x" * 10_000),
        replace(STAND, peers=(PEER,) * (len(TOGETHER.tasks) + 1)),
        *(
            replace(STAND, peers=(replace(PEER, **wrong),))
            for wrong in (
                {"rank": len(TOGETHER.tasks)},
                {"rank": -1},
                {"lasted_s": NAN},
                {"bytes_come": -1},
                {"bytes_total": 10**18},
                {"bytes_s": INFINITE},
                {"heard_s": -0.1},
            )
        ),
    ],
)
def test_an_impossible_status_is_not_sound(status: TrainerStatus) -> None:
    assert not sound_status(status, TOGETHER)


WAIT = WaitsFor(device=BEN, cause="away", lasted_s=3.0, since_s=1.7e9, left_s=1.0, where="train.py, line 3")


def test_waits_for_members_of_the_run_are_sound() -> None:
    assert sound_waits((WAIT, replace(WAIT, device=ANNA, since_s=None, left_s=None)), TOGETHER)
    assert sound_waits((), TOGETHER)


@pytest.mark.parametrize(
    "waits",
    [
        (WAIT, WAIT),
        *(
            (replace(WAIT, **wrong),)
            for wrong in (
                {"device": "somebody else"},
                {"lasted_s": NAN},
                {"left_s": INFINITE},
                {"since_s": 1e12},
                {"since_s": -1.0},
                {"bytes_come": -1},
                {"where": "x" * 10_000},
            )
        ),
    ],
)
def test_an_impossible_wait_is_not_sound(waits: tuple[WaitsFor, ...]) -> None:
    assert not sound_waits(waits, TOGETHER)
    state = apply(State(), RunPlanned(plan=TOGETHER))
    with pytest.raises(IllegalTransition):
        apply(state, WaitingChanged(run=TOGETHER.run, waits=waits))
