"""Files that a run needs here before it can begin: the project's, and those of a checkpoint."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from core.project import checkpoint_store
from core.project.copy import storing
from core.project.receipt import Receipt
from core.run.context import RunContext
from core.run.participant.state import PiecesCame
from core.vocabulary import run_folder
from core.vocabulary.errors import Problem
from core.vocabulary.manifest import Manifest
from core.vocabulary.plan import Plan
from core.vocabulary.run_folder import INCOMING

RATE_S, LEAST_S = 5.0, 1.0


class Delivery:
    """The project and checkpoint that a run needs here, from wherever they are missing."""

    def __init__(
        self,
        context: RunContext,
        plan: Plan,
        manifest: Manifest,
        checkpoint: Manifest | None,
        *,
        outlined: bool,
    ) -> None:
        self._context = context
        self._plan = plan
        self._manifest = manifest
        self._checkpoint = checkpoint
        self._outlined = outlined
        self._project: Receipt | None = None
        self._resumed: Receipt | None = None

    def begin(self) -> int:
        """Bytes that are missing here; 0: everything is complete. Blocks. Raises ``TandemError``."""
        self._project = self._begin_project()
        if self._checkpoint is not None:
            self._resumed = self._begin_resumed(self._checkpoint)
        return self._total_bytes

    async def fetch(self, on_pieces: Callable[[PiecesCame], None]) -> None:
        """Fetch it all from the starter. Raises ``TandemError``."""
        receipts, rate = self._receipts, ByteRate()

        def tell() -> None:
            done = sum(receipt.received_bytes for receipt in receipts)
            on_pieces(PiecesCame(done, self._total_bytes, rate.at(self._context.clock.time(), done)))

        tell()
        for receipt in receipts:
            await self._context.transfers.fetch(self._plan.starter, receipt, tell)

    def store(self) -> None:
        """Put everything into place once it came. Blocks. Raises ``TandemError``."""
        if self._project is not None:
            self._context.store.keep(self._project)
        if self._resumed is not None:
            self._resumed.finish()

    @property
    def _total_bytes(self) -> int:
        return sum(receipt.manifest.total_bytes for receipt in self._receipts)

    @property
    def _receipts(self) -> list[Receipt]:
        return [receipt for receipt in (self._project, self._resumed) if receipt is not None]

    def _begin_project(self) -> Receipt | None:
        store, manifest = self._context.store, self._manifest
        if self._plan.starter == self._context.me or store.has(manifest.digest):
            return None
        receipt = store.receive(manifest, outlined=self._outlined)
        if receipt.wanted:
            return receipt
        store.keep(receipt)
        return None

    def _begin_resumed(self, files: Manifest) -> Receipt | None:
        """The checkpoint becomes the new run's first: from the old run's folder, or from the starter."""
        assert self._plan.resume is not None
        checkpoint_store.check_listing(files)
        checkpoints = self._context.folder(self._plan.run) / run_folder.CHECKPOINTS
        old = self._context.folder(self._plan.resume.run) / run_folder.CHECKPOINTS
        found = checkpoint_store.find(old, files.digest)
        if found is not None:
            with storing(checkpoints):
                checkpoint_store.adopt(found, checkpoints)
            return None
        parts = self._context.folder(self._plan.run) / INCOMING
        receipt = Receipt(files, parts, checkpoint_store.first(checkpoints))
        if receipt.wanted:
            return receipt
        receipt.finish()
        return None


class ByteRate:
    """Transfer rate over the last few seconds, since a network's speed changes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, now_s: float, done: int) -> float:
        """Bytes a second; 0: not known yet. ``done``: bytes that have come."""
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
