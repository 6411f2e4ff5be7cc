"""The words for a run that waits."""

import time

import pytest
from msgspec.structs import replace

from app.words import wait_words
from app.words.device_names import names_of
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Finished, Phase, Starting, Stopping, Training
from core.vocabulary.plan import Plan
from core.vocabulary.state import State, apply
from core.vocabulary.waits import WaitsFor
from tests.app import world
from tests.app.cli.scripted_node import ME, OTHER, RUN, plan
from tests.core.fake_node import started

NAMES = {OTHER: "Ben"}
NOON_S = time.mktime((2026, 11, 22, 12, 0, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (
            WaitsFor(device=OTHER, cause="away", lasted_s=70, since_s=NOON_S, left_s=530),
            "Ben has been away since 12:00 (70 s). The run waits for it, 9 min more.",
        ),
        (
            WaitsFor(device=OTHER, cause="stopped", lasted_s=20),
            "Waiting for Ben: its training process has been stopped for 20 s.",
        ),
        (
            WaitsFor(
                device=OTHER,
                cause="script",
                lasted_s=40,
                activity="callback",
                where="train.py, line 12, in on_epoch_end",
            ),
            "Waiting for Ben: the script there has been in a callback (train.py, line 12, in on_epoch_end) "
            "for 40 s.",
        ),
        (
            WaitsFor(device=OTHER, cause="script", lasted_s=40, activity="script", held=True, cores=1.0),
            "Waiting for Ben: its training process has reported nothing for 40 s, using 1.0 processors. "
            "Native code may hold Python's interpreter.",
        ),
        (
            WaitsFor(device=OTHER, cause="script", lasted_s=180),
            "Waiting for Ben: the script there has been busy for 3 min.",
        ),
        (
            WaitsFor(
                device=OTHER,
                cause="wire",
                lasted_s=10,
                bytes_come=25_000_000,
                bytes_total=100_000_000,
                left_s=30,
            ),
            "Waiting for Ben: its data has been in transit for 10 s (25 MB of 100 MB, 30 s left).",
        ),
        (
            WaitsFor(device=OTHER, cause="wire", lasted_s=40),
            "Waiting for Ben: its data has been in transit for 40 s.",
        ),
        (
            WaitsFor(device=OTHER, cause="script", lasted_s=9, activity="step"),
            "Waiting for Ben: the script there has been computing a step for 9 s.",
        ),
        (
            WaitsFor(device=OTHER, cause="starting", lasted_s=15),
            "Waiting for Ben: TensorFlow has been loading there for 15 s.",
        ),
        (
            WaitsFor(device=OTHER, cause="silent", lasted_s=6),
            "Waiting for Ben: nothing received from its training process for 6 s.",
        ),
        (
            WaitsFor(device=OTHER, cause="connection", lasted_s=6),
            "Waiting for Ben: no connection to its training process for 6 s.",
        ),
    ],
)
def test_each_cause_has_a_sentence_with_the_laptops_name(wait: WaitsFor, said: str) -> None:
    assert wait_words.words(wait, "Ben") == said


def test_bytes_are_counted_where_it_is_known_how_many_will_come() -> None:
    wait = WaitsFor(device=OTHER, cause="wire", lasted_s=40)
    assert wait_words.brief(wait) == ("Sending its data", "for 40 s")
    assert wait_words.brief(replace(wait, bytes_total=2000)) == ("Sending its data", "0 bytes of 2 kB")


def waiting(*, asks: bool = False) -> State:
    state = apply(State(), ev.RunPlanned(plan=plan(OTHER)))
    wait = WaitsFor(device=OTHER, cause="stopped", lasted_s=20)
    return apply(state, ev.WaitingChanged(run=RUN, waits=(wait,), asks=asks))


def test_the_question_comes_after_whom_it_is_about() -> None:
    state = waiting(asks=True)
    assert state.run is not None
    assert wait_words.lines(state.run, NAMES)[1:] == [wait_words.ASKS]
    assert "Ben" in wait_words.lines(state.run, NAMES)[0]
    assert DeviceId(OTHER)[:8] in wait_words.lines(state.run, {})[0]


def test_nobody_is_waited_for_any_more_once_it_goes_on_or_is_over() -> None:
    state = apply(waiting(), ev.WaitingChanged(run=RUN))
    assert state.run is not None and state.run.waiting is None
    assert wait_words.lines(state.run, NAMES) == []
    state = apply(waiting(), ev.RunPhaseChanged(run=RUN, phase=Stopping()))
    assert state.run is not None and state.run.waiting is not None
    state = apply(state, ev.RunPhaseChanged(run=RUN, phase=Finished()))
    assert state.run is not None and state.run.waiting is None


def test_numbers_alone_are_no_news() -> None:
    wait = WaitsFor(device=OTHER, cause="wire", lasted_s=3, bytes_come=1)
    event = ev.WaitingChanged(run=RUN, waits=(wait,))
    later = replace(event, waits=(replace(wait, lasted_s=9, bytes_come=2),))
    assert wait_words.gist(event) == wait_words.gist(later)
    assert wait_words.gist(event) != wait_words.gist(replace(event, asks=True))
    assert wait_words.gist(event) != wait_words.gist(replace(event, waits=(replace(wait, cause="silent"),)))


# --- a closed lid ---

SLEEPS = "If you close the lid, this laptop sleeps. "
ALONE = world.plan(members=((ME, "here", 64),))
OWN = replace(world.plan(), exchange="tls")
OF_BOB = replace(OWN, starter=OTHER)
BY_HAND = replace(OWN, strategy="own")


def state_of(plan: Plan, phase: Phase, *, has_battery: bool, loop: bool, bob_left: bool) -> State:
    progress = world.progress(3, epochs=0 if loop else 8)
    reading = replace(world.reading(), has_battery=has_battery)
    events: list[ev.Event] = [
        started(),
        *world.linked(),
        world.told(ME, reading),
        *world.begun(plan),
        world.progressed(ME, progress),
    ]
    if bob_left:
        why = Problem(code="killed", what="Its training process was killed.")
        events.append(ev.MemberLeft(run=world.RUN, device=OTHER, problem=why))
    state = State()
    for event in events:
        state = apply(state, event)
    assert state.run is not None
    return replace(state, run=replace(state.run, phase=phase))


def said(
    plan: Plan,
    phase: Phase | None = None,
    *,
    has_battery: bool = True,
    loop: bool = False,
    bob_left: bool = False,
) -> str:
    state = state_of(plan, phase or Training(), has_battery=has_battery, loop=loop, bob_left=bob_left)
    assert state.run is not None
    return wait_words.if_lid_closes(state.run, state, names_of(state, state.run.members))


@pytest.mark.parametrize(
    ("plan", "then"),
    [
        (
            OWN,
            "After 10 s Bob's laptop goes on without it; once you open it, it takes the run over again.",
        ),
        (OF_BOB, "After 10 s Bob's laptop goes on without it; once you open it, it comes back by itself."),
        (
            replace(OF_BOB, go_on_s=590.0, away_s=590.0),
            "After 10 min Bob's laptop goes on without it; once you open it, it comes back by itself.",
        ),
        (BY_HAND, "Bob's laptop waits up to 10 min; then the run ends."),
        (ALONE, "The training pauses, and goes on once you open it."),
    ],
    ids=["starter", "member", "waits for who is away", "custom loop", "alone"],
)
def test_what_closing_the_lid_does_depends_on_the_run_and_this_laptops_part(plan: Plan, then: str) -> None:
    assert said(plan) == SLEEPS + then


def test_without_checkpoints_nobody_comes_back_or_stands_in() -> None:
    why = "loops of train_on_batch have no checkpoints."
    assert said(OF_BOB, loop=True) == (
        f"{SLEEPS}After 10 s Bob's laptop goes on without it. It does not come back: {why}"
    )
    assert said(OWN, loop=True) == f"{SLEEPS}After 10 s the run ends on Bob's laptop: {why}"


def test_before_the_first_step_the_others_do_not_go_on() -> None:
    assert said(OWN, Starting()).endswith("Bob's laptop waits up to 10 min; then the run ends.")


def test_who_is_left_alone_pauses() -> None:
    assert said(OWN, bob_left=True).endswith("The training pauses, and goes on once you open it.")


def test_nothing_is_said_where_no_lid_or_nothing_to_lose_is() -> None:
    assert said(OWN, has_battery=False) == ""
    assert said(OWN, Stopping()) == said(OWN, Finished()) == ""
