"""Tasks with an owner."""

import asyncio

from core.runtime.background import Background


async def test_a_crash_is_reported_with_the_tasks_name() -> None:
    crashes: list[tuple[str, str]] = []
    told = asyncio.Event()

    def on_crash(name: str, error: BaseException) -> None:
        crashes.append((name, str(error)))
        told.set()

    async def work() -> None:
        raise RuntimeError("a bug")

    Background(on_crash).start("discovery", work())
    await asyncio.wait_for(told.wait(), 30)

    assert crashes == [("discovery", "a bug")]


async def test_at_the_end_all_are_cancelled_and_awaited() -> None:
    background = Background(lambda name, error: None)
    ended: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    background.start("one", work("one"))
    background.start("two", work("two"))
    await asyncio.sleep(0)
    await background.cancel()

    assert sorted(ended) == ["one", "two"]


async def test_a_task_that_is_nearly_done_may_finish() -> None:
    background = Background(lambda name, error: None)
    gate, done = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        await gate.wait()
        done.set()

    background.start("write", write())
    settling = asyncio.create_task(background.settle(30))
    await asyncio.sleep(0)
    gate.set()
    await settling

    assert done.is_set()
