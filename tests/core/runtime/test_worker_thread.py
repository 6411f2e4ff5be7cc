from __future__ import annotations

import contextvars
import logging
import threading

import pytest

from core.runtime.worker_thread import WorkerThread

pytestmark = pytest.mark.real


async def test_work_is_done_in_order_on_one_thread() -> None:
    lane, done, threads = WorkerThread("test"), list[int](), set[int]()

    def note(number: int) -> int:
        done.append(number)
        threads.add(threading.get_ident())
        return number

    for number in range(20):
        lane.post(note, number)
    assert await lane.do(note, 20) == 20
    await lane.close()
    assert done == list(range(21))
    assert threads != {threading.get_ident()}
    assert len(threads) == 1


async def test_a_failure_is_raised_to_whoever_waits_and_else_goes_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lane = WorkerThread("test")
    with pytest.raises(ZeroDivisionError):
        await lane.do(lambda: 1 // 0)
    with caplog.at_level(logging.ERROR):
        lane.post(lambda: 1 // 0)
        await lane.close()
    assert "work in the background broke" in caplog.text


async def test_work_sees_the_context_it_was_asked_in() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    lane = WorkerThread("test")
    who.set("Anna")
    assert await lane.do(who.get) == "Anna"
    await lane.close()
