import threading
from collections.abc import Callable

import pytest

from app.core_thread import CoreThread
from core.vocabulary.answers import Answer, Done, Refused
from core.vocabulary.commands import GetState, StopRun
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.state import State
from tests.app.fake_opening import FakeOpening
from tests.app.laptops import PROBLEM, found

LIMIT_S = 60.0


class Told:
    def __init__(self) -> None:
        self.all: list[object] = []
        self.opened = threading.Event()
        self.happened = threading.Event()
        self.ended = threading.Event()

    def on_event(self, event: Event, state: State) -> None:
        self.all.append(event)
        self.happened.set()

    def on_opened(self, state: State, own: bool) -> None:
        self.all.append(("opened", own))
        self.opened.set()

    def on_failed(self, problem: Problem) -> None:
        self.all.append(problem)

    def on_ended(self) -> None:
        self.all.append("ended")
        self.ended.set()


@pytest.fixture
def told() -> Told:
    return Told()


def thread(opening: FakeOpening, told: Told) -> CoreThread:
    return CoreThread(opening, told.on_event, told.on_opened, told.on_failed, told.on_ended)


def test_it_opens_tells_and_ends_when_asked(told: Told) -> None:
    opening = FakeOpening()
    core = thread(opening, told)
    core.start()
    assert told.opened.wait(LIMIT_S)
    opening.happen(found())
    assert told.happened.wait(LIMIT_S)
    core.ask_to_end()
    assert core.wait_ended(LIMIT_S)
    assert told.all == [("opened", True), found(), "ended"]
    assert opening.closed == 1
    assert opening.node.listeners == 0


def test_commands_given_early_are_answered_and_those_given_late_are_refused(told: Told) -> None:
    opening = FakeOpening()
    core = thread(opening, told)
    answers: list[Answer] = []
    answered = threading.Event()

    def keep(answer: Answer) -> None:
        answers.append(answer)
        answered.set()

    core.submit(StopRun(), keep)
    core.start()
    assert answered.wait(LIMIT_S)
    core.ask_to_end()
    assert core.wait_ended(LIMIT_S)
    core.submit(GetState(), keep)
    assert answers[0] == Done()
    assert isinstance(answers[1], Refused)


class EndsWhenReleased:
    """A lock of a core thread, which ends as soon as the test's thread releases it."""

    def __init__(self, core: CoreThread) -> None:
        self._lock, self._core, self._is_due = threading.Lock(), core, True

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        loop, ending = self._core._loop, self._core._ending
        if self._is_due and threading.current_thread() is not self._core._thread:
            self._is_due = False
            assert loop is not None and ending is not None
            loop.call_soon_threadsafe(ending.set)
            assert self._core.wait_ended(LIMIT_S)


@pytest.mark.parametrize("act", [lambda core: core.submit(GetState(), print), CoreThread.ask_to_end])
def test_it_may_end_at_any_moment_of_a_call(told: Told, act: Callable[[CoreThread], None]) -> None:
    opening = FakeOpening()
    core = thread(opening, told)
    core.start()
    assert told.opened.wait(LIMIT_S)
    opening.happen(found())
    assert told.happened.wait(LIMIT_S)  # it takes commands now
    core._lock = EndsWhenReleased(core)  # type: ignore[assignment]
    act(core)
    assert told.ended.is_set()


def test_a_home_that_cannot_be_opened_is_reported_and_refuses_what_waits(told: Told) -> None:
    core = thread(FakeOpening(PROBLEM), told)
    answers: list[Answer] = []
    core.submit(StopRun(), answers.append)
    core.start()
    assert core.wait_ended(LIMIT_S)
    assert told.all == [PROBLEM, "ended"]
    assert isinstance(answers[0], Refused)


def test_a_lost_connection_is_reported_as_its_problem(told: Told) -> None:
    opening = FakeOpening(own=False)
    core = thread(opening, told)
    core.start()
    assert told.opened.wait(LIMIT_S)
    opening.lose(PROBLEM)
    assert told.ended.wait(LIMIT_S)
    assert core.wait_ended(LIMIT_S)
    assert told.all == [("opened", False), PROBLEM, "ended"]


def test_an_end_asked_for_before_the_beginning_comes(told: Told) -> None:
    core = thread(FakeOpening(), told)
    core.ask_to_end()
    core.start()
    assert core.wait_ended(LIMIT_S)
    assert told.all[-1] == "ended"


def test_a_thread_that_never_began_has_ended(told: Told) -> None:
    assert thread(FakeOpening(), told).wait_ended(0)
