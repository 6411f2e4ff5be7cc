"""Files over real connections: complete, resumed, refused, cancelled."""

from __future__ import annotations

import asyncio
import io
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from core.net.tls_stream import TlsStream
from core.project.chunks import chunks, packed
from core.project.light_receipts import AnyReceipt, ListingReceipt
from core.project.receipt import PIECE_BYTES, FilePiece, Receipt
from core.project.send import NOT_OFFERED, Extent, ListingReader, ManifestReader, NotYet
from core.project.store import ProjectStore
from core.session.interface import ConnectionPair
from core.session.state import Message
from core.transfer import connections, lane
from core.transfer.fetch import Fetch
from core.transfer.machine import WINDOW
from core.transfer.offer import OfferedFiles
from core.transfer.words import BLOCK_BYTES, Ask
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import Listing, listing_of
from tests.core.project.making import content, manifest_for, pieces, write
from tests.core.transfer.nodes import GONE, Node, two_nodes

LIMIT_S = 60
TakePiece = Callable[[FilePiece], None]
FILES = {
    "train.py": b"print(1)",
    "data/large.bin": random.Random(0).randbytes(5 * PIECE_BYTES + 7),
    "data/empty": b"",
    **{f"small/{number:03d}": bytes([number]) * 100 for number in range(200)},
}
MANIFEST = manifest_for(FILES)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source", dict(FILES))


def receipt(folder: Path) -> Receipt:
    return Receipt(MANIFEST, folder / "parts", folder / "place")


async def fetch(node: Node, other: Node, receipt: AnyReceipt) -> None:
    async with asyncio.timeout(LIMIT_S):
        await node.transfers.fetch(other.device, receipt)


async def test_files_come_whole_whichever_side_asks_first(tmp_path: Path, source: Path) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        for here, there in ((anna, ben), (ben, anna)):
            come = receipt(tmp_path / here.name)
            fetching = asyncio.ensure_future(fetch(here, there, come))
            await asyncio.sleep(0)
            there.transfers.offer(here.device, OfferedFiles(ManifestReader(source, MANIFEST)))
            await fetching
            assert content(come.finish()) == FILES


async def test_files_go_both_ways_at_once(tmp_path: Path, source: Path) -> None:
    both = threading.Barrier(2)

    def takes_with_the_other(come: Receipt) -> TakePiece:
        taking, parts = come.take, itertools.count()

        def take(piece: FilePiece) -> None:
            if next(parts) == 0:
                both.wait(LIMIT_S)  # until files go the other way, too
            taking(piece)

        return take

    async with two_nodes(tmp_path) as (anna, ben):
        fetching, coming = [], []
        for here, there in ((anna, ben), (ben, anna)):
            there.transfers.offer(here.device, OfferedFiles(ManifestReader(source, MANIFEST)))
            come = receipt(tmp_path / f"at-{here.name}")
            come.take = takes_with_the_other(come)  # type: ignore[method-assign, assignment]
            fetching.append(fetch(here, there, come))
            coming.append(come)
        await asyncio.gather(*fetching)
        assert [content(come.finish()) for come in coming] == [FILES, FILES]


async def test_a_transfer_beside_a_training_rests_after_each_block(tmp_path: Path, source: Path) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        come, since_s = receipt(tmp_path), time.monotonic()
        ben.transfers.offer(anna.device, OfferedFiles(ManifestReader(source, MANIFEST), yields=True))
        await fetch(anna, ben, come)
        assert content(come.finish()) == FILES
        # The last block has arrived before its rest.
        assert time.monotonic() - since_s >= 5 * lane.RESTS * lane.LEAST_BLOCK_S


async def test_a_later_request_does_not_wait_for_the_pause_after_a_block(
    tmp_path: Path, source: Path
) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        first, second = receipt(tmp_path / "first"), receipt(tmp_path / "second")
        withdraw = ben.transfers.offer(
            anna.device, OfferedFiles(ManifestReader(source, MANIFEST), yields=True)
        )
        loop, taking, some = asyncio.get_running_loop(), first.take, asyncio.Event()

        def take(piece: FilePiece) -> None:
            taking(piece)
            ben.transfers._lanes[anna.device]._block_s = 1e6  # it rests for days
            loop.call_soon_threadsafe(some.set)

        first.take = take  # type: ignore[method-assign]
        fetching = asyncio.ensure_future(fetch(anna, ben, first))
        await some.wait()
        fetching.cancel()
        withdraw()
        ben.transfers.offer(anna.device, OfferedFiles(ManifestReader(source, MANIFEST)))
        await fetch(anna, ben, second)
        assert content(second.finish()) == FILES


@pytest.mark.parametrize("caller", [0, 1])
async def test_it_is_enough_that_one_side_can_call(tmp_path: Path, source: Path, caller: int) -> None:
    async with two_nodes(tmp_path) as nodes:
        deaf = nodes[1 - caller]
        nodes[1 - caller].knows(nodes[caller], address=deaf.address)  # its own port: not the other's
        anna, ben = nodes
        come = receipt(tmp_path)
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, MANIFEST)))
        await fetch(ben, anna, come)
        assert content(come.finish()) == FILES


async def test_once_the_link_works_again_files_do_not_wait_for_a_call_that_began_before(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    come, dial, hangs, is_over = receipt(tmp_path), connections.dial, threading.Event(), threading.Event()

    def call(*wanted: Any) -> TlsStream:
        if ben.identity.cert_der in wanted:
            raise ConnectionError("only Ben calls")
        if not hangs.is_set():
            hangs.set()
            is_over.wait()
            raise ConnectionError("nobody answers")
        return dial(*wanted)

    monkeypatch.setattr(connections, "dial", call)
    async with two_nodes(tmp_path) as (anna, ben):
        try:
            anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, MANIFEST)))
            fetching = asyncio.ensure_future(fetch(ben, anna, come))
            await asyncio.to_thread(hangs.wait)
            ben.transfers.reached(anna.device)
            await fetching
        finally:
            is_over.set()
        assert content(come.finish()) == FILES


async def test_a_cancelled_fetch_is_continued_later(tmp_path: Path, source: Path) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, MANIFEST)))
        come, some = receipt(tmp_path), asyncio.Event()
        loop, taking = asyncio.get_running_loop(), come.take
        come.take = lambda piece: (taking(piece), loop.call_soon_threadsafe(some.set))[0]  # type: ignore[method-assign]
        fetching = asyncio.ensure_future(fetch(ben, anna, come))
        await some.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        again = receipt(tmp_path)
        assert 0 < again.received_bytes == come.received_bytes
        taken, taking_again = list[int](), again.take
        again.take = lambda piece: (taken.append(len(piece.data)), taking_again(piece))[1]  # type: ignore[method-assign,func-returns-value]
        await fetch(ben, anna, again)
        assert sum(taken) == MANIFEST.total_bytes - come.received_bytes
        assert content(again.finish()) == FILES


async def test_a_cancelled_fetch_stops_reading_earlier_parts(tmp_path: Path, source: Path) -> None:
    before = receipt(tmp_path)
    before.take(next(pieces(source, MANIFEST, before.wanted)))
    come, called_off = receipt(tmp_path), threading.Event()
    loop, taking, some = asyncio.get_running_loop(), come.take, asyncio.Event()
    had_bytes = come.received_bytes

    def take(piece: FilePiece) -> None:
        loop.call_soon_threadsafe(some.set)
        called_off.wait(LIMIT_S)
        taking(piece)

    come.take = take  # type: ignore[method-assign]
    async with two_nodes(tmp_path) as (anna, ben):
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, MANIFEST)))
        fetching = asyncio.ensure_future(fetch(ben, anna, come))
        await some.wait()
        fetching.cancel()
        await asyncio.sleep(0)
        called_off.set()
        with pytest.raises(asyncio.CancelledError):
            await fetching
    assert come.received_bytes == had_bytes > 0


async def test_a_file_that_changed_is_refused_and_named_on_both_sides(tmp_path: Path, source: Path) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        (source / "data/large.bin").write_bytes(b"x" * len(FILES["data/large.bin"]))
        failed = asyncio.get_running_loop().create_future()
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, MANIFEST), failed.set_result))
        with pytest.raises(TandemError, match=r"large\.bin changed"):
            await fetch(ben, anna, receipt(tmp_path))
        assert (await failed).code == "project-changed"


@pytest.mark.parametrize("data", [b"x" * PIECE_BYTES, b"x", b"x" * (PIECE_BYTES - 1)], ids=len)
async def test_other_bytes_and_other_sizes_are_refused(tmp_path: Path, data: bytes) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        lane, offer = anna.transfers._lane(ben.device), OfferedFiles(ManifestReader(tmp_path, MANIFEST))
        assert lane is not None
        offer.read = lambda extents: data  # type: ignore[method-assign]
        lane.offer(offer)
        come = receipt(tmp_path)
        with pytest.raises(TandemError) as refused:
            await fetch(ben, anna, come)
        assert refused.value.code == "transfer-broken"
        assert not (tmp_path / "place").exists()


async def test_a_list_of_many_files_comes_as_a_file(tmp_path: Path) -> None:
    manifest = manifest_for({"train.py": b"1", **{f"{'x' * 80}{n}": b"2" for n in range(20_000)}})
    listing = listing_of(manifest)
    assert listing is not None and listing.size > 3 * PIECE_BYTES
    async with two_nodes(tmp_path) as (anna, ben):
        anna.transfers.offer(ben.device, OfferedFiles(ListingReader(manifest, listing)))
        come = ListingReceipt(listing)
        await fetch(ben, anna, come)
        assert come.finish() == manifest


async def test_a_link_that_ends_ends_the_fetch(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        fetching = asyncio.ensure_future(fetch(ben, anna, receipt(tmp_path)))
        await asyncio.sleep(0.1)
        ben.transfers.ended(anna.device, GONE)
        with pytest.raises(TandemError) as ended:
            await fetching
        assert ended.value.problem == GONE


async def test_an_offer_to_a_lane_that_has_just_ended_leaves_no_file_open(
    tmp_path: Path, source: Path
) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        ended, closed = anna.transfers._lane(ben.device), threading.Event()
        assert ended is not None
        anna.transfers.ended(ben.device, GONE)
        offer = OfferedFiles(ManifestReader(source, MANIFEST))
        closing = offer.close

        def close() -> None:
            closing()
            closed.set()

        offer.close = close  # type: ignore[method-assign]
        ended.offer(offer)
        assert await asyncio.to_thread(closed.wait, LIMIT_S)
        assert offer.withdrawn.is_set()


async def test_without_a_link_nothing_is_fetched(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        ben.peers.clear()
        with pytest.raises(TandemError, match="link"):
            await fetch(ben, anna, receipt(tmp_path))


async def test_a_caller_that_is_not_paired_or_of_another_link_is_refused(
    tmp_path: Path, source: Path
) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        anna.knows(ben, key=b"another")
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, MANIFEST)))
        come = receipt(tmp_path)
        fetching = asyncio.ensure_future(fetch(ben, anna, come))
        await asyncio.sleep(0.5)
        assert not fetching.done() and come.received_bytes == 0
        anna.peers.clear()
        await asyncio.sleep(0.5)
        assert not fetching.done() and come.received_bytes == 0
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching


class Changed:
    """A version of ``FILES`` with a large file, which the other side has, and the next version."""

    before = random.Random(1).randbytes(20 * PIECE_BYTES)
    middle = len(before) // 2
    now = before[:middle] + random.Random(2).randbytes(len(before) // 100) + before[middle:]
    old = manifest_for({"train.py": b"1", "data.bin": before})
    new = manifest_for({"train.py": b"1", "data.bin": now})

    @classmethod
    def receipt(cls, folder: Path) -> Receipt:
        """The receipt in a place that has the old version."""
        store = ProjectStore(folder / "projects")
        came = store.receive(cls.old)
        if not store.has(cls.old.digest):
            source = write(folder / "old", {"train.py": b"1", "data.bin": cls.before})
            for piece in pieces(source, cls.old, came.wanted):
                came.take(piece)
            store.add(came)
        return store.receive(cls.new)


async def test_only_the_new_parts_of_a_changed_file_are_sent(tmp_path: Path) -> None:
    source = write(tmp_path / "new", {"train.py": b"1", "data.bin": Changed.now})
    come, travelled = Changed.receipt(tmp_path), list[int]()
    taking = come.take
    come.take = lambda piece: (travelled.append(len(piece.data)), taking(piece))[1]  # type: ignore[method-assign,func-returns-value]
    async with two_nodes(tmp_path) as (anna, ben):
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, Changed.new)))
        await fetch(ben, anna, come)
    assert come.received_bytes == Changed.new.total_bytes
    assert content(come.finish())["data.bin"] == Changed.now
    assert len(Changed.now) * 0.0099 < sum(travelled) < len(Changed.now) * 0.02


@pytest.mark.parametrize(("size", "most"), [(14_286, 0.02), (1_000, 0.14)])
async def test_the_list_of_many_files_and_the_changed_ones_are_sent(
    tmp_path: Path, size: int, most: float
) -> None:
    """Of 700 files, 1 % change wholly. The list takes some 100 bytes a file, however small: 2 % suffice where
    files have 11 kB on average."""
    drawn = random.Random(5)
    before = {"train.py": b"1", **{f"photos/cats/{n:05}.jpg": drawn.randbytes(size) for n in range(700)}}
    now = before | {f"photos/cats/{n:05}.jpg": drawn.randbytes(size) for n in range(0, 700, 100)}
    store, (old, new) = ProjectStore(tmp_path / "projects"), map(manifest_for, (before, now))
    had = store.receive(old)
    for piece in pieces(write(tmp_path / "old", dict(before)), old, had.wanted):
        had.take(piece)
    store.add(had)
    listing = Listing(digest=new.digest, size=len(new.listing()))
    travelled = 0
    async with two_nodes(tmp_path) as (anna, ben):
        lane = ben.transfers._lane(anna.device)
        assert lane is not None
        reading = lane._session._read_some

        def read_some(pair: ConnectionPair, into: memoryview) -> int:
            nonlocal travelled
            got = reading(pair, into)
            travelled += got
            return got

        lane._session._read_some = read_some  # type: ignore[method-assign]
        withdraw = anna.transfers.offer(ben.device, OfferedFiles(ListingReader(new, listing)))
        listed = ListingReceipt(listing)
        await fetch(ben, anna, listed)
        withdraw()
        source = write(tmp_path / "new", dict(now))
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, new)))
        come = store.receive(listed.finish())
        await fetch(ben, anna, come)
    assert content(come.finish()) == now
    print(f"{travelled / new.total_bytes:.2%} of {new.total_bytes} travelled; list: {listing.size}")
    assert 7 * size + listing.size < travelled < most * new.total_bytes


def test_a_file_whose_copying_was_stopped_is_continued(tmp_path: Path) -> None:
    come = Changed.receipt(tmp_path)
    (number,) = come.uncompared

    def check() -> None:
        if come.received_bytes > 4 * PIECE_BYTES:
            raise TandemError.of(GONE)

    come.watch(check)
    outline = memoryview(packed(chunks(io.BytesIO(Changed.now), len(Changed.now))))
    with pytest.raises(TandemError, match=GONE.what):
        come.compare(number, lambda: outline)
    assert come.received_bytes < 5 * PIECE_BYTES
    come.watch(lambda: None)
    for file, begin, end in list(come.ranges):
        for at in range(begin, end, PIECE_BYTES):
            data = Changed.now[at : min(end, at + PIECE_BYTES)]
            come.take(FilePiece(file=file, offset=at, data=data))
    assert content(come.finish())["data.bin"] == Changed.now


async def test_a_second_cancellation_ends_no_fetch_before_its_last_write(
    tmp_path: Path, source: Path
) -> None:
    come, cancelled, ended = receipt(tmp_path), threading.Event(), threading.Event()
    loop, taking, some = asyncio.get_running_loop(), come.take, asyncio.Event()

    def take(piece: FilePiece) -> None:
        loop.call_soon_threadsafe(some.set)
        cancelled.wait(LIMIT_S)
        taking(piece)
        ended.set()

    come.take = take  # type: ignore[method-assign]
    async with two_nodes(tmp_path) as (anna, ben):
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(source, MANIFEST)))
        fetching = asyncio.ensure_future(fetch(ben, anna, come))
        await some.wait()
        for _ in range(2):
            fetching.cancel()
            await asyncio.sleep(0.05)
        assert not fetching.done()
        cancelled.set()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        assert ended.is_set()


async def test_an_outline_that_is_not_the_files_brings_nothing_into_place(tmp_path: Path) -> None:
    come = Changed.receipt(tmp_path)
    async with two_nodes(tmp_path) as (anna, ben):
        source = write(tmp_path / "new", {"train.py": b"1", "data.bin": Changed.now})
        offer = OfferedFiles(ManifestReader(source, Changed.new))
        old = io.BytesIO(Changed.before + bytes(len(Changed.now) - len(Changed.before)))
        lie = packed(chunks(old, len(Changed.now)))
        offer.outline = lambda file: lie  # type: ignore[method-assign]
        anna.transfers.offer(ben.device, offer)
        with pytest.raises(TandemError, match="another content") as refused:
            await fetch(ben, anna, come)
    assert refused.value.code == "transfer-broken"
    assert come.received_bytes <= 1


async def test_a_file_without_an_outline_comes_whole(tmp_path: Path) -> None:
    source = write(tmp_path / "new", {"train.py": b"1", "data.bin": Changed.now})
    come = Changed.receipt(tmp_path)
    async with two_nodes(tmp_path) as (anna, ben):
        reader = ManifestReader(source, Changed.new)
        reader.outline = lambda number: bytes(BLOCK_BYTES + 1)  # type: ignore[method-assign]
        anna.transfers.offer(ben.device, OfferedFiles(reader))
        await fetch(ben, anna, come)
    assert content(come.finish())["data.bin"] == Changed.now


async def test_a_slow_disk_is_sent_no_more_than_it_asks_for(tmp_path: Path) -> None:
    data = random.Random(3).randbytes(3 * WINDOW * PIECE_BYTES)
    manifest = manifest_for({"train.py": data})
    source = write(tmp_path / "source", {"train.py": data})
    come = Receipt(manifest, tmp_path / "parts", tmp_path / "place")
    offer = OfferedFiles(ManifestReader(source, manifest))
    sent, taken, ahead = 0, 0, list[int]()
    reading, taking = offer.read, come.take

    def read(extents: Iterable[Extent]) -> bytes:
        nonlocal sent
        sent += 1
        ahead.append(sent - taken)
        if sent == WINDOW:
            full.set()
        return reading(extents)

    def take(piece: FilePiece) -> None:
        nonlocal taken
        if not taken:
            slow.wait(LIMIT_S)  # until everything requested has arrived, and waits for the disk
        taking(piece)
        taken += 1

    slow, full = threading.Event(), threading.Event()
    offer.read = read  # type: ignore[method-assign]
    come.take = take  # type: ignore[method-assign]
    async with two_nodes(tmp_path) as (anna, ben):
        anna.transfers.offer(ben.device, offer)
        fetching = asyncio.ensure_future(fetch(ben, anna, come))
        assert await asyncio.to_thread(full.wait, LIMIT_S)
        await asyncio.sleep(0.2)
        assert sent == WINDOW
        # Nothing else waits for that disk.
        write(tmp_path / "other", dict(FILES))
        anna.transfers.offer(ben.device, OfferedFiles(ManifestReader(tmp_path / "other", MANIFEST)))
        other = receipt(tmp_path / "at-ben")
        await fetch(ben, anna, other)
        assert content(other.finish()) == FILES and not fetching.done()
        slow.set()
        await fetching
    assert content(come.finish())["train.py"] == data
    assert max(ahead) <= WINDOW + 1


@pytest.mark.parametrize("withdrawn", [False, True])
async def test_for_a_peer_that_does_not_read_only_so_much_is_read_ahead(
    tmp_path: Path, withdrawn: bool
) -> None:
    data = random.Random(3).randbytes(4 * WINDOW * PIECE_BYTES)
    manifest = manifest_for({"train.py": data})
    offer = OfferedFiles(ManifestReader(write(tmp_path / "source", {"train.py": data}), manifest))
    read, reading, closing, closed = threading.Semaphore(0), offer.read, offer.close, threading.Event()
    reads = 0

    def close() -> None:
        closing()
        closed.set()

    def reads_one(extents: Iterable[Extent]) -> bytes:
        nonlocal reads
        reads += 1
        read.release()
        return reading(extents)

    offer.read, offer.close = reads_one, close  # type: ignore[method-assign]
    small = {"train.py": b"print(1)"}
    other = OfferedFiles(ManifestReader(write(tmp_path / "other", dict(small)), manifest_for(small)))
    others_end = threading.Event()
    other.close = others_end.set  # type: ignore[method-assign]
    async with two_nodes(tmp_path) as (anna, ben):
        withdraw = anna.transfers.offer(ben.device, offer)
        deaf, reads_on = ben.transfers._lane(anna.device), threading.Event()
        assert deaf is not None
        hearing = deaf.announced

        def announced(about: bytes, size: int, is_live: Callable[[], bool]) -> memoryview:
            reads_on.wait(LIMIT_S)
            return hearing(about, size, is_live)

        deaf.announced = announced  # type: ignore[method-assign]
        come = Receipt(manifest, tmp_path / "parts", tmp_path / "place")
        asking = Fetch(deaf, come, lambda: None)
        deaf._fetches = dict.fromkeys(range(4 * WINDOW), asking)
        for number in range(4 * WINDOW):
            extent = Extent(0, number * PIECE_BYTES, PIECE_BYTES)
            deaf._session.put(Message(lane._about(Ask(number, manifest.digest, (extent,)))))
            deaf._session.push()
        for _ in range(2 * WINDOW):
            assert await asyncio.to_thread(read.acquire, timeout=LIMIT_S)
        await asyncio.sleep(0.3)
        assert reads <= 2 * WINDOW + 1
        if withdrawn:
            withdraw()
            assert await asyncio.to_thread(closed.wait, LIMIT_S)
        anna.transfers.offer(ben.device, other)()
        assert await asyncio.to_thread(others_end.wait, LIMIT_S), "no other files stay open meanwhile"
        reads_on.set()
        came = [await asyncio.to_thread(asking._came.get, timeout=LIMIT_S) for _ in range(4 * WINDOW)]
        blocks = [each for each in came if isinstance(each, tuple)]
        assert len(blocks) == (reads if withdrawn else 4 * WINDOW)
        assert b"".join(part for _, part in blocks) == data[: len(blocks) * PIECE_BYTES]


async def test_requests_for_what_is_not_here_yet_wait_in_their_order(tmp_path: Path) -> None:
    data = random.Random(4).randbytes(3 * WINDOW * PIECE_BYTES)
    manifest = manifest_for({"train.py": data})
    reader = ManifestReader(write(tmp_path / "source", {"train.py": data}), manifest)
    offer, reading, here, early = OfferedFiles(reader), reader.read, 0, asyncio.Event()
    loop = asyncio.get_running_loop()

    def read(extents: Iterable[Extent]) -> bytes:
        extents = tuple(extents)
        if extents[-1].offset + extents[-1].length > here:
            loop.call_soon_threadsafe(early.set)
            raise NotYet
        return reading(extents)

    reader.read = read  # type: ignore[method-assign]
    come = Receipt(manifest, tmp_path / "parts", tmp_path / "place")
    async with two_nodes(tmp_path) as (anna, ben):
        anna.transfers.offer(ben.device, offer)
        fetching = asyncio.ensure_future(fetch(ben, anna, come))
        await early.wait()
        while here < len(data):
            here += PIECE_BYTES // 2
            offer.on_more()
            await asyncio.sleep(0)
        await fetching
    assert content(come.finish())["train.py"] == data


async def test_a_request_that_waits_is_refused_when_the_offer_ends(tmp_path: Path, source: Path) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        reader, asked = ManifestReader(source, MANIFEST), asyncio.Event()
        loop = asyncio.get_running_loop()

        def read(extents: Iterable[Extent]) -> bytes:
            loop.call_soon_threadsafe(asked.set)
            raise NotYet

        reader.read = read  # type: ignore[method-assign]
        withdraw = anna.transfers.offer(ben.device, OfferedFiles(reader))
        fetching = asyncio.ensure_future(fetch(ben, anna, receipt(tmp_path)))
        await asked.wait()
        withdraw()
        with pytest.raises(TandemError) as refused:
            await fetching
        assert refused.value.code == NOT_OFFERED.code


async def test_a_sender_that_is_silent_for_too_long_is_given_up(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (anna, ben):
        with pytest.raises(TandemError) as silent:
            await ben.transfers.fetch(anna.device, receipt(tmp_path), silent_s=0.1)
        assert silent.value.code == "transfer-silent"
