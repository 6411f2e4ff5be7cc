"""Racing addresses, and pauses between calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial

import pytest

from core.link import dial
from core.link.dial import Backoff, reach
from core.net.address import Address
from core.net.tls import NOBODY_LISTENS, Streams
from core.vocabulary.errors import TandemError

reach_soon = partial(reach, head_start_s=0.001)
GOOD, BAD, MUTE = Address("192.0.2.1"), Address("192.0.2.2"), Address("192.0.2.3")


class FakeTransport:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


class FakeWriter:
    def __init__(self) -> None:
        self.transport = FakeTransport()


class Network:
    """``GOOD`` answers, ``BAD`` refuses, ``MUTE`` never answers."""

    def __init__(self) -> None:
        self.tried: list[Address] = []
        self.called_off: list[Address] = []
        self.writers: list[FakeWriter] = []
        self.mute = asyncio.Event()
        self.codes = {BAD: "unreachable"}

    async def connect(self, address: Address) -> Streams:
        self.tried.append(address)
        if address in self.codes:
            raise TandemError(code=self.codes[address], what=f"{address} refuses.")
        if address == MUTE:
            self.mute.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.called_off.append(address)
                raise
        self.writers.append(FakeWriter())
        return asyncio.StreamReader(), self.writers[-1]  # type: ignore[return-value]


@pytest.fixture
def network() -> Network:
    return Network()


async def test_the_first_address_that_answers_wins(network: Network) -> None:
    _, address = await reach_soon([BAD, GOOD], network.connect)
    assert address == GOOD


async def test_an_address_that_never_answers_does_not_hold_up_the_next(network: Network) -> None:
    _, address = await reach_soon([MUTE, GOOD], network.connect)
    assert address == GOOD
    assert network.called_off == [MUTE]


async def test_a_connection_that_comes_second_is_closed(network: Network) -> None:
    both = asyncio.Event()

    async def connect(address: Address) -> Streams:
        if len(network.tried) == 1:
            both.set()
        streams = await network.connect(address)
        await both.wait()
        return streams

    await reach_soon([GOOD, Address("192.0.2.9")], connect)
    assert len(network.writers) == 2
    assert [writer.transport.aborted for writer in network.writers].count(True) == 1


async def test_where_all_fail_the_most_telling_failure_is_raised(network: Network) -> None:
    stranger = Address("192.0.2.4")
    network.codes[stranger] = "wrong-certificate"
    with pytest.raises(TandemError) as failure:
        await reach_soon([BAD, stranger, BAD], network.connect)
    assert failure.value.code == "wrong-certificate"


async def test_a_refused_connection_is_not_hidden_by_a_stranger_at_an_earlier_address(
    network: Network,
) -> None:
    stranger = Address("192.0.2.4")
    network.codes |= {stranger: "wrong-certificate", GOOD: NOBODY_LISTENS}
    for addresses in ([stranger, GOOD, BAD], [GOOD, stranger]):
        with pytest.raises(TandemError) as failure:
            await reach_soon(addresses, network.connect)
        assert failure.value.code == NOBODY_LISTENS


async def test_a_device_without_addresses_is_reported(network: Network) -> None:
    with pytest.raises(TandemError) as failure:
        await reach_soon([], network.connect)
    assert failure.value.code == "no-address"
    assert failure.value.fix


async def test_giving_up_cancels_every_attempt(network: Network) -> None:
    attempt = asyncio.ensure_future(_reach_mute(network))
    await asyncio.wait_for(network.mute.wait(), 60)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert network.called_off == network.tried


async def test_giving_up_while_the_losers_are_cancelled_closes_every_connection(network: Network) -> None:
    called_off, hang_up = asyncio.Event(), asyncio.Event()

    async def connect(address: Address) -> Streams:
        if address == MUTE:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                called_off.set()
                await hang_up.wait()  # it answered at this very moment
        return await network.connect(GOOD)

    attempt = asyncio.ensure_future(reach_soon([MUTE, GOOD], connect))
    await asyncio.wait_for(called_off.wait(), 60)
    (won,) = network.writers
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert won.transport.aborted
    hang_up.set()
    while len(network.writers) < 2 or not network.writers[1].transport.aborted:  # noqa: ASYNC110
        await asyncio.sleep(0)


def _reach_mute(network: Network) -> Awaitable[tuple[Streams, Address]]:
    return reach_soon([MUTE, MUTE], network.connect)


async def test_no_more_than_a_few_addresses_are_tried(network: Network) -> None:
    with pytest.raises(TandemError):
        await reach_soon([BAD] * 100, network.connect)
    assert len(network.tried) == dial.MOST_ADDRESSES


def test_pauses_double_up_to_half_a_minute_and_vary_by_chance() -> None:
    backoff = Backoff()
    assert [backoff.wait_s(failures, 0.0) for failures in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert backoff.wait_s(10**6, 0.0) == 30
    assert 0.25 <= backoff.wait_s(1, 0.999) < 0.5
