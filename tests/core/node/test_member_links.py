"""Links with introduced members begin and end with what their run needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from core.home.trust import TrustStore, forget
from core.link.hub import Links
from core.node.member_links import IntroducedPeers
from core.run.introductions import FOLLOWS_S
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Finished, Outcome
from tests.core.run.lan import HandClock
from tests.core.run.test_introductions import (
    ALL,
    ANNA,
    BEN,
    CERTIFICATES,
    CLEO,
    DORA,
    FIRST,
    NEXT,
    OTHER,
    OWNER,
    WENT_ON,
    paired,
    plan_of,
    prepare,
)


class Peers:
    """Stands in for ``Links`` and the trust store; ``said``: what was sent."""

    def __init__(self) -> None:
        self.linked: dict[DeviceId, tuple[str, ...]] = {}
        self.why: list[Problem | None] = []
        self.said: list[ms.Message] = []
        self.store: TrustStore = paired("anna")
        self.pins: tuple[bytes, ...] = ()
        self.clock = HandClock()
        self.introduced = IntroducedPeers(
            CLEO,
            cast(Links, self),
            store=lambda: self.store,
            on_change=self.on_change,
            clock=self.clock,
        )

    def on_change(self) -> None:
        self.pins = self.introduced.pins

    def pair(self, certificate: bytes, *, name: str, hints: Any) -> None:
        assert certificate in self.pins, "it is let in before it is called"
        self.linked[ALL.member(_id(certificate)).device] = tuple(hints)

    def forget(self, device: DeviceId, why: Problem | None = None) -> None:
        del self.linked[device]
        self.why.append(why)

    def send(self, device: DeviceId, message: ms.Message) -> bool:
        self.said.append(message)
        return True

    async def hear(self, event: ev.Event) -> None:
        self.introduced.on_event(event)
        await asyncio.sleep(0)


def _id(certificate: bytes) -> DeviceId:
    names = {der: device for device, der in zip((ANNA, BEN, CLEO, DORA), CERTIFICATES.values(), strict=True)}
    return names[certificate]


@pytest.fixture
async def peers() -> Peers:
    peers = Peers()
    await peers.hear(ev.RunPlanned(plan=ALL))
    return peers


async def test_introduced_members_are_called_at_the_plans_addresses(peers: Peers) -> None:
    assert peers.linked == {BEN: ("10.0.0.1:27600",), DORA: ("10.0.0.3:27600",)}
    assert set(peers.pins) == {CERTIFICATES["ben"], CERTIFICATES["dora"]}


@pytest.mark.parametrize(("phase", "left_s"), [(Finished(), limits.FAREWELL_S), (WENT_ON, FOLLOWS_S)])
async def test_introduced_members_are_unlinked_some_time_after_the_run(
    peers: Peers, phase: Outcome, left_s: float
) -> None:
    await peers.hear(ev.RunPhaseChanged(run=FIRST, phase=phase))
    peers.clock.advance(left_s - 1)
    await asyncio.sleep(0)
    assert peers.linked.keys() == {BEN, DORA}
    peers.clock.advance(1)
    await asyncio.sleep(0)
    assert not peers.linked and not peers.pins
    assert {why.code for why in peers.why if why} == {"link-over"}


async def test_introduced_members_stay_linked_while_the_run_goes_on_without_its_starter(peers: Peers) -> None:
    await peers.hear(ev.RunPhaseChanged(run=FIRST, phase=WENT_ON))
    await peers.hear(ev.RunPlanned(plan=plan_of(BEN, CLEO, run=NEXT, owner=OWNER)))
    peers.clock.advance(10 * FOLLOWS_S)
    await asyncio.sleep(0)
    assert peers.linked.keys() == {BEN, DORA}


async def test_another_run_unlinks_introduced_members(peers: Peers) -> None:
    await peers.hear(ev.RunPlanned(plan=plan_of(CLEO, run=OTHER)))
    assert not peers.linked and not peers.pins


@pytest.mark.parametrize(
    ("decides", "left"),
    [
        (lambda store: paired("anna", "ben"), {BEN, DORA}),  # its link stays, for more than the run
        (lambda store: forget(paired("anna", "ben"), BEN), {DORA}),
        (lambda store: forget(store, ANNA), set()),
    ],
)
async def test_the_user_pairs_or_forgets_one_meanwhile(
    peers: Peers, decides: Callable[[TrustStore], TrustStore], left: set[DeviceId]
) -> None:
    peers.store = decides(peers.store)
    peers.introduced.update_links()
    assert peers.linked.keys() == left
    assert peers.introduced.nodes.keys() == left - {BEN}


async def test_invariant_every_message_of_a_laptop_that_is_not_paired_passes_the_gate(peers: Peers) -> None:
    for device in (BEN, DeviceId("e" * 64)):
        assert peers.introduced.refuses(device, ms.LoadAsked(question=1))
    assert not peers.introduced.refuses(BEN, ms.BusyTold(busy=True))
    assert peers.introduced.refuses(DeviceId("e" * 64), ms.BusyTold(busy=True)), "no longer introduced"
    assert not peers.introduced.refuses(ANNA, ms.LoadAsked(question=1)), "paired"
    peers.store = forget(peers.store, ANNA)
    assert peers.introduced.refuses(ANNA, ms.LoadAsked(question=1)), "at once"


async def test_a_refused_request_is_answered(peers: Peers) -> None:
    assert peers.introduced.refuses(BEN, prepare(plan_of(BEN, CLEO, run=OTHER)))
    (declined,) = peers.said
    assert isinstance(declined, ms.Declined) and declined.run == OTHER
    assert declined.problem.code == "not-paired"


async def test_the_log_names_each_kind_of_message_once(
    peers: Peers, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(1000):
        peers.introduced.refuses(BEN, ms.LoadAsked(question=1))
    assert [record.message for record in caplog.records] == [
        f"LoadAsked of {BEN[:8]} is refused: it is not paired"
    ]


async def test_a_closed_node_links_with_nobody(peers: Peers) -> None:
    peers.introduced.close()
    await peers.hear(ev.RunPlanned(plan=plan_of(CLEO, run=OTHER)))
    assert peers.linked, "its links end with the node"
    assert not peers.clock.waiting
