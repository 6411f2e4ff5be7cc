"""Limits how much each machine may announce by mDNS: fake records must not fill the list of laptops.

``Announcers`` decides (pure), and ``filter_datagrams`` asks it about each datagram. On the core loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import cast

from zeroconf import DNSIncoming, DNSPointer, Zeroconf  # type: ignore[attr-defined]

from core.discovery.record import SERVICE
from core.net.address import host_of

MOST_RECORDS = 256
"""Limit for all other nodes together."""
PER_SOURCE = 32
"""Limit per source address. Most announce only themselves; a router that repeats mDNS may announce a whole
classroom."""
SETTLED_S = 2.0
"""Age before which instances are not evicted: a flood must not make the list flicker."""
_SRV, _IN = 33, 1


@dataclass(frozen=True, slots=True)
class _Instance:
    name: str
    source: str
    since_s: float


class Announcers:
    """The accepted instances, and the source that first named each.

    Beyond ``per_source`` instances of one source, that source's oldest is evicted; beyond ``most`` of all
    together, the oldest of the source with the most. So a flood evicts its own instances. ``on_out(name)``:
    an instance was evicted.
    """

    def __init__(
        self,
        now_s: Callable[[], float],
        on_out: Callable[[str], None],
        most: int = MOST_RECORDS,
        per_source: int = PER_SOURCE,
    ) -> None:
        self._now_s, self._on_out = now_s, on_out
        self._most, self._per_source = most, per_source
        self._named: dict[str, _Instance] = {}
        """Instances by name in lower case, the oldest first."""

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._named

    def admit(self, source: str, names: Collection[str]) -> bool:
        """Whether to accept a datagram from ``source`` about these instances. Accepts all of them or none."""
        new = {name.lower(): name for name in names if name not in self}
        out = self._out(source, len(new))
        if out is None:
            return False
        for each in out:
            self.release(each.name)
            self._on_out(each.name)
        now_s = self._now_s()
        self._named.update({key: _Instance(name, source, now_s) for key, name in new.items()})
        return True

    def release(self, name: str) -> None:
        """Forget this instance."""
        self._named.pop(name.lower(), None)

    def _out(self, source: str, wanted: int) -> list[_Instance] | None:
        """Instances to evict for ``wanted`` new ones from ``source``; None if too few can be evicted."""
        held = Counter(each.source for each in self._named.values())
        out: list[_Instance] = []
        while held[source] + wanted > self._per_source:
            if not self._oldest_leaves(source, held, out):
                return None
        while held.total() + wanted > self._most:
            largest = max(held, key=held.__getitem__, default=source)
            if held[largest] < held[source] + wanted or largest == source:
                return None
            if not self._oldest_leaves(largest, held, out):
                return None
        return out

    def _oldest_leaves(self, source: str, held: Counter[str], out: list[_Instance]) -> bool:
        settled_s = self._now_s() - SETTLED_S
        for each in self._named.values():
            if each.source == source and each not in out:
                if each.since_s > settled_s:
                    return False
                out.append(each)
                held[source] -= 1
                return True
        return False


class _SourceGate(asyncio.DatagramProtocol):
    """Filters zeroconf's socket: passes on accepted datagrams only."""

    def __init__(self, behind: asyncio.DatagramProtocol, sources: Announcers) -> None:
        self._behind, self._sources = behind, sources

    def connection_lost(self, error: Exception | None) -> None:
        self._behind.connection_lost(error)

    def error_received(self, error: Exception) -> None:
        self._behind.error_received(error)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        names = instances_in(data)
        if not names or self._sources.admit(host_of(address), names):
            self._behind.datagram_received(data, address)


def filter_datagrams(zeroconf: Zeroconf, sources: Announcers) -> None:
    """Call after zeroconf has started, and again whenever its sockets change."""
    for reader in zeroconf.engine.readers:
        behind = reader.transport.get_protocol()
        if not isinstance(behind, _SourceGate):
            reader.transport.set_protocol(_SourceGate(cast(asyncio.DatagramProtocol, behind), sources))


def instances_in(data: bytes) -> set[str]:
    """Nodes announced by a datagram; a goodbye announces none."""
    if SERVICE.partition(".")[0].encode() not in data.lower():
        return set()
    message = DNSIncoming(data)
    if not message.valid or not message.is_response():
        return set()
    names = set()
    for record in message.answers():
        if record.ttl and isinstance(record, DNSPointer) and record.name.lower() == SERVICE:
            names.add(record.alias)
        elif record.ttl and record.name.lower().endswith(f".{SERVICE}"):
            names.add(record.name)
    return names


def forget_cached(zeroconf: Zeroconf, name: str, *, pointer: bool) -> None:
    """Make zeroconf query an instance's address and properties again; with ``pointer``, its existence too."""
    cache = zeroconf.cache
    records = cache.async_entries_with_name(name)
    server = getattr(cache.get_by_details(name, _SRV, _IN), "server", None)
    if server is not None:
        records += cache.async_entries_with_name(server)
    here = cache.current_entry_with_name_and_alias(SERVICE, name) if pointer else None
    cache.async_remove_records([*records, *((here,) if here is not None else ())])
