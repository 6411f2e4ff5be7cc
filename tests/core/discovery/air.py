"""mDNS without a network: who announces, who looks, and what they hear, all at once and in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from zeroconf import ServiceStateChange
from zeroconf.asyncio import AsyncServiceInfo

from core.discovery.record import SERVICE

Handler = Callable[[Any, str, str, ServiceStateChange], None]


class Air:
    """``install`` puts it in the place of zeroconf."""

    def __init__(self) -> None:
        self.records: dict[str, AsyncServiceInfo] = {}
        self.handlers: list[tuple[object, Handler]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, fake in (
            ("AsyncZeroconf", FakeZeroconf),
            ("AsyncServiceBrowser", FakeBrowser),
            ("AsyncServiceInfo", FakeInfo),
        ):
            monkeypatch.setattr(f"core.discovery.browser.{name}", lambda *a, f=fake, **b: f(self, *a, **b))

    def tell(self, name: str, change: ServiceStateChange) -> None:
        for zeroconf, handler in list(self.handlers):
            asyncio.get_running_loop().call_soon(handler, zeroconf, SERVICE, name, change)


class FakeZeroconf:
    def __init__(self, air: Air, *, interfaces: list[str]) -> None:
        self.air = air
        self.interfaces = interfaces
        self.zeroconf = self
        self._own: list[str] = []

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


class FakeBrowser:
    def __init__(self, air: Air, zeroconf: object, kind: str, handlers: list[Handler]) -> None:
        assert kind == SERVICE
        self._air = air
        self._entry = (zeroconf, handlers[0])
        air.handlers.append(self._entry)
        for name in air.records:
            asyncio.get_running_loop().call_soon(handlers[0], zeroconf, kind, name, ServiceStateChange.Added)

    async def async_cancel(self) -> None:
        self._air.handlers.remove(self._entry)


class FakeInfo:
    """What is asked for by its name."""

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
