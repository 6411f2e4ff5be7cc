"""The demo's first half: every node finds every other by mDNS, then they pair and connect."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from app.demo.agent import Agent, Say
from app.words.device_words import code_words
from core.vocabulary.answers import Done
from core.vocabulary.commands import AnswerPairing, Pair
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.state import Pairing, State

FOUND_S = 30.0
CODE_S = 30.0
PAIRED_S = 30.0


async def find_each_other(nodes: Sequence[Agent], say: Say) -> None:
    """Waits until each node's discovery shows all others."""
    await asyncio.gather(*(_find(node, other, say) for node in nodes for other in nodes if other is not node))


async def pair(starter: Agent, other: Agent, say: Say) -> None:
    """Pairs two nodes: the demo compares the codes that both show, as two people would."""
    await starter.follower.submit(Pair(device=other.device), Done)
    shown, seen = await asyncio.gather(_code(starter, other), _code(other, starter))
    say(f"code on {starter.name}: {code_words(shown)}   on {other.name}: {code_words(seen)}")
    if shown != seen:
        for node in (starter, other):
            await node.follower.submit(AnswerPairing(same=False), Done)
        raise TandemError(
            code="demo-codes-differ",
            what=f"{starter.name} and {other.name} show different codes: somebody may be between them.",
            fix="Run the demo again; if it happens again, do not trust this machine's loopback.",
        )
    for node in (starter, other):
        await node.follower.submit(AnswerPairing(same=True), Done)
    await asyncio.gather(_connected(starter, other), _connected(other, starter))
    say(f"{starter.name} and {other.name} are paired and connected over TLS")


async def _find(node: Agent, other: Agent, say: Say) -> None:
    def found(state: State) -> str | None:
        device = state.devices.get(other.device)
        return device.addresses[0] if device is not None and device.seen and device.addresses else None

    address = await node.until(found, FOUND_S, f"find {other.name} by mDNS")
    say(f"{node.name} found {other.name} ({short(other.device)}) at {address}")


async def _code(node: Agent, other: Agent) -> str:
    def code(state: State) -> str | TandemError | None:
        pairing = state.pairing
        if pairing is None or pairing.device not in (None, other.device):
            return None
        failure = _failure(pairing)
        return failure if failure is not None else pairing.code or None

    shown: str | TandemError = await node.until(code, CODE_S, f"show the pairing code of {other.name}")
    if isinstance(shown, TandemError):
        raise shown
    return shown


async def _connected(node: Agent, other: Agent) -> None:
    def connected(state: State) -> DeviceId | TandemError | None:
        device = state.devices.get(other.device)
        if device is not None and device.paired and device.linked:
            return device.device
        return _failure(state.pairing) if state.pairing is not None else None

    reached: DeviceId | TandemError = await node.until(
        connected, PAIRED_S, f"connect with {other.name} after pairing"
    )
    if isinstance(reached, TandemError):
        raise reached


def _failure(pairing: Pairing) -> TandemError | None:
    return TandemError.of(pairing.problem) if pairing.problem is not None else None
