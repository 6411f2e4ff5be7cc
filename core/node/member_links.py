"""Links this laptop with unpaired members of its run for as long as the run may need that, and refuses all
messages that the run does not need. On the core loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Literal

from core.home.trust import TrustStore
from core.link.hub import Links
from core.run.introductions import Introduced, Introductions
from core.runtime.timers import Clock, Timers
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import Declined, Message, Prepare
from core.vocabulary.phases import Failed, Finished, Stopped

_OVER = Problem(code="link-over", what="The run that both laptops were in is over.")
_NOT_PAIRED = Problem(
    code="not-paired",
    what="It is not paired with the laptop that asked.",
    fix="Pair the two laptops.",
)
_log = logging.getLogger(__name__)


class IntroducedPeers:
    """``on_change`` is called when ``pins`` has changed."""

    def __init__(
        self,
        me: DeviceId,
        links: Links,
        *,
        store: Callable[[], TrustStore],
        on_change: Callable[[], None],
        clock: Clock | None = None,
    ) -> None:
        self._me, self._introductions = me, Introductions(me)
        self._links, self._store, self._on_change = links, store, on_change
        self._loop = asyncio.get_running_loop()
        self._timers = Timers[Literal["end"]](clock or self._loop, lambda _: self._become(Introductions(me)))
        self._refused = set[tuple[DeviceId, type[Message]]]()
        """Already logged."""
        self._closed = False
        self.nodes: dict[DeviceId, Introduced] = {}
        """Devices that are introduced now, and neither paired nor forgotten."""

    @property
    def pins(self) -> tuple[bytes, ...]:
        """Their certificates (DER)."""
        return tuple(node.certificate for node in self.nodes.values())

    def on_event(self, event: ev.Event) -> None:
        match event:
            # Own runs introduce nobody to this laptop; they only end what another's run introduced.
            case ev.RunPlanned(plan=plan) if plan.starter != self._me or self._introductions.plan is not None:
                self._become(self._introductions.planned(plan, self._store()))
            case ev.RunPhaseChanged(run=run, phase=Finished() | Stopped() | Failed() as phase):
                self._become(self._introductions.ended(run, phase))

    def refuses(self, device: DeviceId, message: Message) -> bool:
        """Security invariant: every message of a link is checked here, except answers to this laptop's own
        questions. A laptop that is not paired may send only what its run needs."""
        if self._store().peer(device) is not None:
            return False
        after = self._introductions.received(device, message) if device in self.nodes else None
        if after is not None:
            self._introductions = after
            return False
        kind = type(message)
        if (device, kind) not in self._refused:
            self._refused.add((device, kind))
            _log.warning("%s of %s is refused: it is not paired", kind.__name__, short(device))
        if isinstance(message, Prepare):
            self._links.send(device, Declined(run=message.plan.run, problem=_NOT_PAIRED))
        return True

    def update_links(self) -> None:
        """Link exactly the devices introduced now; the user may have paired or forgotten some."""
        if self._closed:
            return
        store, before = self._store(), self.nodes
        self.nodes = self._introductions.among(store)
        if before == self.nodes:
            return
        self._refused.clear()
        self._on_change()
        for device in before.keys() - self.nodes.keys():
            if store.peer(device) is None:
                self._links.forget(device, _OVER)
        for device in self.nodes.keys() - before.keys():
            node = self.nodes[device]
            self._links.pair(node.certificate, name=node.name, hints=(node.address,))

    def close(self) -> None:
        self._closed = True
        self._timers.cancel_all()

    def _become(self, after: Introductions) -> None:
        if after is self._introductions:
            return
        self._introductions = after
        if after.ends_in_s is None:
            self._timers.cancel("end")
        else:
            self._timers.set("end", after.ends_in_s)
        # Later: the run's machine is still in the step that emitted the event.
        self._loop.call_soon(self.update_links)
