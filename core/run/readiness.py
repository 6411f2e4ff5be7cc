"""Trainers that load TensorFlow before they are needed: here, and on the others of a run. On the core
loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable

from core.run.context import RunContext
from core.supervisor.warm import WarmTrainer
from core.vocabulary import peer_messages as ms
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import State


class Readiness:
    """One per node. ``starter``: of the run that this laptop is in; None: it is in none."""

    def __init__(
        self,
        context: RunContext,
        warm: WarmTrainer,
        state: Callable[[], State],
        starter: Callable[[], DeviceId | None],
    ) -> None:
        self._context = context
        self._warm = warm
        self._state = state
        self._starter = starter
        self._numbers = itertools.count(1)
        self._answering: set[DeviceId] = set()

    def foresee(self) -> None:
        """A run may begin here soon: makes a trainer ready for it, if this laptop is in none."""
        if not self._warm.is_in_a_run():
            self._warm.foresee()

    async def load(self, devices: Iterable[DeviceId]) -> None:
        """Load here and on these laptops while a run goes on. Returns when all have, or after a limit."""
        known = self._state().devices
        asked = [
            self._context.links.ask(
                device, ms.LoadAsked(question=next(self._numbers)), self._context.limits.load_ahead_s
            )
            for device in devices
            if device in known
        ]
        await asyncio.gather(self._warm.loaded(self._context.limits.load_ahead_s), *asked)

    def on_message(self, device: DeviceId, message: ms.Message) -> bool:
        """False: the message is about something else."""
        if not isinstance(message, ms.LoadAsked):
            return False
        # Nobody but its starter has a trainer loaded beside the one that trains.
        if device not in self._answering and (self._starter() == device or not self._warm.is_in_a_run()):
            self._answering.add(device)
            self._context.background.start("load ahead", self._answer(device, message))
        return True

    async def _answer(self, device: DeviceId, asked: ms.LoadAsked) -> None:
        try:
            loaded = await self._warm.loaded(self._context.limits.load_ahead_s)
        finally:
            self._answering.discard(device)
        self._context.links.send(device, ms.LoadTold(question=asked.question, loaded=loaded))
