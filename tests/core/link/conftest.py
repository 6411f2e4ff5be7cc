"""Nodes closed at the end of their test: in memory, and over real TLS on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.core.link.nodes import LinkNode
from tests.core.wires import Network

MakeNode = Callable[..., Awaitable[LinkNode]]


@pytest.fixture(params=["memory", pytest.param("loopback", marks=pytest.mark.real)])
async def node(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MakeNode]:
    nodes: list[LinkNode] = []
    if request.param == "memory":
        Network().install(monkeypatch)

    async def make(name: str, **options: object) -> LinkNode:
        nodes.append(LinkNode(name, tmp_path, **options))  # type: ignore[arg-type]
        return await nodes[-1].start()

    yield make
    for each in nodes:
        await each.close()
