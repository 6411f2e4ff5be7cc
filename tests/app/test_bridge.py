import threading
import time
from itertools import pairwise

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QObject
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from core.vocabulary import events as ev
from core.vocabulary.answers import Answer, Done, Refused
from core.vocabulary.commands import Command, StopRun
from core.vocabulary.events import Event
from core.vocabulary.state import State, apply
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM, found, read
from tests.core.fake_node import started


@pytest.fixture
def batches(bridge: Bridge) -> list[tuple[tuple[Event, ...], State]]:
    got: list[tuple[tuple[Event, ...], State]] = []
    bridge.changed.connect(lambda events, state: got.append((events, state)))
    return got


def test_events_of_another_thread_come_in_order_on_this_one(
    qtbot: QtBot, bridge: Bridge, batches: list[tuple[tuple[Event, ...], State]]
) -> None:
    threads: set[int] = set()
    bridge.changed.connect(lambda: threads.add(threading.get_ident()))
    events: list[Event] = [started(), *(ev.NoticeRaised(problem=PROBLEM) for _ in range(500))]

    def work() -> None:
        state = State()
        for event in events:
            state = apply(state, event)
            bridge.deliver(event, state)

    worker = threading.Thread(target=work)
    worker.start()
    qtbot.waitUntil(lambda: sum(len(batch) for batch, _ in batches) == len(events), timeout=60_000)
    worker.join(60)
    assert [event for batch, _ in batches for event in batch] == events
    assert threads == {threading.get_ident()}
    assert batches[-1][1] is bridge.state


def test_what_piles_up_comes_as_one_batch(
    bridge: Bridge, batches: list[tuple[tuple[Event, ...], State]]
) -> None:
    state = apply(State(), started())
    for _ in range(3):
        bridge.deliver(found(), state)
    bridge._flush()
    assert [len(batch) for batch, _ in batches] == [3]


def test_a_node_that_is_there_comes_with_its_state_and_no_events(
    bridge: Bridge, batches: list[tuple[tuple[Event, ...], State]]
) -> None:
    opened: list[bool] = []
    bridge.opened.connect(opened.append)
    state = apply(State(), started())
    bridge.begin(state, own=False)
    bridge._flush()
    assert opened == [False]
    assert batches == [((), state)]


def test_commands_given_before_there_is_a_core_are_kept(bridge: Bridge) -> None:
    answers: list[Answer] = []
    bridge.submit(StopRun(), answers.append)
    core = FakeCore(bridge)
    assert core.commands == [StopRun()]
    core.flush()
    assert answers == [Done()]


def test_an_answer_comes_on_this_thread(qtbot: QtBot, bridge: Bridge) -> None:
    class Elsewhere:
        def submit(self, command: Command, on_answer: object) -> None:
            threading.Thread(target=on_answer, args=(Refused(problem=PROBLEM),)).start()  # type: ignore[arg-type]

    got: list[tuple[Answer, int]] = []
    bridge.attach(Elsewhere())
    bridge.submit(StopRun(), lambda answer: got.append((answer, threading.get_ident())))
    qtbot.waitUntil(lambda: bool(got), timeout=60_000)
    assert got == [(Refused(problem=PROBLEM), threading.get_ident())]


def test_a_failure_and_the_end_are_reported(qtbot: QtBot, bridge: Bridge) -> None:
    told: list[object] = []
    bridge.failed.connect(told.append)
    bridge.ended.connect(lambda: told.append("ended"))
    bridge.fail(PROBLEM)
    bridge.end()
    qtbot.waitUntil(lambda: len(told) == 2, timeout=60_000)
    assert told == [PROBLEM, "ended"]


class Asker(QObject):
    """A screen that asks."""

    def __init__(self, told: list[Answer]) -> None:
        super().__init__()
        self.told = told

    def on_answer(self, answer: Answer) -> None:
        self.told.append(answer)


def test_the_answer_for_a_screen_that_is_gone_is_dropped_and_the_next_one_comes(
    bridge: Bridge, core: FakeCore
) -> None:
    told: list[Answer] = []
    gone, stays = Asker(told), Asker(told)
    core.held = True
    bridge.submit(StopRun(), gone.on_answer)
    bridge.submit(StopRun(), stays.on_answer)
    shiboken6.delete(gone)
    core.release()
    core.flush()
    assert told == [Done()]


def test_a_runs_numbers_come_apart_and_none_is_lost(
    qtbot: QtBot,
    bridge: Bridge,
    batches: list[tuple[tuple[Event, ...], State]],
) -> None:
    bridge.between_s = 0.2
    came_s: list[float] = []
    bridge.changed.connect(lambda: came_s.append(time.monotonic()))
    sent: list[Event] = []

    def four_came() -> bool:
        sent.append(read())
        bridge.deliver(sent[-1], State())
        return len(came_s) >= 4

    qtbot.waitUntil(four_came, timeout=60_000)
    assert min(later - sooner for sooner, later in pairwise(came_s)) > 0.1
    came = [event for batch, _ in batches for event in batch]
    assert came == sent[: len(came)]
    assert len(came) > len(batches)


def test_what_matters_brings_the_numbers_before_it_at_once(
    bridge: Bridge, batches: list[tuple[tuple[Event, ...], State]]
) -> None:
    bridge.between_s = 3600.0
    bridge._flush()
    bridge.deliver(read(), State())
    QCoreApplication.processEvents()
    assert batches == []
    bridge.deliver(found(), State())
    QCoreApplication.processEvents()
    assert [batch for batch, _ in batches] == [(read(), found())]
