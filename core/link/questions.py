"""Questions to paired devices that a single message answers. On the core loop."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import Message, question_of

_Key = tuple[DeviceId, type[Message], object]


class Questions:
    """Sends questions and waits for their answers. ``send`` queues a message for a device; False: it is
    away."""

    def __init__(self, send: Callable[[DeviceId, Message], bool]) -> None:
        self._send = send
        self._waiting: defaultdict[_Key, set[asyncio.Future[Message | None]]] = defaultdict(set)

    async def ask(self, device: DeviceId, question: Message, limit_s: float) -> Message | None:
        """The answer; None: the device is away, or does not answer within ``limit_s``."""
        about = question_of(question)
        assert about is not None, "an answer to this question could not be recognised"
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[device, *about]
        waiting.add(answer)
        try:
            if not self._send(device, question):
                return None
            async with asyncio.timeout(limit_s):
                return await answer
        except TimeoutError:
            return None
        finally:
            waiting.discard(answer)
            # After the answer, the same question may have been asked again.
            if not waiting and self._waiting.get((device, *about)) is waiting:
                del self._waiting[device, *about]

    def on_message(self, device: DeviceId, message: Message) -> bool:
        """Pass on an answer. Returns whether somebody waits for it."""
        about = question_of(message)
        if about is None or not isinstance(message, about[0]):
            return False
        waiting = self._waiting.pop((device, *about), set())
        self._settle(waiting, message)
        return bool(waiting)

    def give_up(self, device: DeviceId) -> None:
        """The device is gone: end all waits for its answers."""
        for key in [key for key in self._waiting if key[0] == device]:
            self._settle(self._waiting.pop(key), None)

    def _settle(self, waiting: set[asyncio.Future[Message | None]], answer: Message | None) -> None:
        for each in waiting:
            if not each.done():
                each.set_result(answer)
