"""Two nodes on this machine, like the demo's: separate homes, paired over real links."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from app.demo import pairing
from app.demo.agent import Agent, running
from core.vocabulary.answers import Done
from core.vocabulary.commands import SetCodePolicy


@asynccontextmanager
async def two_paired(folder: Path | None = None) -> AsyncIterator[Sequence[Agent]]:
    """Each may run the other's code without asking. Everything is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="tandem-bench-", dir=folder) as base:
        async with running(2, Path(base).resolve()) as nodes:
            first, second = nodes
            await pairing.find_each_other(nodes, silent)
            await pairing.pair(first, second, silent)
            await trust_each_other(first, second)
            yield nodes


async def trust_each_other(first: Agent, second: Agent) -> None:
    """Each may run the other's code without asking."""
    for node, other in ((first, second), (second, first)):
        await node.follower.submit(SetCodePolicy(device=other.device, policy="always"), Done)


def silent(line: str) -> None:
    """Discards the demo's own messages."""
