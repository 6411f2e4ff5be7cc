"""One pairing on the terminal: shows the code, asks whether both screens match, reports the outcome."""

from __future__ import annotations

import asyncio

from app.cli.prompts import Asker
from app.cli.screen import Screen
from app.follower import Follower
from app.words.device_words import code_words
from core.vocabulary.commands import AnswerPairing, CancelPairing
from core.vocabulary.errors import Problem
from core.vocabulary.events import PairingCodeShown, PairingEnded
from core.vocabulary.node import NodeFace
from core.vocabulary.text import plain

CHOICES = {"same": True, "different": False}


async def wait_ended(follower: Follower, asker: Asker, screen: Screen) -> Problem | None:
    """Follows the pairing just requested to its end; None if the devices are now paired."""
    answering: asyncio.Task[None] | None = None
    try:
        while True:
            event, _ = await follower.next()
            match event:
                case PairingCodeShown() if answering is None:
                    if screen.json:
                        screen.result(
                            {"event": "code", "name": event.name, "device": event.device, "code": event.code}
                        )
                    if event.warning is not None:
                        screen.say(plain(str(event.warning), 600), "bold red")
                    answering = asyncio.create_task(
                        compare(follower.node, asker, screen, event.name, event.code)
                    )
                case PairingEnded():
                    return event.problem
    finally:
        if answering is not None:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)


async def compare(node: NodeFace, asker: Asker, screen: Screen, name: str, code: str) -> None:
    """Asks the question and forwards the answer; if nobody can answer, the pairing ends."""
    other = plain(name, 40)
    screen.say(f"The code here is  {code_words(code)}", "bold")
    same = await asker.ask(f"Does the screen of {other} show the same code?", CHOICES)
    if same is None:
        screen.say("Pairing was cancelled: nobody can answer here, because the input has ended.")
        await node.submit(CancelPairing())
    else:
        await node.submit(AnswerPairing(same=same))
        if same:
            screen.say(f"Waiting for the answer on {other} …")
