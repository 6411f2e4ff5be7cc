"""Whoever waits briefly reads by itself; the receiving thread reads whenever nobody does."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from core.session.frames import PIECE_BYTES, MalformedFrame, encode, goodbye
from core.session.state import NotSent, SessionLimits
from core.session.turns import Arrivals, ReadTurns
from core.vocabulary.errors import Problem
from tests.core.session.test_driver import BYE, LIMIT_S, LIMITS, NONSENSE, Side, joined

LONG_S = 5.0
LONG_RESTS = SessionLimits(rest_s=LONG_S)
"""However busy the machine is, the next wait comes in time."""


class Recording(Side):
    """Records which thread each message arrived in."""

    def __init__(self, side: Side) -> None:
        self.readers: list[str] = []
        self._arrived = side.arrived
        side.arrived = self.arrived  # type: ignore[method-assign]

    def arrived(self) -> None:
        self.readers.append(threading.current_thread().name)
        self._arrived()


def wait(side: Side, count: int) -> None:
    """Waits, as a user of the session does, until so many messages have arrived."""

    def has_come() -> bool:
        return len(side.kept) >= count

    side.driver.turns.take(has_come)
    try:
        side.wait(has_come)
    finally:
        side.driver.turns.give_back()


def rounds(one: Side, other: Side, count: int, pause_s: float = 0.0) -> None:
    """Each of ``one``'s messages is answered by one of ``other``, whose thread this is not."""

    def answers() -> None:
        for number in range(count):
            wait(other, first_of_other + number + 1)
            other.put(3001)

    first_of_one, first_of_other = len(one.kept), len(other.kept)
    thread = threading.Thread(target=answers)
    thread.start()
    for number in range(count):
        time.sleep(pause_s)
        one.put(3001)
        wait(one, first_of_one + number + 1)
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert (one.kept, other.kept) == (other.sent, one.sent)


def test_a_thread_that_waits_soon_again_reads_by_itself() -> None:
    with joined(limits=LONG_RESTS) as (one, other):
        of_one = Recording(one)
        rounds(one, other, 200)
        by_itself = of_one.readers.count(threading.current_thread().name)
        assert by_itself > 150, f"{by_itself} of 200"


def test_after_a_pause_the_receiving_thread_reads_although_nobody_waits() -> None:
    with joined() as (one, other):
        rounds(one, other, 5)
        time.sleep(2 * LIMITS.rest_s)
        of_one = Recording(one)
        other.put(3001)
        one.wait(lambda: len(one.kept) == 6)
        assert of_one.readers == ["session-0-receiving"]


def test_a_wait_without_data_ends_soon_and_the_receiving_thread_reads_on() -> None:
    with joined() as (one, other):
        rounds(one, other, 5)
        began_s = time.monotonic()
        one.driver.turns.take(lambda: False)
        assert time.monotonic() - began_s < LONG_S
        of_one = Recording(one)
        other.put(PIECE_BYTES + 7)
        one.wait(lambda: of_one.readers)
        assert of_one.readers == ["session-0-receiving"]


def test_the_receiving_thread_reads_as_soon_as_its_rest_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait that ends while it rests makes it rest for ``rest_s`` from then on, and no longer."""
    now_s = [0.0]
    monkeypatch.setattr("core.session.turns.time", SimpleNamespace(monotonic=lambda: now_s[0]))

    class Changed(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            over_s = now_s[0] + timeout
            if over_s < 1.5:
                now_s[0] = 0.75
                turns.give_back()
            now_s[0] = over_s
            return False

    turns = ReadTurns(Changed(), rest_s=1.0)
    turns.give_back()
    stream: Any = SimpleNamespace(limit_silence=lambda each_s: None)
    turns.read(Arrivals(iter([True]), stream), 10.0, lambda: True)
    assert now_s[0] == 1.75


def test_a_cut_while_another_thread_reads_loses_nothing() -> None:
    with joined() as (one, other):
        for _ in range(10):
            rounds(one, other, 5)
            one.cut()
            other.cut()
        with one.driver.locked() as machine:
            assert machine.number > 1, "a connection that lived was cut"


@pytest.mark.parametrize(
    ("end", "limit_s"), [("goodbye", None), ("nonsense", None), ("nonsense", 0.2), ("defect", None)]
)
def test_an_error_while_another_thread_reads_is_handled_as_usual(end: str, limit_s: float | None) -> None:
    """It happens in the thread that waits, as nobody else reads then. The limit of its wait, which has passed
    when the receiving thread reads on, is not that thread's."""
    with joined(limits=LONG_RESTS) as (one, other):
        rounds(one, other, 5)
        other.driver.turns.read_on()
        announced, readers = one.announced, [""]

        def failing(about: bytes, size: int, is_live: Callable[[], bool]) -> memoryview | None:
            one.announced = announced  # type: ignore[method-assign]
            readers[0] = threading.current_thread().name
            raise ValueError("a defect")

        def left(problem: Problem) -> None:
            readers[0] = readers[0] or threading.current_thread().name
            really_left(problem)

        def given_up(error: MalformedFrame | NotSent) -> Problem:
            time.sleep(limit_s or 0.0)
            return really_given_up(error)

        really_left, one.left = one.left, left  # type: ignore[method-assign]
        really_given_up, one.given_up = one.given_up, given_up  # type: ignore[method-assign]
        until_s = None if limit_s is None else time.monotonic() + limit_s
        if end == "goodbye":
            other.driver.leave(BYE, LIMIT_S)
        elif end == "nonsense":
            with other.driver.locked() as machine:
                assert machine.live
                machine.live.sending.write(b"\x07\x00\x00\x00\x01x")
        else:
            one.announced = failing  # type: ignore[method-assign]
            other.put(3001)
        one.driver.turns.take(lambda: bool(one.reasons or len(one.kept) > 5), until_s)
        if end == "defect":
            one.wait(lambda: len(one.kept) == 6)
            assert [str(error) for error in one.errors] == ["a defect"]
            one.errors.clear()
        else:
            one.wait(lambda: one.reasons)
            assert one.reasons == [BYE if end == "goodbye" else NONSENSE]
            one.driver.wait_over(LIMIT_S)
            with one.driver.locked() as machine:
                assert machine.is_over
        if end != "nonsense":  # which the receiving thread handles
            assert readers[0] == threading.current_thread().name


def test_a_goodbye_that_has_arrived_is_read_although_sending_fails_first() -> None:
    """The peer has closed both connections after its goodbye, before anybody read it here."""
    with joined(limits=LONG_RESTS) as (one, other):
        rounds(one, other, 5)
        with other.driver.locked() as machine:
            assert machine.live
            machine.live.sending.write(encode(goodbye(BYE)))
        other.driver.end()
        one.put(3001)
        one.wait(lambda: one.reasons)
        assert one.reasons == [BYE]


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C raises, even if these tests were started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_a_stop_while_another_thread_reads_loses_no_message() -> None:
    """Ctrl-C in the middle of a goodbye, which the peer says once."""
    with joined(limits=LONG_RESTS) as (one, other):
        rounds(one, other, 5)

        def left(problem: Problem) -> None:
            signal.raise_signal(signal.SIGINT)
            really_left(problem)

        really_left, one.left = one.left, left  # type: ignore[method-assign]
        other.driver.leave(BYE, 0.0)
        with pytest.raises(KeyboardInterrupt):
            one.driver.turns.take(lambda: bool(one.reasons))
        assert one.reasons == [BYE]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupts")
def test_a_stop_waits_for_a_piece_of_a_long_message_and_not_for_all_of_it() -> None:
    readers = []
    with joined(limits=LONG_RESTS) as (one, other):
        rounds(one, other, 5)

        def came(received: int) -> None:
            readers.append(threading.current_thread())
            if len(readers) == 1:
                signal.raise_signal(signal.SIGINT)
            really_came(received)

        really_came, one.came = one.came, came  # type: ignore[method-assign]
        other.put(20 * PIECE_BYTES)
        with pytest.raises(KeyboardInterrupt):
            one.driver.turns.take(lambda: len(one.kept) > 5)
        one.wait(lambda: one.kept == other.sent)
    assert len(readers) == 20
    assert readers.count(threading.current_thread()) == 1
