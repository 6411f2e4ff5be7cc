from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.faults import listens_alone
from tests.lab.lab import Lab
from tests.lab.laptops import Laptops
from tests.lab.network import WIFI, Network


@pytest.fixture
def lab(namespaces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two laptops, switched off, in their own network."""
    with Lab(tmp_path_factory.mktemp("lab"), hosts=2) as lab:
        yield lab


@pytest.fixture(scope="package")
def _standing(
    namespaces: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Network, Laptops]]:
    with Lab(tmp_path_factory.mktemp("laptops"), hosts=3, rate=WIFI) as lab:
        yield lab.network, Laptops(lab.agent, 3)


@pytest.fixture
def network(_standing: tuple[Network, Laptops]) -> Network:
    """The network of the ``laptops``, every cable plugged."""
    network, _ = _standing
    for host in range(3):
        network.cable(host, plugged=True)
    return network


@pytest.fixture
def laptops(network: Network, _standing: tuple[Network, Laptops]) -> Iterator[Laptops]:
    """Three of them on good Wi-Fi, paired and idle; they stay on between tests. A run leaves no open port."""
    _, laptops = _standing
    laptops.mend()
    yield laptops
    for host, agent in enumerate(laptops.first(3)):
        if agent.process_lives and (agent.state.run is None or agent.run().over):
            listens_alone(network, host)
