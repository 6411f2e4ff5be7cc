"""What both sides of a run work with on this node: its folders, its threads, its clock, its links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from core.project.receipt import Piece, Receipt, Wanted
from core.project.send import pieces
from core.project.store import ProjectStore
from core.runtime.background import Background
from core.runtime.timers import Clock
from core.runtime.worker_thread import Lane
from core.supervisor.trainers import MakeTrainer
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Chunk, Message


class RunLinks(Protocol):
    """What a run needs of ``core.link.hub.Links``."""

    def send(self, device: DeviceId, message: Message) -> bool: ...

    async def send_flowing(self, device: DeviceId, message: Message) -> bool: ...

    def peer_host(self, device: DeviceId) -> str: ...

    def own_host(self, device: DeviceId) -> str: ...


@dataclass(frozen=True, slots=True)
class Workplace:
    """``files``: the thread for projects and outputs; one, so that pieces are written in order."""

    me: DeviceId
    runs: Path
    store: ProjectStore
    links: RunLinks
    clock: Clock
    files: Lane
    background: Background
    make_trainer: MakeTrainer

    def folder(self, run: RunId) -> Path:
        return self.runs / run


async def send_pieces(
    place: Workplace,
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
        piece = await place.files.do(next, flow, None)
        if piece is None:
            return
        chunk = Chunk(run=run, project=project, file=piece.file, offset=piece.offset, data=piece.data)
        if not await place.links.send_flowing(device, chunk):
            return


class Incoming:
    """A project or outputs on their way in: pieces are written in order, off the loop."""

    def __init__(
        self,
        place: Workplace,
        project: ProjectId,
        total_bytes: int,
        *,
        on_piece: Callable[[int], None],
        on_complete: Callable[[], object],
        on_trouble: Callable[[Exception], None],
    ) -> None:
        self.project = project
        self.receipt: Receipt | None = None
        self._place = place
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
        self._place.background.start("take a piece", self._write(chunk))
        return True

    def end(self) -> None:
        self._over = True

    async def _write(self, chunk: Chunk) -> None:
        try:
            received, complete = await self._place.files.do(self._put, chunk)
        except Exception as error:
            if not self._over:
                self._over = True
                self._on_trouble(error)
            return
        if self._over:
            return
        now_s = self._place.clock.time()
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


def trouble_of(error: Exception, code: str, what: str, fix: str) -> Problem:
    """A failure of work in the background as a problem; a ``TandemError`` speaks for itself."""
    problem = getattr(error, "problem", None)
    if isinstance(problem, Problem):
        return problem
    return Problem(code=code, what=what, fix=fix, detail=repr(error))
