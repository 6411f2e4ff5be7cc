"""Who waits for whom, in words. core.speed.stragglers tests when a wait counts."""

from msgspec.structs import replace

from app.models.stragglers import (
    KEEP_S,
    RENEW_S,
    SAY_AFTER_S,
    StepTime,
    WaitingShown,
    steps_of,
    waiting_words,
    who_waits,
    wire_words,
)
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import Run
from tests.app import world
from tests.app.models.test_draft import state_of
from tests.core.fake_node import ME, OTHER

NAMES = {ME: "Ada", OTHER: "Bob"}


def run(waits: dict[DeviceId, float], *more: ev.Event) -> Run:
    steps = [world.progressed(device, world.progress(3, wait_s=wait_s)) for device, wait_s in waits.items()]
    state = state_of(*world.linked(), *world.begun(), *steps, *more)
    assert state.run is not None
    return state.run


def test_the_one_who_never_waits_is_waited_for() -> None:
    words = waiting_words(run({ME: 0.05, OTHER: 0.0}), NAMES)
    assert words.startswith("Ada waits for Bob 50 % of each step. A smaller share for Bob")


def test_nobody_waits_for_a_laptop_that_left() -> None:
    left = ev.MemberLeft(run=world.RUN, device=OTHER, problem=Problem(code="closed", what="It was closed."))
    assert who_waits(run({ME: 0.05, OTHER: 0.0}, left), NAMES) == ""


def test_a_name_with_a_dot_is_said_whole() -> None:
    names = {ME: "ada.local", OTHER: "Dr. Bob"}
    assert who_waits(run({ME: 0.05, OTHER: 0.0}), names) == "ada.local waits for Dr. Bob 50 % of each step"


def test_where_shares_follow_the_speed_no_smaller_one_is_proposed() -> None:
    waiting = run({ME: 0.05, OTHER: 0.0})
    balanced = replace(waiting, plan=replace(waiting.plan, balance=True))
    assert waiting_words(balanced, NAMES) == "Ada waits for Bob 50 % of each step."


def test_the_wires_part_is_said_where_the_chief_tells_it() -> None:
    assert wire_words(None) == ""
    known = run({ME: 0.05, OTHER: 0.0})
    assert wire_words(known) == ""
    member = known.members[ME]
    progress = replace(world.progress(3), wire_s=0.025)
    told = replace(known, members={**known.members, ME: replace(member, progress=progress)})
    assert wire_words(replace(told, expectation=world.EXPECTED)).endswith(
        "25 % of each step is network transfer (1.2 MB each way)."
    )
    for wire_s, said in ((0.025, "25 % of each step is network transfer."), (float("nan"), "")):
        progress = replace(world.progress(3), wire_s=wire_s)
        assert (
            wire_words(replace(known, members={**known.members, ME: replace(member, progress=progress)}))
            == said
        )


def test_where_nobody_clearly_waits_nothing_is_said() -> None:
    assert waiting_words(run({ME: 0.005, OTHER: 0.0}), NAMES) == ""
    assert waiting_words(None, NAMES) == ""
    ended = ev.MemberPhaseChanged(run=world.RUN, device=OTHER, phase="ended")
    assert waiting_words(run({ME: 0.05, OTHER: 0.0}, ended), NAMES) == "", "not all of them train"


def test_a_run_that_is_over_has_nobody_who_waits() -> None:
    over = run({ME: 0.05, OTHER: 0.0}, *world.finished())
    assert waiting_words(over, NAMES) == ""
    assert steps_of(over) == {}


def test_a_step_that_took_no_time_is_no_waiting() -> None:
    assert StepTime(0.0, 0.0).waiting == 0.0
    assert StepTime(0.1, 9.0).waiting == 1.0


def test_who_waits_is_said_once_it_has_lasted_and_stays_through_moments_without() -> None:
    now_s = [100.0]
    waiting = WaitingShown(lambda: now_s[0])
    slow, even = run({ME: 0.05, OTHER: 0.0}), run({ME: 0.0, OTHER: 0.0})
    assert waiting.words(even, NAMES) == ""
    for _ in range(20):  # it comes and goes
        now_s[0] += SAY_AFTER_S / 4
        assert waiting.words(slow, NAMES) == ""
        now_s[0] += SAY_AFTER_S / 4
        assert waiting.words(even, NAMES) == ""
    now_s[0] += SAY_AFTER_S
    said = waiting.words(slow, NAMES)
    assert said.startswith("Ada waits for Bob 50 %")
    for _ in range(20):
        now_s[0] += KEEP_S / 4
        assert waiting.words(even, NAMES) == said
        now_s[0] += RENEW_S / 4
        assert waiting.words(slow, NAMES).startswith("Ada waits for Bob")
    now_s[0] += KEEP_S
    assert waiting.words(even, NAMES) == ""


def test_another_run_begins_with_nobody_said_to_wait() -> None:
    now_s = [100.0]
    waiting = WaitingShown(lambda: now_s[0])
    slow = run({ME: 0.05, OTHER: 0.0})
    waiting.words(slow, NAMES)
    now_s[0] += SAY_AFTER_S
    assert waiting.words(slow, NAMES)
    assert waiting.words(None, NAMES) == ""
    assert waiting.words(slow, NAMES) == ""
