"""What both sides of a run work with on this node: its folders, its threads, its clock, its links."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self

from core.project.outputs import LIMIT_BYTES as OUTPUTS_BYTES
from core.project.store import ProjectStore
from core.runtime.background import Background, WorkerThread
from core.runtime.timers import Clock
from core.supervisor.loading_times import LoadingTimes
from core.supervisor.trainers import MakeTrainer
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import Message

_log = logging.getLogger(__name__)


class RunLinks(Protocol):
    """What a run needs of ``core.link.hub.Links``."""

    def send(self, device: DeviceId, message: Message) -> bool: ...

    async def send_flowing(self, device: DeviceId, message: Message) -> bool: ...

    def peer_host(self, device: DeviceId) -> str: ...

    def own_host(self, device: DeviceId) -> str: ...


class Loopback:
    """Links on which this node reaches itself, too: the other side of its own run hears it as a peer would.

    ``deliver(me, message)`` is called on the next turn of the loop, in order, as a link would deliver. Where
    it raises, nobody would hear of the message any more: ``on_crash(name, error)``.
    """

    def __init__(
        self,
        me: DeviceId,
        links: RunLinks,
        deliver: Callable[[DeviceId, Message], object],
        on_crash: Callable[[str, BaseException], None],
    ) -> None:
        self._me = me
        self._links = links
        self._deliver = deliver
        self._on_crash = on_crash
        self._loop = asyncio.get_running_loop()

    def send(self, device: DeviceId, message: Message) -> bool:
        if device != self._me:
            return self._links.send(device, message)
        self._loop.call_soon(self._arrive, message)
        return True

    def _arrive(self, message: Message) -> None:
        try:
            self._deliver(self._me, message)
        except Exception as error:
            _log.exception("handling a message to oneself")
            self._on_crash(f"a run's {type(message).__name__}", error)

    async def send_flowing(self, device: DeviceId, message: Message) -> bool:
        """Files alone travel like this, and none travels to the laptop that has it."""
        return await self._links.send_flowing(device, message)

    def peer_host(self, device: DeviceId) -> str:
        return self._links.peer_host(device)

    def own_host(self, device: DeviceId) -> str:
        return self._links.own_host(device)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What a run's machines do not wait for themselves: see ``core.vocabulary.limits`` for those."""

    look_s: float = 2.0
    """A screen that shows a run waits no longer for others' checkpoints; a later answer is an event later."""
    modules_s: float = 3.0
    """Another laptop looks at its disk for a few modules. Of one that does not answer nothing is said."""
    first_piece_s: float = 180.0
    """A laptop hashes its checkpoint, of gigabytes perhaps, before it sends it."""
    outputs_bytes: int = OUTPUTS_BYTES
    """All that is brought back to the starter."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """``files``: the thread for projects and outputs; one, so that pieces are written in order."""

    me: DeviceId
    runs: Path
    temporary: Path
    store: ProjectStore
    loading: LoadingTimes
    links: RunLinks
    clock: Clock
    files: WorkerThread
    background: Background
    make_trainer: MakeTrainer
    limits: RunLimits

    def with_links(self, links: RunLinks) -> Self:
        return replace(self, links=links)

    @property
    def unix_s(self) -> float:
        """What to add to the clock's time for Unix time."""
        return time.time() - self.clock.time()

    def folder(self, run: RunId) -> Path:
        return self.runs / run
