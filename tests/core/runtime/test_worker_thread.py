from __future__ import annotations

import contextvars
import logging
import threading

import pytest

from core.runtime.background import WorkerThread

pytestmark = pytest.mark.real


async def test_work_is_done_in_order_on_one_thread() -> None:
    worker, done, threads = WorkerThread("test"), list[int](), set[int]()

    def note(number: int) -> int:
        done.append(number)
        threads.add(threading.get_ident())
        return number

    for number in range(20):
        worker.post(note, number)
    assert await worker.do(note, 20) == 20
    await worker.close()
    assert done == list(range(21))
    assert threads != {threading.get_ident()}
    assert len(threads) == 1


async def test_a_failure_is_raised_to_whoever_waits_and_else_goes_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = WorkerThread("test")
    with pytest.raises(ZeroDivisionError):
        await worker.do(lambda: 1 // 0)
    with caplog.at_level(logging.ERROR):
        worker.post(lambda: 1 // 0)
        await worker.close()
    assert "background work failed" in caplog.text


async def test_work_sees_the_context_it_was_asked_in() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    worker = WorkerThread("test")
    who.set("Anna")
    assert await worker.do(who.get) == "Anna"
    await worker.close()
