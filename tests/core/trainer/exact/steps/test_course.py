"""When steps are audited, and what audits may have missed: the numbers."""

from __future__ import annotations

import random

import pytest

from core.trainer.exact.steps.course import AT_FIRST_S, SHARE, WARM_UP, AuditTime, Course


def audited(
    steps: int,
    cost_s: float,
    step_s: float,
    *,
    portion: int = 10,
    epoch: int = 0,
    course: Course | None = None,
) -> tuple[list[int], AuditTime]:
    """The audited steps, counted from 1, for audits that cost `cost_s`, and their time."""
    course, time = course or Course(able=True), AuditTime()
    found: list[int] = []
    while course.steps < steps:
        left = portion - course.steps % portion
        ends = bool(epoch) and (course.steps + left) % epoch == 0
        ahead = course.ahead(time, left, epoch_ends=ends)
        passed = left if ahead is None else ahead
        course.steps += passed
        time.elapsed_s += passed * step_s
        if ahead is not None and course.steps < steps:
            course.spend(time, cost_s)
            course.found_right(course.steps + 1)
            course.steps += 1
            course.at_once = course.event = False
            time.elapsed_s += step_s
            found.append(course.steps)
    return found, time


def test_all_steps_of_the_first_seconds_are_audited() -> None:
    found, _ = audited(150, cost_s=0.01, step_s=0.003)
    assert found == list(range(1, 151))


def test_slow_steps_are_audited_at_powers_of_two_up_to_the_64th() -> None:
    found, _ = audited(WARM_UP, cost_s=5.0, step_s=2.0)
    assert found == [1, 2, 4, 8, 16, 32, 64]


def test_the_last_step_of_an_early_epoch_is_audited() -> None:
    found, _ = audited(WARM_UP, cost_s=5.0, step_s=2.0, epoch=20)
    assert found == [1, 2, 4, 8, 16, 20, 32, 40, 60, 64]


@pytest.mark.parametrize("portion", [1, 10])
def test_later_audits_take_their_share_of_the_time(portion: int) -> None:
    found, time = audited(20_000, cost_s=0.02, step_s=0.01, portion=portion)
    later = [step for step in found if step > 1000]
    assert 0.8 * SHARE < 0.02 * len(later) / (19_000 * 0.01) < 1.01 * SHARE
    assert time.spent_s <= AT_FIRST_S + SHARE * time.elapsed_s


@pytest.mark.parametrize("portion", [1, 10])
def test_later_audits_fall_on_every_place_of_a_pattern(portion: int) -> None:
    """Also where callbacks run per batch, so that portions have one step."""
    found, _ = audited(20_000, cost_s=0.02, step_s=0.01, portion=portion)
    later = [step % 10 for step in found if step > 1000]
    assert all(later.count(place) > 0.03 * len(later) for place in range(10))


def test_a_difference_in_one_step_of_ten_is_hardly_ever_missed() -> None:
    """Steps of 20 ms, 2,000 of them; the fault begins anywhere, and appears at random."""
    drawn, missed = random.Random(3), 0
    found, _ = audited(2_000, cost_s=0.03, step_s=0.02)
    for _ in range(200):
        wrong = {step for step in range(1, 2_001) if drawn.random() < 0.1}
        missed += not wrong & set(found)
    assert len(found) >= 44, "so many find 99 of 100"
    assert missed <= 2


def test_an_event_waits_until_it_is_affordable() -> None:
    course, time = Course(able=True, steps=1000, target=1000, cost_s=1.0), AuditTime(spent_s=AT_FIRST_S)
    course.event = True
    assert course.ahead(time, 50) is None
    time.elapsed_s = 1.0 / SHARE + 0.1
    assert course.ahead(time, 50) == 0


def test_an_event_does_not_wait_for_a_step_that_was_drawn_before() -> None:
    course = Course(able=True, steps=1000, target=1030, cost_s=1.0)
    time = AuditTime(spent_s=AT_FIRST_S, elapsed_s=1000.0)
    assert course.ahead(time, 50) == 29
    course.event = True
    assert course.ahead(time, 50) == 0


def test_a_change_of_members_is_audited_at_once() -> None:
    course, time = Course(able=True, steps=1000, target=1000, cost_s=1.0), AuditTime(spent_s=AT_FIRST_S)
    course.members_are((0, 1, 2))
    assert course.ahead(time, 50) is None
    course.members_are((0, 2))
    assert course.ahead(time, 50) == 0


def test_an_audit_that_is_due_delays_later_ones_no_longer_than_those_first_seconds() -> None:
    time = AuditTime()
    time.spend(100.0, is_due=True)
    assert time.spent_s == AT_FIRST_S
    time.spend(1.0, is_due=False)
    assert time.spent_s == AT_FIRST_S + 1.0


@pytest.mark.parametrize("gap", [0, 1])
def test_what_was_not_audited_is_not_certain(gap: int) -> None:
    course = Course(able=True)
    for step in range(10):
        if step != 5 or not gap:
            course.audited += 1
            course.found_right(step + 1)
        course.steps += 1
    assert course.confirmed == 10
    assert course.certain == (5 if gap else 10)
    assert course.may_have_missed(10) == bool(gap)
    assert not course.may_have_missed(5)


def test_however_many_audits_found_nothing_a_step_between_them_is_not_known_to_be_right() -> None:
    course = Course(able=True, steps=1000, confirmed=1000, certain=3, audited=999)
    assert course.may_have_missed(1000)
    course.is_known_since = True  # the script set a variable, and with its value before nothing was wrong
    assert not course.may_have_missed(1000)


def test_what_is_certain_is_counted_over_the_whole_training() -> None:
    course = Course(able=True)
    course.begins_at(100)
    assert course.certain_at == course.confirmed_at == 100
    # Fifty steps of another model lie between the second step and the third, which is not audited.
    for step, right in ((101, True), (102, True), (153, False), (154, True)):
        course.begins_at(step - 1)
        if right:
            course.found_right(step)
        course.steps += 1
    assert (course.certain, course.certain_at) == (2, 102)
    assert (course.confirmed, course.confirmed_at) == (4, 154)
