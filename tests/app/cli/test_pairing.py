import asyncio

import pytest

from app.cli.exit_codes import ExitCode
from app.cli.pair import pair_on
from app.cli.prompts import Asker
from core.vocabulary import events as ev
from core.vocabulary.commands import AnswerPairing, CancelPairing, Pair
from core.vocabulary.errors import TandemError
from tests.app.cli.scripted_node import OTHER, PROBLEM, ScriptedNode, Words, follower, found, paired, typed
from tests.app.cli.test_prompts import Keyboard

BEGAN = ev.PairingBegan(incoming=False, name="other", address="192.168.1.3:27600", device=OTHER)
CODE = ev.PairingCodeShown(device=OTHER, name="other", code="408355")


def ready_node() -> ScriptedNode:
    node = ScriptedNode()
    node.happen(found())
    node.then[Pair] = [BEGAN, CODE]
    return node


async def answered(node: ScriptedNode, screen: Words, words: str) -> int:
    keyboard = Keyboard()
    with follower(node) as events:
        async with Asker(screen, keyboard) as asker:
            pairing = asyncio.create_task(pair_on(events, asker, screen, "other"))
            await screen.wait_said("same code?")
            keyboard.types(words)
            return await pairing


async def test_the_same_code_pairs() -> None:
    node, screen = ready_node(), Words()
    node.then[AnswerPairing] = [ev.PairingAnswered(), paired(), ev.PairingEnded(device=OTHER)]
    assert await answered(node, screen, "same\n") == ExitCode.OK
    assert node.commands == [Pair(device=OTHER), AnswerPairing(same=True)]
    assert "408 355" in screen.said
    assert screen.said.endswith("Paired with other.\n")


async def test_another_code_does_not() -> None:
    node, screen = ready_node(), Words()
    node.then[AnswerPairing] = [ev.PairingEnded(device=OTHER, problem=PROBLEM)]
    with pytest.raises(TandemError, match="It did not work"):
        await answered(node, screen, "different\n")
    assert node.commands[-1] == AnswerPairing(same=False)


async def test_where_nobody_can_answer_the_pairing_is_given_up() -> None:
    node, screen = ready_node(), Words()
    node.then[CancelPairing] = [ev.PairingEnded(device=OTHER, problem=PROBLEM)]
    with follower(node) as events:
        async with Asker(screen, typed()) as asker:
            with pytest.raises(TandemError):
                await pair_on(events, asker, screen, "other")
    assert node.commands == [Pair(device=OTHER), CancelPairing()]


async def test_leaving_gives_the_pairing_up() -> None:
    node, screen = ready_node(), Words()
    with follower(node) as events:
        async with Asker(screen, Keyboard()) as asker:
            pairing = asyncio.create_task(pair_on(events, asker, screen, "other"))
            await screen.wait_said("same code?")
            pairing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pairing
    assert node.commands[-1] == CancelPairing()


async def test_a_known_name_with_a_new_key_is_warned_of() -> None:
    node, screen = ready_node(), Words()
    node.then[Pair] = [BEGAN, ev.PairingCodeShown(device=OTHER, name="other", code="408355", warning=PROBLEM)]
    node.then[AnswerPairing] = [ev.PairingEnded(device=OTHER, problem=PROBLEM)]
    with pytest.raises(TandemError):
        await answered(node, screen, "different\n")
    assert "It did not work. Do this." in screen.said


async def test_an_address_needs_no_discovery() -> None:
    node, screen = ScriptedNode(), Words()
    node.refuses(Pair)
    with follower(node) as events:
        async with Asker(screen, typed()) as asker:
            with pytest.raises(TandemError, match="It did not work"):
                await pair_on(events, asker, screen, "192.168.1.9")
    assert node.commands == [Pair(address="192.168.1.9:27600")]


async def test_an_unknown_name_says_who_is_there() -> None:
    node, screen = ScriptedNode(), Words()
    with follower(node) as events:
        async with Asker(screen, typed()) as asker:
            with pytest.raises(TandemError, match="No device is called 'anna'"):
                await pair_on(events, asker, screen, "anna", look_s=0)
    assert node.commands == []


async def test_a_script_reads_the_code_as_json_and_answers_with_a_line() -> None:
    node, screen = ready_node(), Words(json=True)
    node.then[AnswerPairing] = [ev.PairingAnswered(), paired(), ev.PairingEnded(device=OTHER)]
    assert await answered(node, screen, "same\n") == ExitCode.OK
    code, end = screen.told
    assert code == {"event": "code", "name": "other", "device": OTHER, "code": "408355"}
    assert end["ok"] is True
    assert end["device"]["device"] == OTHER
