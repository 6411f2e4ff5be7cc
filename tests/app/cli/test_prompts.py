import asyncio
from collections.abc import AsyncIterator

from app.cli.prompts import Asker
from tests.app.cli.scripted_node import Words, typed

CHOICES = {"same": True, "different": False}


class Keyboard:
    """Supplies typed lines when the test types them."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()

    def types(self, text: str) -> None:
        self._lines.put_nowait(text.encode())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while line := await self._lines.get():
            yield line


async def test_a_word_or_its_beginning_answers() -> None:
    for text, expected in (("same\n", True), ("D\n", False), ("  Same \n", True)):
        keyboard, screen = Keyboard(), Words()
        async with Asker(screen, keyboard) as asker:
            asking = asyncio.create_task(asker.ask("Same?", CHOICES))
            await asyncio.sleep(0)
            keyboard.types(text)
            assert await asking is expected


async def test_anything_else_is_asked_again() -> None:
    keyboard, screen = Keyboard(), Words()
    async with Asker(screen, keyboard) as asker:
        asking = asyncio.create_task(asker.ask("Same?", CHOICES))
        await asyncio.sleep(0)
        keyboard.types("\nyes\nsame\n")
        assert await asking is True
    assert "'yes' is not an answer" in screen.said


async def test_what_was_typed_before_the_question_does_not_answer_it() -> None:
    keyboard, screen = Keyboard(), Words()
    async with Asker(screen, keyboard) as asker:
        keyboard.types("same\n")
        for _ in range(5):
            await asyncio.sleep(0)
        asking = asyncio.create_task(asker.ask("Same?", CHOICES))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not asking.done()
        keyboard.types("different\n")
        assert await asking is False


async def test_an_ended_input_answers_nothing_now_and_later() -> None:
    async with Asker(Words(), typed("half a line")) as asker:
        assert await asker.ask("Same?", CHOICES) is None
        assert await asker.ask("Same?", CHOICES) is None


async def test_an_input_that_ended_before_the_question_answers_nothing() -> None:
    async with Asker(Words(), typed()) as asker:
        for _ in range(5):
            await asyncio.sleep(0)
        assert await asker.ask("Same?", CHOICES) is None
