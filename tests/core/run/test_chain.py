"""A member passes a run's files on to the next one: over real connections, and in runs in memory."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from core.home.home import Home
from core.project.light_receipts import AnyReceipt
from core.project.receipt import PIECE_BYTES, Receipt
from core.project.send import NOT_OFFERED, Extent, ManifestReader
from core.run.context import RunLimits, context_of
from core.run.participant.state import PiecesCame
from core.run.transfer import Delivery
from core.transfer.machine import WINDOW
from core.transfer.offer import OfferedFiles
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.phases import Training
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.state import State
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.project.making import content, manifest_for, pieces, write
from tests.core.run.lan import Lan, LanNode
from tests.core.transfer.nodes import GONE, Node, linked_nodes

LIMIT_S = 60
FILES = {
    "data/large.bin": random.Random(0).randbytes(2 * WINDOW * PIECE_BYTES + 7),
    "data/empty": b"",
    **{f"small/{number:03d}": bytes([number]) * 100 for number in range(200)},
    "train.py": b"print(1)",
}
MANIFEST = manifest_for(FILES)


class Laptop:
    """One member's files of the run. ``coming``: what has arrived, each time that this is reported."""

    def __init__(self, node: Node, folder: Path, plan: Plan, silent_s: float) -> None:
        self.node, self.device = node, node.device
        home = Home(folder / node.name)
        home.runs.mkdir(parents=True, exist_ok=True)
        self.context = context_of(
            home,
            node.device,
            State,
            Mock(),
            Mock(),
            node.transfers,
            Mock(),
            lambda name, error: None,
            limits=RunLimits(giver_silent_s=silent_s),
        )
        self.plan = plan
        self.some = threading.Event()
        """Something has come."""

    async def begins(self) -> None:
        self.delivery = Delivery(self.context, Prepare(plan=self.plan, manifest=MANIFEST))
        assert await self.context.files.do(self.delivery.begin) == MANIFEST.total_bytes
        self.had_bytes = sum(each.received_bytes for each in self.delivery._receipts)

    async def fetches(self, giver: DeviceId) -> None:
        def came(told: PiecesCame) -> None:
            if told.done > self.had_bytes:
                self.some.set()

        async with asyncio.timeout(LIMIT_S):
            await self.delivery.fetch(giver, came)
        await self.context.files.do(self.delivery.store)
        assert content(self.context.store._files(MANIFEST.digest)) == FILES


class Starter:
    """Offers the project to all. ``sent``: bytes by device."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self.device = node, node.device
        self._source = write(folder / "source", dict(FILES))
        self.sent: Counter[DeviceId] = Counter()
        self.pauses: Callable[[DeviceId], None] = lambda device: None
        """Called before each block."""

    def offers_to(self, device: DeviceId) -> None:
        offer = OfferedFiles(ManifestReader(self._source, MANIFEST))
        read = offer.read

        def counted(extents: Iterable[Extent]) -> bytes:
            self.pauses(device)
            data = read(extents)
            self.sent[device] += len(data)
            return data

        offer.read = counted  # type: ignore[method-assign]
        self.node.transfers.offer(device, offer)


@asynccontextmanager
async def chain(folder: Path, silent_s: float = LIMIT_S) -> AsyncIterator[tuple[Starter, Laptop, Laptop]]:
    """Anna starts, and offers the files to Ben and Cleo, who have begun to receive."""
    async with linked_nodes(folder, "Anna", "Ben", "Cleo") as nodes:
        plan = replace(plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest), starter=nodes[0].device)
        anna = Starter(nodes[0], folder)
        ben, cleo = (Laptop(node, folder, plan, silent_s) for node in nodes[1:])
        for each in (ben, cleo):
            anna.offers_to(each.device)
            await each.begins()
        yield anna, ben, cleo


def until_cleo_has_some(anna: Starter, ben: Laptop, cleo: Laptop) -> None:
    """Anna sends Ben only the beginning until something has reached Cleo."""

    def pause(device: DeviceId) -> None:
        if device == ben.device and anna.sent[device] > 3 * PIECE_BYTES:
            assert cleo.some.wait(LIMIT_S)

    anna.pauses = pause


@pytest.mark.real
async def test_the_third_laptop_fetches_from_the_second_as_files_arrive_there(tmp_path: Path) -> None:
    async with chain(tmp_path) as (anna, ben, cleo):
        until_cleo_has_some(anna, ben, cleo)
        fetching = asyncio.ensure_future(cleo.fetches(ben.device))
        ben.delivery.forwarding.offer_to(cleo.device)
        await ben.fetches(anna.device)
        await fetching
        assert anna.sent == {ben.device: MANIFEST.total_bytes}, "and nothing to Cleo"
        assert cleo.context.rates.get(ben.device) > 0 == cleo.context.rates.get(anna.device)
        # It passes on what it has stored, too, until the run starts.
        again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
        await cleo.node.transfers.fetch(ben.device, again)
        assert content(again.finish()) == FILES
        ben.delivery.forwarding.end()
        ben.delivery.forwarding.offer_to(cleo.device)
        with pytest.raises(TandemError):
            late = Receipt(MANIFEST, tmp_path / "late", tmp_path / "place")
            await cleo.node.transfers.fetch(ben.device, late, silent_s=0.2)


@pytest.mark.real
async def test_the_starter_sends_what_a_lost_member_has_not_forwarded(tmp_path: Path) -> None:
    async with chain(tmp_path) as (anna, ben, cleo):
        until_cleo_has_some(anna, ben, cleo)
        halves = asyncio.ensure_future(ben.fetches(anna.device))
        ben.delivery.forwarding.offer_to(cleo.device)
        fetching = asyncio.ensure_future(cleo.fetches(ben.device))
        assert await asyncio.to_thread(cleo.some.wait, LIMIT_S)
        cleo.node.transfers.ended(ben.device, GONE)
        ben.node.transfers.ended(cleo.device, GONE)
        await fetching
        await halves
        assert 0 < anna.sent[cleo.device] < MANIFEST.total_bytes


@pytest.mark.real
@pytest.mark.parametrize("wrong", ["all", "beginning"])
async def test_wrong_bytes_of_a_member_cost_time_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    async with chain(tmp_path) as (anna, ben, cleo):
        lied = list[Extent]()

        def lie(extents: Iterable[Extent]) -> bytes:
            extents = tuple(extents)
            if wrong == "beginning" and any(each.offset >= 2 * PIECE_BYTES for each in extents):
                raise TandemError.of(NOT_OFFERED)
            lied.extend(extents)
            return bytes(sum(each.length for each in extents))

        assert ben.delivery._project is not None
        monkeypatch.setattr(ben.delivery._project, "given", lie)
        ben.delivery.forwarding.offer_to(cleo.device)
        await cleo.fetches(ben.device)
        large = len(FILES["data/large.bin"])
        if wrong == "beginning":
            assert len(lied) == 2
            again = anna.sent[cleo.device] - (MANIFEST.total_bytes - 2 * PIECE_BYTES)
            assert large <= again <= large + PIECE_BYTES, "that file again, and what came with its end"
        else:
            assert sum(each.length for each in lied) >= large
            assert anna.sent[cleo.device] == MANIFEST.total_bytes


@pytest.mark.real
async def test_a_wrong_beginning_that_an_earlier_run_left_costs_time_and_nothing_else(tmp_path: Path) -> None:
    async with chain(tmp_path) as (anna, _, cleo):
        assert cleo.delivery._project is not None
        large = [file.path for file in MANIFEST.files].index("data/large.bin")
        cleo.delivery._project._part(large).write_bytes(bytes(PIECE_BYTES))
        await cleo.begins()
        assert cleo.had_bytes == PIECE_BYTES
        await cleo.fetches(anna.device)
        assert anna.sent[cleo.device] > MANIFEST.total_bytes


@pytest.mark.real
async def test_a_member_that_has_the_files_from_elsewhere_says_so_and_a_silent_one_is_given_up(
    tmp_path: Path,
) -> None:
    """Security invariant: files that were already on a disk are given to nobody."""
    async with chain(tmp_path, silent_s=0.2) as (anna, ben, cleo):
        await ben.fetches(anna.device)
        has_all = Delivery(ben.context, Prepare(plan=ben.plan, manifest=MANIFEST))
        assert await ben.context.files.do(has_all.begin) == 0
        has_all.forwarding.offer_to(cleo.device)
        asked = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
        with pytest.raises(TandemError) as refused:
            await cleo.node.transfers.fetch(ben.device, asked, silent_s=LIMIT_S)
        assert refused.value.code == NOT_OFFERED.code and not asked.received_bytes
        has_all.forwarding.end()
        await cleo.fetches(ben.device)
        assert anna.sent[cleo.device] == MANIFEST.total_bytes


@pytest.mark.real
async def test_members_with_the_previous_version_forward_what_is_new(tmp_path: Path) -> None:
    """Security invariant: nor any part of the version that it had."""
    common = FILES["data/large.bin"][: 9 * PIECE_BYTES]
    old = {**FILES, "data/large.bin": common + random.Random(1).randbytes(9)}
    async with chain(tmp_path) as (anna, ben, cleo):
        source = write(tmp_path / "old", dict(old))
        for each in (ben, cleo):
            came = each.context.store.receive(manifest_for(old))
            for piece in pieces(source, came.manifest, came.wanted):
                came.take(piece)
            each.context.store.add(came)
            await each.begins()
        until_cleo_has_some(anna, ben, cleo)
        fetching = asyncio.ensure_future(cleo.fetches(ben.device))
        ben.delivery.forwarding.offer_to(cleo.device)
        await ben.fetches(anna.device)
        await fetching
        new = len(FILES["data/large.bin"]) - len(common)
        assert list(anna.sent) == [ben.device], "but for the outline nothing to Cleo"
        assert new <= anna.sent[ben.device] < new + PIECE_BYTES
        assert sum(each.came_bytes for each in ben.delivery._receipts) == anna.sent[ben.device]
        had = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
        with pytest.raises(TandemError):
            await cleo.node.transfers.fetch(ben.device, had)
        assert not had.received_bytes


# --- whole runs --------------------------------------------------------------------------------------------


def fetched_by(node: LanNode) -> list[tuple[DeviceId, ProjectId]]:
    """From which device it fetches which manifest from now on."""
    found, fetch = list[tuple[DeviceId, ProjectId]](), node.files.fetch

    async def noted(
        device: DeviceId, receipt: AnyReceipt, *rest: Callable[[], None], silent_s: float | None = None
    ) -> None:
        manifest: Manifest = receipt.manifest
        found.append((device, manifest.digest))
        await fetch(device, receipt, *rest, silent_s=silent_s)

    node.files.fetch = noted  # type: ignore[method-assign, assignment]
    return found


async def test_a_run_of_three_receives_in_a_chain_and_nothing_stays_offered(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = three.nodes.values()
    fetched = {node.name: fetched_by(node) for node in (ben, cleo)}
    await anna.runs.start(spec)
    await three.wait_until(lambda: all(node.runs_a_trainer for node in three.nodes.values()))
    assert anna.state.run is not None
    project = anna.state.run.plan.project
    from_anna, from_ben, from_cleo = ((node.device, project) for node in (anna, ben, cleo))
    assert sorted(fetched.values()) == sorted([[from_anna], [from_ben]]) or sorted(
        fetched.values()
    ) == sorted([[from_anna], [from_cleo]])
    assert not [key for node in (ben, cleo) for key in node.files._offers]
    for node in three.nodes.values():
        node.trainers[-1].meet()
        node.trainers[-1].make_step()
    await three.wait_until(lambda: all(isinstance(n.phase, Training) for n in three.nodes.values()))
    for node in three.nodes.values():
        node.trainers[-1].end()
    await three.wait_until(lambda: all(node.over for node in three.nodes.values()))
