"""Tells a paired laptop what is kept here of its projects, removes them when it asks, and asks in turn.

On the core loop; the disk is looked at in a thread. Security invariant: a laptop hears of, and removes, what
its own runs left, as the link's certificate names it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Protocol

from core.home import trust
from core.home.trust_file import SavedTrust
from core.run.keeping import problems
from core.run.keeping.shelf import Shelf
from core.runtime.background import Background
from core.vocabulary.answers import KeptList
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.holdings import Kept, Where
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.peer_messages import KeptAsked, KeptTold, Message, RemovalAsked
from core.vocabulary.state import State

ANSWER_S = 60.0
"""A laptop that trains meanwhile takes its time to look through, or remove, gigabytes."""
_log = logging.getLogger(__name__)


class KeepingLinks(Protocol):
    """What is needed of ``core.link.hub.Links``."""

    def send(self, device: DeviceId, message: Message) -> bool: ...


class Keeping:
    """One for a node's life. ``notice`` tells this user what another laptop had removed here."""

    def __init__(
        self,
        shelf: Shelf,
        trust: SavedTrust,
        links: KeepingLinks,
        background: Background,
        *,
        state: Callable[[], State],
        notice: Callable[[Problem], None],
        answer_s: float = ANSWER_S,
    ) -> None:
        self._shelf, self._trust, self._links, self._background = shelf, trust, links, background
        self._state, self._notice, self._answer_s = state, notice, answer_s
        self._numbers = itertools.count(1)
        self._asked: dict[tuple[DeviceId, int], asyncio.Future[KeptTold | Problem]] = {}
        self._answering: set[DeviceId] = set()
        self._disk, self._asking = asyncio.Lock(), asyncio.Lock()

    # --- what this user wants --------------------------------------------------------------------------

    async def list(self, device: DeviceId) -> KeptList:
        """A device that is forgotten, or away, cannot be asked; what is here of it is told nevertheless."""
        here = await self._look(device)
        told = await self._ask(device, KeptAsked(number=next(self._numbers)))
        if isinstance(told, Problem):
            return KeptList(device=device, here=here, problem=told)
        return KeptList(device=device, here=here, there=told.kept, problem=told.problem)

    async def remove(self, device: DeviceId, where: Where, project: ProjectId | None) -> KeptList:
        """Raises ``TandemError`` where nothing, or not all of it, could be removed."""
        if where == "here":
            problem = await self._remove(device, project)
        else:
            told = await self._ask(device, RemovalAsked(number=next(self._numbers), project=project))
            problem = told if isinstance(told, Problem) else told.problem
        if problem is not None:
            raise TandemError.of(problem)
        return await self.list(device)

    async def _ask(self, device: DeviceId, message: KeptAsked | RemovalAsked) -> KeptTold | Problem:
        found = self._state().devices.get(device)
        if found is None or not found.paired:
            return trust.not_paired(device).problem
        if found.linked and found.versions is not None and not found.versions.keeping:
            return problems.keeping_unknown(found.shown_name)
        async with self._asking:  # who asks again before it heard is not answered
            answer: asyncio.Future[KeptTold | Problem] = asyncio.get_running_loop().create_future()
            self._asked[device, message.number] = answer
            try:
                if not self._links.send(device, message):
                    return problems.not_here(found.shown_name)
                async with asyncio.timeout(self._answer_s):
                    return await answer
            except TimeoutError:
                removal = isinstance(message, RemovalAsked)
                untold = problems.removal_untold if removal else problems.keeping_untold
                return untold(found.shown_name, self._answer_s)
            finally:
                del self._asked[device, message.number]

    # --- what other laptops want -----------------------------------------------------------------------

    def on_message(self, device: DeviceId, message: Message) -> bool:
        """False: it is not about this."""
        match message:
            case KeptAsked() | RemovalAsked():
                if device not in self._answering:  # who asks without waiting is heard once
                    self._answering.add(device)
                    self._background.start("telling what is kept", self._answer(device, message))
            case KeptTold(number=number):
                asked = self._asked.get((device, number))
                if asked is not None and not asked.done():
                    asked.set_result(message)
            case _:
                return False
        return True

    def on_link_down(self, device: DeviceId) -> None:
        found = self._state().devices.get(device)
        for (asked, _), answer in self._asked.items():
            if asked == device and not answer.done():
                answer.set_result(problems.not_here(found.shown_name if found else "The other laptop"))

    async def _answer(self, device: DeviceId, message: KeptAsked | RemovalAsked) -> None:
        try:
            problem = None
            if isinstance(message, RemovalAsked):
                before = await self._look(device)
                problem = await self._remove(device, message.project)
                after = await self._look(device)
                if after.bytes < before.bytes and (peer := self._trust.store.peer(device)):
                    self._notice(problems.removed(peer.name, before.bytes - after.bytes))
            kept = await self._look(device)
            self._answering.discard(device)  # before it hears: the next question may come at once
            self._links.send(device, KeptTold(number=message.number, kept=kept, problem=problem))
        finally:
            self._answering.discard(device)

    # --- the disk --------------------------------------------------------------------------------------

    async def _look(self, device: DeviceId) -> Kept:
        async with self._disk:
            return await asyncio.to_thread(self._shelf.of, device, self._allowed(device))

    async def _remove(self, device: DeviceId, project: ProjectId | None) -> Problem | None:
        if self._is_at_work(device):
            return problems.kept_in_use()
        allowed = self._allowed(device)
        if self._trust.store.peer(device) is not None:
            await self._trust.change(lambda store: trust.disapprove(store, device, project))
        async with self._disk:
            refused = await asyncio.to_thread(self._shelf.remove, device, project, allowed)
        _log.info("removed what was kept of %s", device[:8])
        return problems.not_all_removed(refused) if refused else None

    def _is_at_work(self, device: DeviceId) -> bool:
        """A run of that laptop is under way here, or this user is asked about one."""
        state = self._state()
        run = state.run
        asked = any(consent.device == device for consent in state.consents)
        return asked or (run is not None and not run.over and run.plan.starter == device)

    def _allowed(self, device: DeviceId) -> tuple[ProjectId, ...]:
        peer = self._trust.store.peer(device)
        return peer.approved_projects if peer is not None else ()
