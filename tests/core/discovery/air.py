"""mDNS without a network: announcing, browsing and hearing, immediate and in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from zeroconf import ServiceStateChange
from zeroconf.asyncio import AsyncServiceInfo

from core.discovery.record import SERVICE
from core.discovery.sources import Announcers

Handler = Callable[[Any, str, str, ServiceStateChange], None]


class Air:
    """``install`` replaces zeroconf with it."""

    def __init__(self) -> None:
        self.records: dict[str, AsyncServiceInfo] = {}
        self.handlers: list[tuple[FakeZeroconf, Handler]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, fake in (
            ("AsyncZeroconf", FakeZeroconf),
            ("AsyncServiceBrowser", FakeBrowser),
            ("AsyncServiceInfo", FakeInfo),
        ):
            monkeypatch.setattr(f"core.discovery.browser.{name}", lambda *a, f=fake, **b: f(self, *a, **b))
        monkeypatch.setattr(
            "core.discovery.browser.filter_datagrams", lambda zeroconf, sources: zeroconf.hear_by(sources)
        )

    def tell(self, name: str, change: ServiceStateChange) -> None:
        for zeroconf, handler in list(self.handlers):
            asyncio.get_running_loop().call_soon(zeroconf.hear, handler, name, change)


class FakeZeroconf:
    def __init__(self, air: Air, *, interfaces: list[str]) -> None:
        self.air = air
        self.interfaces = interfaces
        self.zeroconf = self
        self._sources: Announcers | None = None
        self.cache = FakeCache()
        self._own: list[str] = []

    async def async_wait_for_start(self) -> None:
        pass

    def hear_by(self, sources: Announcers) -> None:
        self._sources = sources

    def hear(self, handler: Handler, name: str, change: ServiceStateChange) -> None:
        """What arrives over a socket, whoever sent it: all senders have the same address."""
        assert self._sources is not None
        if change is ServiceStateChange.Removed or self._sources.admit("127.0.0.1", {name}):
            handler(self, SERVICE, name, change)

    async def async_register_service(self, info: AsyncServiceInfo, **options: bool) -> Awaitable[None]:
        if info.name in self.air.records and options.get("allow_name_change"):
            info.name = info.name.replace(f".{SERVICE}", f"-2.{SERVICE}")
        self._own.append(info.name)
        self.air.records[info.name] = info
        self.air.tell(info.name, ServiceStateChange.Added)
        return _done()

    async def async_update_service(self, info: AsyncServiceInfo) -> Awaitable[None]:
        assert info.name in self._own
        self.air.records[info.name] = info
        self.air.tell(info.name, ServiceStateChange.Updated)
        return _done()

    async def async_update_interfaces(self, interfaces: list[str]) -> None:
        self.interfaces = interfaces

    async def async_close(self) -> None:
        for name in self._own:
            del self.air.records[name]
            self.air.tell(name, ServiceStateChange.Removed)


class FakeCache:
    """Caches nothing: a requested record is in the air, or nowhere."""

    def async_entries_with_name(self, name: str) -> list[object]:
        return []

    def get_by_details(self, name: str, kind: int, of: int) -> None:
        return None

    def current_entry_with_name_and_alias(self, name: str, alias: str) -> None:
        return None

    def async_remove_records(self, records: list[object]) -> None:
        assert not records


class FakeBrowser:
    def __init__(self, air: Air, zeroconf: FakeZeroconf, kind: str, handlers: list[Handler]) -> None:
        assert kind == SERVICE
        self._air = air
        self._entry = (zeroconf, handlers[0])
        air.handlers.append(self._entry)
        for name in air.records:
            asyncio.get_running_loop().call_soon(zeroconf.hear, handlers[0], name, ServiceStateChange.Added)

    async def async_cancel(self) -> None:
        self._air.handlers.remove(self._entry)


class FakeInfo:
    """A record requested by its name."""

    def __init__(self, air: Air, kind: str, name: str) -> None:
        assert kind == SERVICE
        self._air, self._name = air, name

    def load_from_cache(self, zeroconf: object) -> bool:
        return False

    async def async_request(self, zeroconf: object, limit_ms: int) -> bool:
        await asyncio.sleep(0)
        return self._name in self._air.records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._air.records[self._name], name)


def _done() -> Awaitable[None]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done
