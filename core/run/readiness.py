"""Loads TensorFlow before trainers are needed, here and on the other laptops of a run. On the core loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable

from core.run.context import RunContext
from core.supervisor.warm import WarmTrainer
from core.vocabulary import peer_messages as ms
from core.vocabulary.ids import DeviceId

MOST_ASKED = 8
"""Unanswered questions of one device."""


class Readiness:
    """One per node. ``starter``: of the run that this laptop is in; None: it is in none."""

    def __init__(
        self,
        context: RunContext,
        warm: WarmTrainer,
        starter: Callable[[], DeviceId | None],
    ) -> None:
        self._context = context
        self._warm = warm
        self._starter = starter
        self._numbers = itertools.count(1)
        self._asked: dict[DeviceId, list[int]] = {}
        """Questions that are answered together, once TensorFlow is loaded."""

    def foresee(self) -> None:
        """A run may begin here soon: makes a trainer ready for it, if this laptop is in none."""
        if not self._warm.is_in_a_run():
            self._warm.foresee()

    async def load(self, devices: Iterable[DeviceId]) -> None:
        """Load here and on these laptops while a run goes on. Returns when all have, or after a limit."""
        asked = [
            self._context.links.ask(
                device, ms.LoadAsked(question=next(self._numbers)), self._context.limits.load_ahead_s
            )
            for device in devices
            if self._context.known(device) is not None
        ]
        await asyncio.gather(self._warm.wait_loaded(self._context.limits.load_ahead_s), *asked)

    def on_message(self, device: DeviceId, message: ms.Message) -> bool:
        """False: the message is about something else."""
        if not isinstance(message, ms.LoadAsked):
            return False
        # During a run only its starter may load a second trainer here.
        if self._starter() != device and self._warm.is_in_a_run():
            self._context.links.send(device, ms.LoadTold(question=message.question, loaded=False))
        elif (asked := self._asked.get(device)) is None:
            self._asked[device] = [message.question]
            self._context.background.start("load ahead", self._answer(device))
        elif len(asked) < MOST_ASKED:
            asked.append(message.question)
        return True

    async def _answer(self, device: DeviceId) -> None:
        loaded = False
        try:
            loaded = await self._warm.wait_loaded(self._context.limits.load_ahead_s)
        finally:
            for question in self._asked.pop(device):
                self._context.links.send(device, ms.LoadTold(question=question, loaded=loaded))
