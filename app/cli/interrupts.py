"""Waits for Ctrl-C, SIGTERM and a closed terminal while entered. Runs on the main thread's loop.

Ctrl-C is a person's wish; the others may also mean that the system is shut down, or that its user logs out.

A SIGHUP that was ignored at the start (``nohup``) stays ignored: the program is to outlive its terminal.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Self, TypeVar

T = TypeVar("T")
HANG_UP: signal.Signals | None = getattr(signal, "SIGHUP", None)
SIGNALS = tuple(number for number in (signal.SIGINT, signal.SIGTERM, HANG_UP) if number is not None)


class Interrupts:
    """Counts interrupts; each can be awaited once."""

    def __init__(self) -> None:
        self.count = 0
        self.by_system = False
        """Whether one of them was not Ctrl-C."""
        self._waiting: asyncio.Queue[None] = asyncio.Queue()
        self._caught: list[signal.Signals] = []

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            if number is HANG_UP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            try:
                loop.add_signal_handler(number, self._on_signal, number)
            except (NotImplementedError, RuntimeError, ValueError):
                continue  # Windows' loop, or not the main thread: KeyboardInterrupt comes instead.
            self._caught.append(number)
        return self

    def __exit__(self, *failure: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self._caught:
            loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        self.by_system |= number is not signal.SIGINT
        self.interrupt()

    def interrupt(self) -> None:
        """Count one more interrupt."""
        self.count += 1
        self._waiting.put_nowait(None)

    async def wait_next(self) -> None:
        await self._waiting.get()

    async def unless(self, work: Coroutine[object, object, T]) -> T | None:
        """The result of ``work``; None if an interrupt came first and ``work`` was cancelled."""
        return await unless(self.wait_next(), work)


async def unless(end: Coroutine[object, object, object], work: Coroutine[object, object, T]) -> T | None:
    """The result of ``work``; None if ``end`` came first and ``work`` was cancelled. Raises what the first
    of them raises."""
    working, ending = asyncio.create_task(work), asyncio.create_task(end)
    try:
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        ending.result()
        return None
    finally:
        for task in (working, ending):
            task.cancel()
        await asyncio.gather(working, ending, return_exceptions=True)
