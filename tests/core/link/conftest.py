"""Nodes that are closed when their test ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.core.link.nodes import LinkNode

MakeNode = Callable[..., Awaitable[LinkNode]]


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[MakeNode]:
    nodes: list[LinkNode] = []

    async def make(name: str, **options: object) -> LinkNode:
        nodes.append(LinkNode(name, tmp_path, **options))  # type: ignore[arg-type]
        return await nodes[-1].start()

    yield make
    for each in nodes:
        await each.close()
