"""Connects to a device: races its addresses against each other, and backs off between attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from core.net.address import Address
from core.net.tls import NOBODY_LISTENS, Streams
from core.vocabulary.errors import TandemError

HEAD_START_S = 0.4
"""How long an address is tried alone before the next one is tried beside it."""

MOST_ADDRESSES = 8

Connect = Callable[[Address], Awaitable[Streams]]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pause between calls: doubles from ``first_s`` to ``most_s``, each shortened at random."""

    first_s: float = 0.5
    most_s: float = 30.0

    def wait_s(self, failures: int, chance: float) -> float:
        """``failures`` so far, at least 1; ``chance`` from [0, 1)."""
        # Two laptops that lost each other at the same moment must not keep calling in step.
        return min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 16)) * (1.0 - chance / 2)


async def reach(
    addresses: Sequence[Address], connect: Connect, *, head_start_s: float = HEAD_START_S
) -> tuple[Streams, Address]:
    """The first connection that ``connect`` makes, and its address; the others are closed.

    Raises the most informative ``TandemError``. Has no time limit of its own: ``connect`` must have one.
    """
    attempts: dict[asyncio.Task[Streams], Address] = {}
    failures: list[TandemError] = []
    waiting = list(addresses[:MOST_ADDRESSES])
    won: asyncio.Task[Streams] | None = None
    try:
        while waiting or attempts:
            if waiting:
                address = waiting.pop(0)
                attempts[asyncio.create_task(_as_coroutine(connect(address)))] = address
            done, _ = await asyncio.wait(
                attempts,
                timeout=head_start_s if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for attempt in done:
                address = attempts.pop(attempt)
                try:
                    streams, won = attempt.result(), attempt
                    return streams, address
                except TandemError as failure:
                    failures.append(failure)
    finally:
        try:
            await _call_off(attempts)
        except asyncio.CancelledError:
            if won is not None:
                _close(won)  # nobody uses it any more
            raise
    raise min(failures, key=_priority, default=_nowhere())


def _priority(failure: TandemError) -> int:
    """A refused connection says more about the device than a stranger at one of its earlier addresses."""
    return {NOBODY_LISTENS: 0, "unreachable": 2}.get(failure.code, 1)


async def _as_coroutine(awaitable: Awaitable[Streams]) -> Streams:
    return await awaitable


async def _call_off(attempts: Collection[asyncio.Task[Streams]]) -> None:
    """Cancel the attempts. Connections that are made nevertheless are closed."""
    under_way = [attempt for attempt in attempts if not attempt.done()]
    for attempt in attempts:
        if attempt.done():
            _close(attempt)
        else:
            attempt.add_done_callback(_close)
            attempt.cancel()
    if under_way:
        await asyncio.wait(under_way)


def _close(attempt: asyncio.Task[Streams]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result()[1].transport.abort()


def _nowhere() -> TandemError:
    return TandemError(
        code="no-address",
        what="No address of the other laptop is known.",
        fix="Open Tandem there, on the same network; or enter the address that it shows.",
    )
