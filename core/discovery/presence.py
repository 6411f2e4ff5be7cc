"""This laptop's presence on its networks: its addresses, announcing it, finding others. Owned by a node.

On the core loop. With mDNS switched off, it still follows this laptop's addresses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from core.discovery import interfaces as nets
from core.discovery.browser import BROWSE_LIMITS, BrowseLimits, Browser, not_announced
from core.discovery.changes import Changes
from core.discovery.interfaces import Interface
from core.discovery.record import Announcement
from core.net.address import Address
from core.runtime.background import Background
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import NO_NETWORK

_log = logging.getLogger(__name__)


class Presence:
    """None of the callbacks may block.

    ``on_found(device, name, addresses)``: again whenever they change. ``on_gone(device)``: it said goodbye,
    or its record expired. ``on_addresses(addresses)``: this laptop's own, when they change after ``start``.
    ``on_problem(problem)``: why nobody can be found.
    """

    def __init__(
        self,
        announcement: Announcement,
        *,
        on_found: Callable[[DeviceId, str, tuple[str, ...]], None],
        on_gone: Callable[[DeviceId], None],
        on_addresses: Callable[[tuple[str, ...]], None],
        on_problem: Callable[[Problem], None],
        wanted: Iterable[str] = (),
        discovery: bool = True,
        find_interfaces: Callable[[], tuple[Interface, ...]] = nets.present,
        limits: BrowseLimits = BROWSE_LIMITS,
    ) -> None:
        self._limits = limits
        self.on_found, self.on_gone, self.on_problem = on_found, on_gone, on_problem
        self._on_addresses = on_addresses
        self._announcement = announcement
        self._wanted = tuple(wanted)
        self._discovery = discovery
        self._find_interfaces = find_interfaces
        self._chosen: tuple[Interface, ...] = ()
        self._browser: Browser | None = None
        self._told_alone = False
        self._started = False
        self._changes = Changes(self._on_change)
        self._lock = asyncio.Lock()
        self._background = Background()
        self._look_once_more = False

    @property
    def addresses(self) -> tuple[str, ...]:
        """This laptop's own, as ``host:port``, the likeliest first."""
        return self._addresses_of(self._chosen)

    async def start(self) -> None:
        self._changes.start()
        await self.look_again()

    async def look_again(self) -> None:
        """Switch to the networks that are available now."""
        async with self._lock:
            before, self._chosen = self._chosen, nets.chosen(self._find_interfaces(), self._wanted)
            if self._started and self._addresses_of(before) != self.addresses:
                self._on_addresses(self.addresses)
            self._started = True
            await self._follow(changed=before != self._chosen)

    async def change(
        self,
        *,
        name: str | None = None,
        wanted: Iterable[str] | None = None,
        discovery: bool | None = None,
    ) -> None:
        """Apply changed settings."""
        if discovery is not None:
            self._discovery = discovery
        if wanted is not None:
            self._wanted = tuple(wanted)
        if name is not None:
            self._announcement = replace(self._announcement, name=name)
            async with self._lock:
                if self._browser is not None:
                    await self._browser.announce(self._announcement)
        await self.look_again()

    async def close(self) -> None:
        """Say goodbye to the network."""
        self._changes.close()
        await self._background.cancel()
        async with self._lock:
            await self._close_browser()

    def _on_change(self) -> None:
        self._look_once_more = True
        if not self._background:
            self._background.start("following the network", self._look_while_changing())

    async def _look_while_changing(self) -> None:
        while self._look_once_more:
            self._look_once_more = False
            try:
                await self.look_again()
            except Exception:
                _log.exception("following a change of the network failed")

    async def _follow(self, *, changed: bool) -> None:
        if not self._discovery:
            await self._close_browser()
            return
        # Nobody else can be found over loopback, unless the user chose it.
        alone = all(each.loopback for each in self._chosen) and not (self._wanted and self._chosen)
        if alone and not self._told_alone:
            self.on_problem(no_network(self._wanted))
        self._told_alone = alone
        if not self._chosen:
            await self._close_browser()
            return
        try:
            await self._announce_and_browse(changed=changed)
        except OSError as error:
            _log.warning("mDNS can't be used: %s", error)
            await self._close_browser()
            self.on_problem(not_announced(str(error)))

    async def _announce_and_browse(self, *, changed: bool) -> None:
        multicast, addresses = nets.multicast(self._chosen), nets.announced(self._chosen)
        loopback = any(each.loopback for each in self._chosen)
        if self._browser is None:
            browser = Browser(self._announcement, self, self._limits)
            browser.open(multicast, addresses, loopback=loopback)
            self._browser = browser
        elif changed:
            await self._browser.move(multicast, addresses, loopback=loopback)

    async def _close_browser(self) -> None:
        browser, self._browser = self._browser, None
        if browser is not None:
            await browser.close()

    def _addresses_of(self, chosen: Iterable[Interface]) -> tuple[str, ...]:
        return tuple(str(Address(host, self._announcement.port)) for host in nets.hosts(chosen))


def no_network(wanted: tuple[str, ...]) -> Problem:
    """Nobody can be found, because there is no network to look in."""
    if wanted:
        what = f"This laptop has no connected interface named {' or '.join(wanted)}."
        return Problem(code=NO_NETWORK, what=what, fix="Connect it, or choose another in the settings.")
    return Problem(
        code=NO_NETWORK,
        what="This laptop is not on a network.",
        fix="Join the other laptop's Wi-Fi, connect the two by a cable, or open a hotspot on one of them.",
    )
