import asyncio

import pytest

from core.vocabulary import events as ev
from core.vocabulary.answers import Done, StateNow
from core.vocabulary.commands import CancelPairing, GetState
from core.vocabulary.errors import TandemError
from core.vocabulary.state import State
from tests.app.cli.scripted_node import OTHER, PROBLEM, ScriptedNode, follower, found


def seen(state: State) -> str | None:
    return state.devices[OTHER].name if OTHER in state.devices else None


async def test_a_wait_ends_at_once_where_its_condition_holds_already() -> None:
    node = ScriptedNode()
    node.happen(found())
    with follower(node) as events:
        assert await events.until(seen, 0) == "other"


async def test_a_wait_ends_with_the_event_it_waits_for() -> None:
    node = ScriptedNode()
    with follower(node) as events:
        asyncio.get_running_loop().call_soon(node.happen, found())
        assert await events.until(seen, 30) == "other"


async def test_a_wait_that_runs_out_gives_nothing() -> None:
    with follower(ScriptedNode()) as events:
        assert await events.until(seen, 0) is None


async def test_events_between_two_waits_are_not_missed() -> None:
    node = ScriptedNode()
    with follower(node) as events:
        node.happen(found("first"))
        node.happen(found("second"))
        names = [event.name for event, _ in [await events.next(), await events.next()]]  # type: ignore[union-attr]
    assert names == ["first", "second"]


async def test_a_second_wait_sees_nothing_older_than_the_first_one_saw() -> None:
    node = ScriptedNode()
    with follower(node) as events:
        node.happen(ev.BusyChanged(device=OTHER, busy=False))
        node.happen(found())
        assert await events.until(seen, 0) == "other"
        assert await events.until(lambda state: None if seen(state) else "gone", 0) is None


async def test_a_node_that_ends_ends_the_wait() -> None:
    node = ScriptedNode()
    with follower(node) as events:
        node.happen(found())
        events.skip()
        node.happen(ev.NodeStopped())
        events.skip()
        with pytest.raises(TandemError, match="ended from elsewhere"):
            await events.until(lambda state: None, 30)


async def test_a_lost_connection_ends_the_wait() -> None:
    with follower(ScriptedNode()) as events:
        events._connection.lost.set_result(PROBLEM)
        with pytest.raises(TandemError, match="It did not work"):
            await events.next()


async def test_after_leaving_nothing_is_heard() -> None:
    node = ScriptedNode()
    with follower(node):
        assert node.listeners == 1
    assert node.listeners == 0


async def test_a_refusal_is_raised_and_an_answer_of_the_right_kind_returned() -> None:
    node = ScriptedNode()
    node.refuses(CancelPairing)
    with follower(node) as events:
        with pytest.raises(TandemError, match="It did not work"):
            await events.submit(CancelPairing(), Done)
        assert (await events.submit(GetState(), StateNow)).state == node.state
        with pytest.raises(TypeError):
            await events.submit(GetState(), Done)
