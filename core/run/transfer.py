"""Files of a run on their way over a link: the project's, a checkpoint's, outputs.

Blocks where it says so: use the files' thread.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core.project import checkpoint_store
from core.project.copy import storing
from core.project.receipt import Piece, Receipt, Wanted
from core.project.send import pieces
from core.run.context import RunContext
from core.vocabulary import run_folder
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Chunk
from core.vocabulary.plan import Plan
from core.vocabulary.run_folder import INCOMING


class Delivery:
    """The project and checkpoint that a run needs here, from wherever they are missing.

    ``on_piece(done, total)`` is called with the bytes that are here, ``on_complete()`` after the last one.
    """

    def __init__(
        self,
        context: RunContext,
        plan: Plan,
        manifest: Manifest,
        checkpoint: Manifest | None,
        *,
        on_piece: Callable[[int, int], None],
        on_complete: Callable[[], None],
        on_trouble: Callable[[Exception], None],
    ) -> None:
        self._context = context
        self._plan = plan
        self._on_piece = on_piece
        self._on_complete = on_complete
        self._parts = [
            IncomingFiles(
                context,
                part.digest,
                part.total_bytes,
                on_piece=lambda done: self._tell(),
                on_complete=self._one_more,
                on_trouble=on_trouble,
            )
            for part in (manifest, checkpoint)
            if part is not None
        ]
        self._manifest = manifest
        self._checkpoint = checkpoint
        self._left = 0

    def begin(self) -> tuple[int, ...]:
        """What is missing here, counted through both manifests. Blocks. Raises ``TandemError``."""
        missing = self._project()
        if self._checkpoint is not None:
            offset = len(self._manifest.files)
            missing += tuple(offset + number for number in self._resumed(self._checkpoint))
        self._left = sum(part.receipt is not None for part in self._parts)
        return missing

    @property
    def complete(self) -> bool:
        """Everything that was missing is here, if only just."""
        return self._left == 0

    def take(self, chunk: Chunk) -> bool:
        """False: the piece is not one that was announced."""
        for part in self._parts:
            if part.project == chunk.project and part.receipt is not None:
                return part.take(chunk)
        return True

    def store(self) -> None:
        """Once everything came: put it into place. Blocks. Raises ``TandemError``."""
        project, *rest = (part.receipt for part in self._parts)
        if project is not None:
            self._context.store.keep(project)
        for receipt in rest:
            if receipt is not None:
                receipt.finish()

    def end(self) -> None:
        for part in self._parts:
            part.end()

    def _project(self) -> tuple[int, ...]:
        store, manifest = self._context.store, self._manifest
        if self._plan.starter == self._context.me or store.has(manifest.digest):
            return ()
        receipt = store.receive(manifest)
        if not receipt.wanted:
            store.keep(receipt)
            return ()
        self._parts[0].receipt = receipt
        return tuple(wanted.file for wanted in receipt.wanted)

    def _resumed(self, files: Manifest) -> tuple[int, ...]:
        """The checkpoint becomes the new run's first: from the old run's folder, or from the starter."""
        assert self._plan.resume is not None
        checkpoint_store.check_listing(files)
        checkpoints = self._context.folder(self._plan.run) / run_folder.CHECKPOINTS
        old = self._context.folder(self._plan.resume.run) / run_folder.CHECKPOINTS
        found = checkpoint_store.find(old, files.digest)
        if found is not None:
            with storing(checkpoints):
                checkpoint_store.adopt(found, checkpoints)
            return ()
        parts = self._context.folder(self._plan.run) / INCOMING
        receipt = Receipt(files, parts, checkpoint_store.first(checkpoints))
        self._parts[1].receipt = receipt
        return tuple(wanted.file for wanted in receipt.wanted)

    def _tell(self) -> None:
        receipts = [part.receipt for part in self._parts if part.receipt is not None]
        self._on_piece(
            sum(receipt.received_bytes for receipt in receipts),
            sum(receipt.manifest.total_bytes for receipt in receipts),
        )

    def _one_more(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._on_complete()


async def send_pieces(
    context: RunContext,
    device: DeviceId,
    run: RunId,
    project: ProjectId,
    folder: Path,
    manifest: Manifest,
    files: tuple[int, ...],
    go_on: Callable[[], bool],
) -> None:
    """Send files of a manifest over a link as it takes them. Raises ``TandemError`` where one changed.

    Ends early where the link is gone or ``go_on`` says so.
    """
    flow = pieces(folder, manifest, tuple(Wanted(file=number) for number in files))
    while go_on():
        piece = await context.files.do(next, flow, None)
        if piece is None or not go_on():
            return
        chunk = Chunk(run=run, project=project, file=piece.file, offset=piece.offset, data=piece.data)
        if not await context.links.send_flowing(device, chunk):
            return


class IncomingFiles:
    """A project or outputs on their way in: pieces are written in order, off the loop."""

    def __init__(
        self,
        context: RunContext,
        project: ProjectId,
        total_bytes: int,
        *,
        on_piece: Callable[[int], None],
        on_complete: Callable[[], object],
        on_trouble: Callable[[Exception], None],
    ) -> None:
        self.project = project
        self.receipt: Receipt | None = None
        self._context = context
        self._room = total_bytes
        self._on_piece = on_piece
        self._on_complete = on_complete
        self._on_trouble = on_trouble
        self._over = False
        self._shown_s = float("-inf")

    def take(self, chunk: Chunk) -> bool:
        """False: more comes than was announced."""
        self._room -= len(chunk.data)
        if self._over or self._room < 0:
            return False
        self._context.background.start("take a piece", self._write(chunk))
        return True

    def end(self) -> None:
        self._over = True

    async def _write(self, chunk: Chunk) -> None:
        try:
            received, complete = await self._context.files.do(self._put, chunk)
        except Exception as error:
            if not self._over:
                self._over = True
                self._on_trouble(error)
            return
        if self._over:
            return
        now_s = self._context.clock.time()
        if complete or now_s - self._shown_s >= 0.2:
            self._shown_s = now_s
            self._on_piece(received)
        if complete:
            self._over = True
            self._on_complete()

    def _put(self, chunk: Chunk) -> tuple[int, bool]:
        assert self.receipt is not None
        self.receipt.take(Piece(file=chunk.file, offset=chunk.offset, data=chunk.data))
        return self.receipt.received_bytes, not self.receipt.wanted


def problem_of(error: Exception, code: str, what: str, fix: str) -> Problem:
    """A failure of work in the background as a problem; a ``TandemError`` speaks for itself."""
    problem = getattr(error, "problem", None)
    if isinstance(problem, Problem):
        return problem
    return Problem(code=code, what=what, fix=fix, detail=repr(error))
