from __future__ import annotations

import asyncio

from core.link.questions import Questions
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import BusyTold, CheckpointAsked, CheckpointTold, Message, ModulesAsked

ANNA, BEN = DeviceId("a" * 64), DeviceId("b" * 64)
ASKED, TOLD = CheckpointAsked(run=RunId("r")), CheckpointTold(run=RunId("r"))


def linked(device: DeviceId, message: Message) -> bool:
    return device == ANNA


async def test_only_an_answer_from_the_asked_device_to_the_same_question_counts() -> None:
    questions = Questions(linked)
    asking = asyncio.create_task(questions.ask(ANNA, ASKED, 60.0))
    await asyncio.sleep(0)
    assert not questions.on_message(BEN, TOLD)
    assert not questions.on_message(ANNA, CheckpointTold(run=RunId("another")))
    assert not questions.on_message(ANNA, BusyTold(busy=True))
    assert not questions.on_message(ANNA, ASKED), "who asks the same has not answered"
    assert questions.on_message(ANNA, TOLD)
    assert await asking == TOLD
    assert not questions.on_message(ANNA, TOLD), "nobody waits for a second one"


async def test_two_callers_with_the_same_question_get_the_same_answer() -> None:
    questions = Questions(linked)
    both = [asyncio.create_task(questions.ask(ANNA, ASKED, 60.0)) for _ in range(2)]
    await asyncio.sleep(0)
    assert questions.on_message(ANNA, TOLD)
    assert await asyncio.gather(*both) == [TOLD, TOLD]


async def test_asking_again_at_the_moment_of_the_answer_gets_the_next_one() -> None:
    questions = Questions(linked)
    first = asyncio.create_task(questions.ask(ANNA, ASKED, 60.0))
    await asyncio.sleep(0)
    second = asyncio.create_task(questions.ask(ANNA, ASKED, 60.0))
    assert questions.on_message(ANNA, TOLD)
    assert await first == TOLD
    assert questions.on_message(ANNA, TOLD)
    assert await second == TOLD


async def test_nobody_waits_for_a_device_that_is_absent_goes_away_or_is_silent() -> None:
    questions = Questions(linked)
    assert await questions.ask(BEN, ASKED, 60.0) is None
    assert await questions.ask(ANNA, ASKED, 0.01) is None
    asking = asyncio.create_task(questions.ask(ANNA, ModulesAsked(question=1, modules=()), 60.0))
    await asyncio.sleep(0)
    questions.give_up(BEN)
    assert not asking.done()
    questions.give_up(ANNA)
    assert await asking is None
    assert not questions.on_message(ANNA, TOLD)
