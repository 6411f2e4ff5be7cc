"""What ends a lane, and what a broken connection costs: between two real nodes, over real connections."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from core.project.receipt import Receipt
from core.project.send import Extent, ManifestReader
from core.session import frames
from core.session.interface import ConnectionPair
from core.session.state import Message
from core.transfer.lane import MOST_ASKS, Lane, _about
from core.transfer.offer import OfferedFiles
from core.transfer.words import BLOCK_BYTES, Ask, Here
from core.vocabulary.errors import TandemError
from tests.core.project.making import content, manifest_for, write
from tests.core.transfer.nodes import Node, two_nodes

LIMIT_S = 60
SMALL = {"train.py": b"print(1)"}
MANIFEST = manifest_for(SMALL)


def filled(about: Ask | Here, size: int) -> Message:
    return Message(_about(about), size, lambda begin, end: bytes(end - begin))


def ask(number: int, blocks: int = 1) -> Ask:
    return Ask(number, MANIFEST.digest, (Extent(0, 0, BLOCK_BYTES),) * blocks)


def lane_of(node: Node, other: Node) -> tuple[Lane, threading.Semaphore]:
    """The semaphore is released for each message that has arrived."""
    lane, came = node.transfers._lane(other.device), threading.Semaphore(0)
    assert lane is not None
    arriving = lane.arrived

    def arrived() -> None:
        arriving()
        came.release()

    lane.arrived = arrived  # type: ignore[method-assign]
    return lane, came


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([filled(Here(99), 1)], "an answer to request 99, which was never sent"),
        ([filled(Here(0), BLOCK_BYTES + 1)], f"a block of {BLOCK_BYTES + 1} bytes"),
        ([filled(ask(number), 0) for number in range(1, MOST_ASKS + 1)], "too much was requested"),
        ([filled(ask(1, blocks=2), 0)], "too much was requested"),
        ([filled(ask(1), 5)], "5 bytes with a Ask"),
    ],
    ids=["unasked", "large-block", "many-requests", "large-request", "bytes-with-request"],
)
async def test_a_peer_that_keeps_to_no_limit_ends_the_lane_on_both_sides(
    tmp_path: Path, messages: list[Message], reason: str
) -> None:
    """All messages but the last one are within the limits. Each side also fetches, and asks once."""
    async with two_nodes(tmp_path) as (anna, ben):
        (hostile, asked), (lane, came) = lane_of(anna, ben), lane_of(ben, anna)
        offer = OfferedFiles(ManifestReader(write(tmp_path / "source", dict(SMALL)), MANIFEST))
        offer.read = lambda extents: (offer.withdrawn.wait(LIMIT_S), b"")[1]  # type: ignore[method-assign]
        ben.transfers.offer(anna.device, offer)
        fetching = []
        for here, there in ((anna, ben), (ben, anna)):
            receipt = Receipt(MANIFEST, tmp_path / here.name / "parts", tmp_path / here.name / "place")
            fetching.append(asyncio.ensure_future(here.transfers.fetch(there.device, receipt)))
        for waiting in (came, asked):
            assert await asyncio.to_thread(waiting.acquire, timeout=LIMIT_S)
        *before, last = messages
        for message in before:
            hostile._session.put(message)
            hostile._session.wake()
            assert await asyncio.to_thread(came.acquire, timeout=LIMIT_S)
        assert not any([lane.is_over, hostile.is_over])
        hostile._session.put(last)
        hostile._session.wake()
        async with asyncio.timeout(LIMIT_S):
            ended = await asyncio.gather(*fetching, return_exceptions=True)
        problems = [error.problem for error in ended if isinstance(error, TandemError)]
        assert [problem.code for problem in problems] == ["transfer-broken"] * 2
        assert problems[1].detail == reason, "the goodbye has no details"
        assert all([lane.is_over, hostile.is_over])
        assert not list(tmp_path.glob("*/place"))


CUTS = 10
LARGE = {"train.py": b"print(1)", "data.bin": random.Random(0).randbytes(12 * BLOCK_BYTES + 7)}


async def test_each_of_ten_broken_connections_repeats_at_most_one_piece(
    tmp_path: Path,
) -> None:
    """Each is reset after a random byte, with everything that the receiver has not read by then."""
    manifest = manifest_for(LARGE)
    moments = sorted(random.Random(1).sample(range(1, manifest.total_bytes - BLOCK_BYTES), CUTS))
    received, was_live, broken = 0, list[bool](), list[ConnectionPair]()
    async with two_nodes(tmp_path) as (anna, ben):
        lane, _ = lane_of(ben, anna)
        session = lane._session
        reading: Callable[[ConnectionPair, memoryview], int] = session._read_some

        def read_some(pair: ConnectionPair, into: memoryview) -> int:
            nonlocal received
            due = moments[len(broken)] if len(broken) < CUTS else None
            got = reading(pair, into if due is None else into[: due - received])
            received += got
            if received == due:
                with session.locked() as machine:
                    was_live.append(machine.live is pair)
                broken.append(pair)
                pair.receiving.wake()
                pair.sending.wake()
                raise ConnectionResetError
            return got

        session._read_some = read_some  # type: ignore[method-assign]
        anna.transfers.offer(
            ben.device, OfferedFiles(ManifestReader(write(tmp_path / "at", dict(LARGE)), manifest))
        )
        receipt = Receipt(manifest, tmp_path / "parts", tmp_path / "place")
        async with asyncio.timeout(LIMIT_S):
            await ben.transfers.fetch(anna.device, receipt)
    assert content(receipt.finish()) == LARGE
    assert was_live == [True] * CUTS and len(set(map(id, broken))) == CUTS
    words = 100 * (manifest.total_bytes // frames.PIECE_BYTES + 2 * CUTS)
    assert 0 < received - manifest.total_bytes < CUTS * frames.PIECE_BYTES + words
