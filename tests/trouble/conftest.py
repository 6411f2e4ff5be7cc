from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from core.home.home import Home
from core.net.port import LOOPBACK, open_port
from core.vocabulary.settings import Settings
from tests.lab.agent import Agent
from tests.lab.lab import NAMES
from tests.lab.laptops import Laptops
from tests.lab.network import RATE, Network


def free_port() -> int:
    """A port for a node, lent to no other program meanwhile."""

    async def find() -> int:
        opened = await open_port(0, LOOPBACK)
        for listening in opened.sockets:
            listening.close()
        return opened.port

    return asyncio.run(find())


@pytest.fixture
def network(namespaces: None) -> Iterator[Network]:
    """A laptop whose disks a test may mount freely."""
    with Network(1, RATE) as network:
        yield network


@pytest.fixture(scope="package")
def _standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptops]:
    folder = tmp_path_factory.mktemp("laptops")
    ports = [free_port() for _ in range(2)]
    with ExitStack() as ends:

        def start(number: int) -> Agent:
            # Found again by their old addresses: no other node on this machine meets them.
            settings = Settings(
                name=NAMES[number],
                port=ports[number],
                interfaces=("lo",),
                discovery=False,
                first_run_done=True,
            )
            return ends.enter_context(Agent(Home(folder / NAMES[number]), settings=settings))

        yield Laptops(start, 2)


@pytest.fixture
def laptops(_standing: Laptops) -> Laptops:
    """Two of them on the loopback, paired and idle; they stay on between tests."""
    _standing.mend()
    return _standing
