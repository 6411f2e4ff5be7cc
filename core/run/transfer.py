"""Files that a run needs here before it can begin: the project's, a checkpoint's, those that the script wrote
before, and its data."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from core.project import checkpoint_store
from core.project.copy import storing
from core.project.data import LocalData, scan_data
from core.project.files import UNWATCHED, ReadMeter
from core.project.light_receipts import ListingReceipt, Outlines
from core.project.receipt import BROKEN, Receipt
from core.project.send import NOT_OFFERED, ListingReader, ManifestReader
from core.run import written
from core.run.chain import Forwarding
from core.run.context import RunContext
from core.run.own_files import own_files
from core.run.participant.state import PiecesCame, WorkDone
from core.run.written import WrittenFiles
from core.vocabulary import run_folder
from core.vocabulary.access import Grant
from core.vocabulary.data import Data, may_carry_code
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import JoinProgressed
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.manifest import Listing, Manifest, check_files, manifest_of
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.run_folder import BROUGHT, INCOMING

RATE_S, LEAST_S = 5.0, 1.0
"""The time over which a transfer rate is measured: at most, and at least."""
LARGE_BYTES = 5_000_000
"""The least size of a transfer that shows how fast the next one will be."""
_log = logging.getLogger(__name__)


def data_readers(data: Iterable[LocalData]) -> Iterator[ManifestReader | ListingReader]:
    """Readers for what a member may fetch of a run's data: the lists of its files, and the files."""
    for each in data:
        yield ListingReader(each.manifest, each.data.listing)
        yield ManifestReader(Path(each.folder), each.manifest)


async def fetch_manifest(context: RunContext, starter: DeviceId, listing: Listing) -> Manifest:
    """A manifest that was too long for a message. Raises ``TandemError``."""
    receipt = ListingReceipt(listing)
    try:
        async with asyncio.timeout(context.limits.listing_s):
            await context.transfers.fetch(starter, receipt)
    except TimeoutError as error:
        raise TandemError.of(_UNTOLD) from error
    return await context.files.do(receipt.finish)


class Delivery:
    """Brings the project, checkpoint and data that a run needs and this laptop lacks.

    ``folders``: data folders of this laptop, by name. ``places``: where each data is here, after ``begin`` or
    ``store``. ``on_work`` is called once a second while files are read or written here.
    """

    def __init__(
        self,
        context: RunContext,
        request: Prepare,
        *,
        folders: Mapping[str, Grant] = MappingProxyType({}),
        on_work: Callable[[WorkDone], None] | None = None,
    ) -> None:
        self._context = context
        self._plan = plan = request.plan
        self._manifest = manifest = request.manifest
        self._checkpoint = checkpoint = request.checkpoint
        self._written = request.written if plan.starter != context.me else None
        self._brought: Receipt | None = None
        self.wrote: tuple[WrittenFiles, ...] = ()
        """The files that the script wrote before, and where they are here once everything has come."""
        self._project: Receipt | None = None
        self._resumed: Receipt | None = None
        self._has_moment = False
        """The checkpoint was already here."""
        self._folders = folders
        self._own: dict[str, Path] | None = None
        """Files of this laptop's own, by SHA-256; None: not looked for yet."""
        self._lacking: list[Data] = []
        self._data: list[tuple[Data, Receipt]] = []
        self._on_work, self._joins = on_work, False
        self._reading = UNWATCHED if on_work is None else work_meter(self._tell_work, "checking files")
        self._storing = (
            UNWATCHED if on_work is None else work_meter(self._tell_work, "putting files in place")
        )
        self._had_bytes = 0
        """Bytes of data found in this user's own folders."""
        self.places: dict[str, str] = {}
        self._giver = plan.starter
        ours = (each.digest for each in (manifest, checkpoint, self._written) if each)
        data = (ProjectId(each.listing.digest) for each in plan.data)
        self.forwarding = Forwarding(context.transfers, (*ours, *data))

    def begin(self) -> int:
        """Bytes that are missing here; 0: everything is complete. Blocks. Raises ``TandemError``."""
        self._project = self._begin_project()
        self.forwarding.forward(self._manifest.digest, self._project)
        if self._checkpoint is not None:
            self._resumed = self._begin_resumed(self._checkpoint)
            self.forwarding.forward(self._checkpoint.digest, self._resumed)
        if self._written is not None:
            self._brought = self._begin_written(self._written)
            self.forwarding.forward(self._written.digest, self._brought)
        if self._plan.starter != self._context.me:
            for data in self._plan.data:
                if self._find(data, self._reading):
                    self._forward_none(data)
                else:
                    self._lacking.append(data)
        return self._total_bytes

    async def fetch(
        self, giver: DeviceId, on_pieces: Callable[[PiecesCame], None], *, joins: bool = False
    ) -> None:
        """Fetch everything from this member, and what it does not have from the starter. ``joins``: for a run
        under way, which this laptop does not show yet. Raises ``TandemError``."""
        self._giver, self._joins = giver, joins
        rate = ByteRate()

        def tell() -> None:
            done = sum(receipt.received_bytes for receipt in self._receipts) + self._had_bytes
            came_bytes = sum(receipt.came_bytes for receipt in self._receipts)
            rate_bytes_s = rate.at(self._context.clock.time(), came_bytes)
            on_pieces(PiecesCame(done, self._total_bytes, rate_bytes_s))
            if joins:
                self._tell_joining(done, self._total_bytes, rate_bytes_s)

        try:
            if joins:
                digests = (ProjectId(each.listing.digest) for each in self._plan.data)
                await self._context.files.do(self._context.store.expect, (self._manifest.digest, *digests))
            tell()
            for receipt in self._receipts:
                await self._fetch(receipt, tell)
                if receipt is self._project:
                    await self._keep(receipt)
            for data in self._lacking:
                if data.name not in self._folders or not await self._is_here(data, tell):
                    await self._fetch_data(data, tell)
        finally:
            if joins:
                self._joins = False
                self._tell_joining(0, 0)

    def _tell_joining(self, done: int, total: int, rate_bytes_s: float = 0.0, words: str = "") -> None:
        me = self._context.me
        self._context.emit(
            JoinProgressed(device=me, done=done, total=total, rate_bytes_s=rate_bytes_s, words=words)
        )

    def _tell_work(self, work: WorkDone) -> None:
        if self._on_work is not None:
            self._on_work(work)
        if self._joins:
            self._tell_joining(work.done, work.total, words=work.words)

    def store(self) -> None:
        """Put this run's own files into place once everything has come. Blocks. Raises ``TandemError``."""
        if self._resumed is not None:
            self._resumed.finish()
        if self._brought is not None:
            self._brought.finish()
        for data, _ in self._data:
            self._find(data, self._storing)

    @property
    def _total_bytes(self) -> int:
        ours = (each for each in (self._project, self._resumed, self._brought) if each is not None)
        data = sum(data.total_bytes for data in self._lacking)
        return sum(receipt.manifest.total_bytes for receipt in ours) + data

    @property
    def _receipts(self) -> list[Receipt]:
        found = (self._project, self._resumed, self._brought, *(receipt for _, receipt in self._data))
        return [receipt for receipt in found if receipt is not None]

    def _find(self, data: Data, meter: ReadMeter) -> bool:
        context = self._context
        place = context.find_keras_download(data, meter) or context.store.find_data(
            data, context.hashes, meter
        )
        if place is not None:
            self.places[data.name] = str(place)
        return place is not None

    def _forward_none(self, data: Data) -> None:
        """Data that was already here is not forwarded."""
        self.forwarding.forward(ProjectId(data.listing.digest), None)

    async def _is_here(self, data: Data, tell: Callable[[], None]) -> bool:
        """Whether this user's data folder of that name holds the same files. Keeps the starter waiting for as
        long as it takes to read them."""
        path = self._folders[data.name].path
        try:
            name, hashes = Path(data.path).name, self._context.hashes
            found = await self._context.files.do(scan_data, Path(path), name, hashes, self._reading)
            is_same = found.digest == data.listing.digest
        except TandemError:
            is_same = False  # It is missing or unreadable: the files travel.
        if is_same:
            self._had_bytes += data.total_bytes
            self.places[data.name] = path
            self._forward_none(data)
        tell()
        return is_same

    async def _fetch_data(self, data: Data, tell: Callable[[], None]) -> None:
        fetch, files = self._context.transfers.fetch, self._context.files
        listing = ListingReceipt(data.listing)
        await fetch(self._plan.starter, listing, tell)
        manifest = await files.do(listing.finish)
        # This user was asked about exactly this many files and bytes.
        if (manifest.script, len(manifest.files), manifest.total_bytes) != ("", data.files, data.total_bytes):
            raise TandemError.of(_OTHER_DATA)
        # Security invariant: no file that can carry code comes unless this user was told.
        if not data.may_carry_code and may_carry_code(file.path for file in manifest.files):
            raise TandemError.of(_OTHER_DATA)
        check_files(manifest.files)
        same = [each for _, each in self._data if each.manifest.digest == manifest.digest]
        receipt = same[0] if same else await files.do(self._receive, manifest)
        self._data.append((data, receipt))
        self.forwarding.forward(manifest.digest, receipt)
        if receipt.wanted:
            await self._fetch(receipt, tell)
        if not same:
            await self._keep(receipt)

    async def _keep(self, receipt: Receipt) -> None:
        """Store it at once, so that the next run has it even if this one fails during a later transfer."""
        await self._context.files.do(self._context.store.add, receipt)

    async def _fetch(self, receipt: Receipt, tell: Callable[[], None]) -> None:
        starter = self._plan.starter
        if self._giver != starter:
            try:
                if receipt.uncompared:  # Members have no outlines.
                    await self._context.transfers.fetch(starter, Outlines(receipt), tell)
                await self._fetch_from(self._giver, receipt, tell, self._context.limits.giver_silent_s)
                return
            except TandemError as error:
                _log.debug("%s gives no more of %s: %s", self._giver, receipt.manifest.digest, error)
                if error.code != NOT_OFFERED.code:
                    self._giver = starter
        has_a_beginning = any(wanted.offset for wanted in receipt.wanted)
        try:
            await self._fetch_from(starter, receipt, tell)
        except TandemError as error:
            if not has_a_beginning or error.code != BROKEN:
                raise
            # Another member may have sent a wrong beginning, now or in an earlier run.
            await self._fetch_from(starter, receipt, tell)

    async def _fetch_from(
        self, device: DeviceId, receipt: Receipt, tell: Callable[[], None], silent_s: float | None = None
    ) -> None:
        had_bytes, since_s = receipt.came_bytes, self._context.clock.time()
        await self._context.transfers.fetch(device, receipt, tell, silent_s=silent_s)
        came_bytes, took_s = receipt.came_bytes - had_bytes, self._context.clock.time() - since_s
        if came_bytes >= LARGE_BYTES and took_s > 0:
            await self._context.files.do(self._context.rates.put, device, came_bytes / took_s)

    def _begin_project(self) -> Receipt | None:
        store, manifest = self._context.store, self._manifest
        if self._plan.starter == self._context.me or store.has(manifest.digest):
            return None
        receipt = self._receive(manifest)
        if receipt.wanted:
            return receipt
        store.add(receipt)
        return None

    def _receive(self, manifest: Manifest) -> Receipt:
        if self._own is None:
            context, plan = self._context, self._plan
            goes_on = plan.resume is not None
            runs, hashes, meter = context.runs, context.hashes, self._reading
            self._own = own_files(runs, context.me, plan, hashes, meter) if goes_on else {}
        return self._context.store.receive(manifest, self._own, self._reading)

    def _begin_resumed(self, files: Manifest) -> Receipt | None:
        """The checkpoint becomes the new run's first: from the old run's folder, or from the starter."""
        assert self._plan.resume is not None
        checkpoint_store.check_listing(files)
        checkpoints = self._context.folder(self._plan.run) / run_folder.CHECKPOINTS
        old = self._context.folder(self._plan.resume.run) / run_folder.CHECKPOINTS
        found = checkpoint_store.find(old, files.digest, self._reading)
        self._has_moment = found is not None
        if found is not None:
            with storing(checkpoints):
                checkpoint_store.adopt(found, checkpoints)
            return None
        parts = self._context.folder(self._plan.run) / INCOMING
        receipt = Receipt(files, parts, checkpoint_store.first(checkpoints), meter=self._reading)
        if receipt.wanted:
            return receipt
        receipt.finish()
        return None

    def _begin_written(self, files: Manifest) -> Receipt | None:
        """Reuses what the script wrote here: identical files, or those of the same step of the training."""
        assert self._plan.resume is not None
        before, folder = self._context.folder(self._plan.resume.run), self._context.folder(self._plan.run)
        here = written.find(before)
        known = (
            {}
            if here is None
            else {file.sha256: here.folder.joinpath(*file.path.split("/")) for file in here.files.files}
        )
        instead = written.find_instead(before, files) if self._has_moment else None
        names = set() if instead is None else {file.path for file in instead.files.files}
        unneeded = {number for number, file in enumerate(files.files) if file.path in names}
        coming = manifest_of("", (file for file in files.files if file.path not in names))
        self.wrote = (WrittenFiles(folder / BROUGHT, coming), *((instead,) if instead else ()))
        parts = folder / f"{INCOMING}-{BROUGHT}"
        receipt = Receipt(files, parts, folder / BROUGHT, known, self._reading, unneeded)
        if receipt.wanted:
            return receipt
        receipt.finish()
        return None


_OTHER_DATA = Problem(
    code="transfer-broken",
    what="The other laptop sent a list of files that does not match its request.",
    fix="Start the run again. If it happens again, update Tandem on both laptops.",
)


_UNTOLD = Problem(
    code="files-untold",
    what="the list of the project's files did not arrive.",
    fix="Start the run again, closer to each other or over a cable.",
)


def work_meter(tell: Callable[[WorkDone], None], words: str) -> ReadMeter:
    """A meter of files read or written on any thread. Calls ``tell`` on the loop that this is called on."""
    loop = asyncio.get_running_loop()
    return ReadMeter(lambda done, total: loop.call_soon_threadsafe(tell, WorkDone(words, done, total)))


class ByteRate:
    """Transfer rate over the last few seconds, since a network's speed changes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, now_s: float, done: int) -> float:
        """Bytes a second; 0: not known yet. ``done``: bytes that have come over the network."""
        if self._seen and now_s - self._seen[-1][0] > RATE_S:
            self._seen.clear()  # nothing was asked for meanwhile: this laptop read its own files
        self._seen.append((now_s, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - RATE_S:
            self._seen.popleft()
        since_s, before = self._seen[0]
        return max(0, done - before) / (now_s - since_s) if now_s - since_s >= LEAST_S else 0.0


def problem_of(error: Exception, code: str, what: str, fix: str) -> Problem:
    """A failure of background work as a problem; a ``TandemError`` keeps its own."""
    problem = getattr(error, "problem", None)
    if isinstance(problem, Problem):
        return problem
    return Problem(code=code, what=what, fix=fix, detail=repr(error))
