"""How one link is driven, on streams that the test holds in its hand."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from core.link.driver import Connection
from core.runtime.background import Background
from core.vocabulary.errors import Problem
from tests.core.link.examples import hello

PROBLEM = Problem(code="closed", what="It ends.")


class Writer:
    """Takes everything, but the last words only once the test lets them through."""

    def __init__(self) -> None:
        self.may_pass = asyncio.Event()
        self.transport = SimpleNamespace(abort=lambda: None)

    def write(self, data: bytes) -> None:
        pass

    async def drain(self) -> None:
        await self.may_pass.wait()

    def close(self) -> None:
        pass

    async def wait_closed(self) -> None:
        pass


async def test_reading_goes_on_while_the_last_words_are_under_way() -> None:
    came: asyncio.Queue[bytes] = asyncio.Queue()
    reader = SimpleNamespace(read=lambda most: came.get())
    writer, background, over = Writer(), Background(), []
    owner: Any = SimpleNamespace(
        on_up=lambda connection, hello: None,
        on_message=lambda connection, message: None,
        on_over=lambda connection, problem: over.append(problem),
    )
    streams = cast(tuple[asyncio.StreamReader, asyncio.StreamWriter], (reader, writer))
    clock = asyncio.get_running_loop()
    link = Connection(streams, "bert", owner, background, clock=clock)
    link.start_as_called(hello("anna"), hello("bert"))
    await asyncio.sleep(0)
    link.leave(PROBLEM)
    for _ in range(3):
        came.put_nowait(b"unread")
    for _ in range(20):
        await asyncio.sleep(0)
    assert came.empty(), "unread bytes would reset the connection"
    assert over == [PROBLEM]
    writer.may_pass.set()
    await background.cancel()
