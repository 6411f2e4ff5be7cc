"""Announces this node by mDNS and looks for others, on given addresses. On the core loop.

Browsing finds others at once; registering takes 1.7 s and happens in the background.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from zeroconf import Error, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from core.discovery.record import (
    MOST_ADDRESSES,
    SERVICE,
    Announcement,
    Sighting,
    instance_name,
    service_info,
    sighting,
)
from core.discovery.sources import MOST_RECORDS, Announcers, filter_datagrams, forget_cached
from core.runtime.background import Background
from core.runtime.timers import Timers
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId

RESOLVE_MS = 3000
REGISTER_S = 20.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrowseLimits:
    """A node's address is valid for 120 s (RFC 6762, 10): after four fifths it is queried again.

    The node then has ``confirm_s`` to answer: wireless networks often lose multicast, so the query is
    repeated meanwhile.
    """

    most_records: int = MOST_RECORDS
    fresh_s: float = 96.0
    confirm_s: float = 10.0


BROWSE_LIMITS = BrowseLimits()


class BrowserOwner(Protocol):
    """Receives events on the core loop, so it must not block."""

    def on_found(self, device: DeviceId, name: str, addresses: tuple[str, ...]) -> None: ...

    def on_gone(self, device: DeviceId) -> None: ...

    def on_problem(self, problem: Problem) -> None: ...


class Browser:
    """``open`` on the addresses of some interfaces, ``move`` when they change, ``close`` with a goodbye."""

    def __init__(
        self, announcement: Announcement, owner: BrowserOwner, limits: BrowseLimits = BROWSE_LIMITS
    ) -> None:
        self._announcement = announcement
        self._owner = owner
        self._limits = limits
        loop = asyncio.get_running_loop()
        self._sources = Announcers(loop.time, self._on_out, limits.most_records)
        self._fresh: Timers[str] = Timers(loop, self._on_stale)
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._info: AsyncServiceInfo | None = None
        """The registered record, under the name settled by mDNS."""
        self._addresses: tuple[str, ...] = ()
        self._loopback = False
        self._records: dict[str, Sighting] = {}
        """Records by instance name."""
        self._resolving: dict[str, asyncio.Task[None]] = {}
        self._background = Background()

    def open(self, multicast: Iterable[str], addresses: Iterable[str], *, loopback: bool) -> None:
        """Raises ``OSError`` where mDNS can't be used at all."""
        self._addresses, self._loopback = tuple(addresses), loopback
        self._zeroconf = AsyncZeroconf(interfaces=list(multicast))
        self._background.start("looking for others", self._begin_browsing(self._zeroconf))
        self._background.start("announcing this laptop", self._register(self._zeroconf))

    async def move(self, multicast: Iterable[str], addresses: Iterable[str], *, loopback: bool) -> None:
        """Follow a change of interfaces or addresses. Raises ``OSError``."""
        assert self._zeroconf is not None
        self._addresses, self._loopback = tuple(addresses), loopback
        await self._zeroconf.async_update_interfaces(list(multicast))
        await self._announce_again()
        # A browser's queries come at growing intervals; query a new network at once.
        await self._stop_browsing()
        self._browse(self._zeroconf)

    async def announce(self, announcement: Announcement) -> None:
        """Announce another name or port of this node."""
        self._announcement = announcement
        await self._announce_again()

    async def close(self) -> None:
        """Say goodbye, and report all found nodes as gone. Takes about 0.3 s."""
        await self._stop_browsing()
        self._fresh.cancel_all()
        await self._background.cancel()
        if self._zeroconf is not None:
            await self._zeroconf.async_close()
            self._zeroconf = None
        devices = {record.device for record in self._records.values()}
        self._records.clear()
        for device in devices:
            self._owner.on_gone(device)

    # --- announcing ------------------------------------------------------------------------------------

    async def _register(self, zeroconf: AsyncZeroconf) -> None:
        made_of = self._announcement, self._addresses
        info = service_info(*made_of)
        try:
            async with asyncio.timeout(REGISTER_S):
                await (await zeroconf.async_register_service(info, allow_name_change=True))
        except (Error, OSError, TimeoutError) as error:
            _log.warning("announcing this laptop failed: %r", error)
            self._owner.on_problem(not_announced(repr(error)))
            return
        self._info = info
        if made_of != (self._announcement, self._addresses):
            await self._announce_again()

    async def _announce_again(self) -> None:
        if self._zeroconf is None or self._info is None:
            return  # the registration under way uses the current values when it ends
        self._info = service_info(self._announcement, self._addresses, instance=self._info.name)
        await (await self._zeroconf.async_update_service(self._info))

    # --- browsing --------------------------------------------------------------------------------------

    async def _begin_browsing(self, zeroconf: AsyncZeroconf) -> None:
        await zeroconf.zeroconf.async_wait_for_start()
        if self._browser is None:  # otherwise the networks changed meanwhile
            self._browse(zeroconf)

    def _browse(self, zeroconf: AsyncZeroconf) -> None:
        filter_datagrams(zeroconf.zeroconf, self._sources)
        self._browser = AsyncServiceBrowser(zeroconf.zeroconf, SERVICE, handlers=[self._on_change])

    async def _stop_browsing(self) -> None:
        if self._browser is not None:
            await self._browser.async_cancel()
            self._browser = None

    def _on_change(
        self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
    ) -> None:
        if state_change is ServiceStateChange.Removed:
            self._stop_resolving(name)
            self._sources.release(name)
            self._forget(name)
        elif name in self._sources:
            self._resolve(zeroconf, name, RESOLVE_MS)
        else:
            # This record arrived before its source was known; our query brings it again.
            forget_cached(zeroconf, name, pointer=True)

    def _on_out(self, name: str) -> None:
        """Drop an instance that was evicted or could not be resolved."""
        self._stop_resolving(name)
        self._sources.release(name)
        if self._zeroconf is not None:
            forget_cached(self._zeroconf.zeroconf, name, pointer=True)
        self._forget(name)

    def _on_stale(self, name: str) -> None:
        if self._zeroconf is not None:
            forget_cached(self._zeroconf.zeroconf, name, pointer=False)
            self._resolve(self._zeroconf.zeroconf, name, 1000 * self._limits.confirm_s)

    def _resolve(self, zeroconf: Zeroconf, name: str, limit_ms: float) -> None:
        self._stop_resolving(name)
        reading = self._read(zeroconf, name, limit_ms)
        self._resolving[name] = self._background.start("reading a record", reading)

    def _stop_resolving(self, name: str) -> None:
        if (under_way := self._resolving.pop(name, None)) is not None:
            under_way.cancel()

    async def _read(self, zeroconf: Zeroconf, name: str, limit_ms: float) -> None:
        answered = False
        try:
            info = AsyncServiceInfo(SERVICE, name)
            answered = info.load_from_cache(zeroconf) or await info.async_request(zeroconf, limit_ms)
            if answered:
                self._note(name, sighting(info, self._announcement.device, loopback=self._loopback))
        except (Error, OSError, ValueError) as error:
            _log.debug("a record that can't be read: %r: %r", name[:80], error)
        finally:
            if self._resolving.get(name) is asyncio.current_task():
                del self._resolving[name]
        if answered:
            self._fresh.set(name, self._limits.fresh_s)
        else:
            self._on_out(name)

    def _note(self, name: str, seen: Sighting | None) -> None:
        before = self._records.get(name)
        if before is not None and (seen is None or seen.device != before.device):
            self._forget(name)
        if seen is not None:
            self._records[name] = seen
            self._tell(seen.device)

    def _forget(self, name: str) -> None:
        self._fresh.cancel(name)
        record = self._records.pop(name, None)
        if record is not None:
            self._tell(record.device)

    def _tell(self, device: DeviceId) -> None:
        """Report all records of a device together, its usual one first: fake records may claim its id."""
        usual = instance_name(device)
        records = [
            (name != usual, record) for name, record in self._records.items() if record.device == device
        ]
        if not records:
            self._owner.on_gone(device)
            return
        records.sort(key=lambda ranked: ranked[0])
        addresses = dict.fromkeys(address for _, record in records for address in record.addresses)
        self._owner.on_found(device, records[0][1].name, tuple(addresses)[:MOST_ADDRESSES])


def not_announced(detail: str) -> Problem:
    return Problem(
        code="no-multicast",
        what="This laptop can't announce itself on the network (mDNS).",
        fix="Allow UDP port 5353 in the firewall. Without it, pair by the address that Tandem shows.",
        detail=detail,
    )
