"""Files on their way in: no more than was announced, and nothing after their end."""

from __future__ import annotations

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

from core.run.context import RunContext
from core.run.transfer import IncomingFiles
from core.vocabulary.ids import ProjectId, RunId
from core.vocabulary.peer_messages import Chunk

PROJECT = ProjectId("a" * 64)


class Begun:
    """Counts the pieces that are to be written, and writes none."""

    def __init__(self) -> None:
        self.count = 0

    def start(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        work.close()
        self.count += 1


def incoming(begun: Begun, total_bytes: int) -> IncomingFiles:
    context = cast(RunContext, SimpleNamespace(background=begun))
    return IncomingFiles(
        context,
        PROJECT,
        total_bytes,
        on_piece=lambda done: None,
        on_complete=lambda: None,
        on_trouble=lambda error: None,
    )


def chunk(size: int) -> Chunk:
    return Chunk(run=RunId("r"), project=PROJECT, file=0, offset=0, data=bytes(size))


def test_as_much_as_was_announced_is_taken_and_no_byte_more() -> None:
    begun = Begun()
    files = incoming(begun, total_bytes=5)
    assert files.take(chunk(3)) and files.take(chunk(2))
    assert not files.take(chunk(1))
    assert begun.count == 2


def test_pieces_that_come_after_the_end_are_not_taken() -> None:
    begun = Begun()
    files = incoming(begun, total_bytes=5)
    files.end()
    assert not files.take(chunk(1))
    assert begun.count == 0
