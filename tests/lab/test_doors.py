"""Doors that strangers blocked: the port, by taking every place, and the list of laptops, by filling it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from core.discovery.sources import PER_SOURCE
from core.net.strangers import AT_ONCE
from core.vocabulary import events as ev
from core.vocabulary.state import State
from tests.lab.agent import Agent
from tests.lab.doors import Attack
from tests.lab.lab import Lab, is_linked, linked, pair

pytestmark = [pytest.mark.lab, pytest.mark.timed, pytest.mark.timeout(600)]

ANNA, BEN, CLEO, STRANGER = range(4)
NODE_PORT = 27600
SHOWN_S = 5.0
LINKED_S = 5.0
GONE_S = 180.0
FAKES = 5000


@pytest.fixture(scope="module")
def street(namespaces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("street"), hosts=4) as lab:
        yield lab


@pytest.fixture(scope="module")
def anna(street: Lab) -> Agent:
    return street.agent(ANNA)


def test_a_paired_laptop_is_back_within_seconds_while_strangers_hold_every_place(
    street: Lab, anna: Agent
) -> None:
    network = street.network
    ben = street.agent(BEN)
    pair(anna, ben, network.address(BEN))
    linked(anna, ben)
    ben.end()
    sources = [f"10.77.0.{100 + number}" for number in range(5)]
    for source in sources:
        network.do(STRANGER, "ip", "address", "add", f"{source}/24", "dev", "eth0")
    # Nobody reaches ben's port, as behind a firewall: only his own call can restore the link.
    network.do(BEN, "ip", "rule", "add", "pref", "1", "lookup", "local")
    network.do(BEN, "ip", "rule", "del", "pref", "0")
    calls = ("iif", "eth0", "ipproto", "tcp", "dport", str(NODE_PORT))
    network.do(BEN, "ip", "rule", "add", "pref", "0", *calls, "blackhole")
    order = ("places", network.address(ANNA), str(NODE_PORT), *sources)
    with Attack(network, STRANGER, *order) as attack:
        time.sleep(6.0)  # every place has changed hands once
        ben = street.agent(BEN)
        began_s = time.monotonic()
        ben.until(lambda state: is_linked(state, anna.device), "connect with anna")
        took_s = time.monotonic() - began_s
    print(f"linked after {took_s:.1f} s; {attack.report}")
    assert attack.report["turned_away"] > 0 and attack.report["held"] >= AT_ONCE, attack.report
    assert took_s < LINKED_S, took_s
    log = (anna.home.logs / "tandem.log").read_text()
    assert all(f"refused a connection from {source}: " in log for source in sources)


def test_a_new_laptop_shows_within_seconds_under_a_flood_and_what_it_left_is_gone(
    street: Lab, anna: Agent
) -> None:
    def fakes(state: State) -> int:
        return sum(device.name.startswith("fake ") for device in state.devices.values())

    network = street.network
    with Attack(network, STRANGER, "flood", str(FAKES), network.address(STRANGER)) as attack:
        anna.until(lambda state: fakes(state) >= PER_SOURCE, "be full of what one source may announce")
        since, cleo = len(anna.told), street.agent(CLEO)
        ready_s = time.monotonic()
        seen = anna.hears(ev.DeviceFound, lambda event: event.device == cleo.device, since=since)
        shown_s = max(0.0, seen.at_s - ready_s)
        assert fakes(anna.state) <= PER_SOURCE
    ended_s = time.monotonic()
    anna.until(lambda state: not fakes(state), "forget who does not answer", limit_s=GONE_S)
    gone_s = time.monotonic() - ended_s
    print(
        f"shown {shown_s:.1f} s after it was ready, the last fake gone after {gone_s:.0f} s; {attack.report}"
    )
    assert attack.report["sent"] >= FAKES
    assert shown_s < SHOWN_S, shown_s
    device = anna.state.devices[cleo.device]
    assert device.seen, "and who answers stays"
