"""Nodes that are closed when their test ends: in memory, and over real TLS on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from core.net import tls
from tests.core.link.nodes import LinkNode, MemoryNetwork

MakeNode = Callable[..., Awaitable[LinkNode]]


@pytest.fixture(params=["memory", pytest.param("loopback", marks=pytest.mark.real)])
async def node(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MakeNode]:
    nodes: list[LinkNode] = []
    network = None
    if request.param == "memory":
        network = MemoryNetwork()
        monkeypatch.setattr(tls, "connect", network.connect)
        monkeypatch.setattr(tls, "client_context", lambda identity, pin: identity)

    async def make(name: str, **options: object) -> LinkNode:
        nodes.append(LinkNode(name, tmp_path, network=network, **options))  # type: ignore[arg-type]
        return await nodes[-1].start()

    yield make
    for each in nodes:
        await each.close()
