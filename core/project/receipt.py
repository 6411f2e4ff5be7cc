"""Receives a manifest's files in pieces; moves them into place once all are right. Blocks: use a thread."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from core.project.chunks import Chunk, Reused, chunks, reused, unpacked
from core.project.copy import Changed, WritingTurn, check_room, copy_file, laid_out, link_file, storing
from core.project.files import UNWATCHED, ReadMeter, hash_file
from core.project.send import NOT_OFFERED, Extent, NotYet
from core.runtime.regular_file import READ_BYTES, NotRegular, open_regular
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown

PIECE_BYTES = 1 << 20
TREE = "tree"
"""Subfolder of the parts: files that ``finish`` is moving into place."""
BROKEN = "transfer-broken"
"""Code of the problem where the peer sent something invalid."""

_WRITES = (
    os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
_EMPTY = hashlib.sha256().hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """Bytes of file number ``file`` of a manifest, from ``offset`` on; at most ``PIECE_BYTES``."""

    file: int
    offset: int
    data: bytes | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """File number ``file`` is missing from ``offset`` on."""

    file: int
    offset: int = 0


class Receipt:
    """One incoming project. A file's pieces arrive in order, files in any order.

    Parts are stored under their number, never under a name from outside, and survive a lost link or a
    restart: a new ``Receipt`` on the same folder continues the old one, which then writes no more. The
    manifest must have been checked (``check_project`` or ``check_files``). ``known``: files of Tandem's own,
    by SHA-256, which are linked if they are still the same. ``meter``: for reads from this disk.
    ``unneeded``: numbers of files to be neither received nor put into place. Raises ``TandemError``.
    """

    def __init__(
        self,
        manifest: Manifest,
        parts: Path,
        place: Path,
        known: Mapping[str, Path] = MappingProxyType({}),
        meter: ReadMeter = UNWATCHED,
        unneeded: Collection[int] = frozenset(),
    ) -> None:
        self.manifest = manifest
        self._unneeded = unneeded
        self._meter = meter
        self._parts = parts
        self._place = place
        self._have: dict[int, int] = {}
        """Bytes received, by number of each incomplete file."""
        self._coming, self._digest = -1, hashlib.sha256()
        """The current file, and the hash of its received bytes."""
        self.similar: Mapping[int, Path] = {}
        """Another version of the file on this disk, by the number of each missing file."""
        self._reused: dict[int, deque[Reused]] = {}
        self._compared: set[int] = set()
        self._fresh: dict[int, list[tuple[int, int]]] = {}
        """Parts that came over the network, by file number: first byte and end."""
        self._is_finished = False
        self._lock = threading.Lock()
        """For ``given``: guards the received parts, and where the files are."""
        self.on_came: Callable[[], None] = lambda: None
        """Called after each piece."""
        self._check: Callable[[], None] = lambda: None
        self.received_bytes = self.came_bytes = 0
        """Bytes present, and bytes received over the network since this receipt was made."""
        self._turn = WritingTurn(parts)
        with storing(parts):
            parts.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.utime(parts)
            self._gather()
            for number in range(len(manifest.files)):
                if number not in unneeded:
                    self._resume(number)
        self.received_bytes = manifest.total_bytes - self.missing_bytes
        for number in list(self._have):
            if (source := known.get(manifest.files[number].sha256)) is not None:
                self.adopt(number, source)
        check_room(parts, self.missing_bytes)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """Missing parts, in the manifest's order; empty: ``finish`` may be called."""
        return tuple(Wanted(file=number, offset=have) for number, have in sorted(self._have.items()))

    @property
    def ranges(self) -> Iterator[tuple[int, int, int]]:
        """As ``wanted``, without parts taken from other versions: file, first byte, end. First takes the
        parts that come next, in case an earlier fetch was stopped before it did. Raises ``TandemError``."""
        for want in self.wanted:
            with storing(self._parts):
                self._take_reused(want.file)
            if (at := self._have.get(want.file)) is None:
                continue
            for part in self._reused.get(want.file, ()):
                if part.chunk.offset > at:
                    yield want.file, at, part.chunk.offset
                at = part.chunk.offset + part.chunk.length
            yield want.file, at, self.manifest.files[want.file].size

    @property
    def missing_bytes(self) -> int:
        return sum(self.manifest.files[number].size - have for number, have in self._have.items())

    def adopt(self, number: int, source: Path, *, may_change: bool = False) -> bool:
        """Take a missing file from this disk, if ``source`` has exactly that content. Returns whether it
        does. ``may_change``: the file is a user's, so it is copied instead of linked."""
        part = self._part(number)
        with storing(self._parts):
            part.unlink(missing_ok=True)
            self.received_bytes -= self._have[number]
            self._have[number] = 0
            try:
                if may_change:
                    copy_file(self.manifest.files[number], partial(open_regular, source), part, self._meter)
                else:
                    link_file(self.manifest.files[number], source, part, self._meter)
            except Changed:
                return False
        del self._have[number]
        self.received_bytes += self.manifest.files[number].size
        return True

    def watch(self, check: Callable[[], None]) -> None:
        """Call ``check`` repeatedly during long reads; an exception that it raises ends them."""
        self._check = check

    @property
    def uncompared(self) -> tuple[int, ...]:
        """Numbers of files with another version here whose outline has not been compared yet."""
        return tuple(number for number in self.similar if number not in self._compared)

    def compare(self, number: int, outline: Callable[[], memoryview]) -> None:
        """Take the parts that another version of this file has in common with it.

        ``outline`` returns this file's packed chunks, or nothing. It is called after the other version was
        read, and may wait. Raises ``TandemError``.
        """
        size, before = self.manifest.files[number].size, list[Chunk]()
        try:
            with open_regular(self.similar[number]) as old:
                for chunk in chunks(old, size, self._meter):
                    self._check()
                    before.append(chunk)
        except (OSError, NotRegular):
            before = []
        data = outline()
        self._compared.add(number)
        if not data:
            return
        try:
            found = reused(unpacked(data, size), before)
        except ValueError as error:
            raise bad_piece(f"an outline that fits no file ({error})") from error
        self._reused[number] = deque(part for part in found if part.chunk.offset >= self._have[number])
        with storing(self._parts):
            self._take_reused(number)

    def take(self, piece: FilePiece) -> None:
        """Write one piece. Raises ``TandemError`` where it does not fit; offset 0 begins a file afresh."""
        if piece.file not in self._have:
            raise bad_piece("a piece of a file that was not asked for")
        file, have = self.manifest.files[piece.file], self._have[piece.file]
        if piece.offset not in (have, 0):
            raise bad_piece(f"a piece of {shown(file.path)} out of order")
        end = piece.offset + len(piece.data)
        if not 0 < len(piece.data) <= PIECE_BYTES or end > file.size:
            raise bad_piece(f"a piece of {shown(file.path)} of a wrong size")
        with storing(self._parts):
            self._append(piece, is_fresh=True)
            self._take_reused(piece.file)
        self.on_came()

    def _take_reused(self, number: int) -> None:
        """Append the following parts that are already on this disk."""
        parts = self._reused.get(number)
        while parts and number in self._have and parts[0].chunk.offset == self._have[number]:
            self._check()
            part = parts.popleft()
            with open_regular(self.similar[number]) as old:
                old.seek(part.offset)
                data = old.read(part.chunk.length)
            self._append(FilePiece(file=number, offset=part.chunk.offset, data=data))

    def _append(self, piece: FilePiece, *, is_fresh: bool = False) -> None:
        """``is_fresh``: it came over the network."""
        file, have = self.manifest.files[piece.file], self._have[piece.file]
        end = piece.offset + len(piece.data)
        self._hash_before(piece)
        with self._turn.writing():
            self._write(piece)
        self._digest.update(piece.data)
        with self._lock:
            self._have[piece.file] = end
            fresh = self._fresh.setdefault(piece.file, [])
            if not piece.offset:
                fresh.clear()
            if is_fresh and fresh and fresh[-1][1] == piece.offset:
                fresh[-1] = (fresh[-1][0], end)
            elif is_fresh:
                fresh.append((piece.offset, end))
        self.received_bytes += end - have
        self.came_bytes += len(piece.data) if is_fresh else 0
        if end == file.size:
            is_right = self._digest.hexdigest() == file.sha256
            # An earlier receipt, or another program, may have written to the part, too.
            is_right = is_right and self._part(piece.file).stat().st_size == end
            if not self._settle(piece.file, is_right):
                raise bad_piece(f"{shown(file.path)} with another content than announced")

    def finish(self) -> Path:
        """Move everything into place in one step; returns the place. Raises ``TandemError``."""
        if self._have:
            raise TandemError(
                code="transfer-incomplete",
                what=f"{len(self._have):,} of the project's {len(self.manifest.files):,} files are missing.",
                fix="Start the run again; the files that arrived are kept.",
            )
        tree = self._parts / TREE
        with storing(self._place), self._turn.writing(), self._lock:
            self._gather()
            tree.mkdir(mode=0o700)
            for number, (_, target) in enumerate(laid_out(self.manifest, tree)):
                if number not in self._unneeded:
                    os.rename(self._part_name(number), target)  # noqa: PTH104
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            tree.rename(self._place)
            self._is_finished = True
            self.abandon()
        return self._place

    def given(self, extents: Iterable[Extent]) -> bytes:
        """The bytes of these parts, joined, for another device. Call on any thread. Raises ``NotYet`` and
        ``TandemError``.

        Security invariant: gives only bytes that came over the network since this receipt was made. A device
        that knows only a file's hash must not get the file from this disk. Therefore it gives nothing once
        another receipt has begun in this folder: that one may take files from this disk.
        """
        return b"".join(map(self._given, extents))

    def _given(self, extent: Extent) -> bytes:
        end = extent.offset + extent.length
        try:
            with self._turn.writing(), self._lock:
                fresh = self._fresh.get(extent.file, ())
                if not any(begin <= extent.offset and end <= until for begin, until in fresh):
                    have = self._have.get(extent.file)
                    if have is not None and have < end <= self.manifest.files[extent.file].size:
                        raise NotYet
                    raise TandemError.of(NOT_OFFERED)
                path = self._part(extent.file)
                if self._is_finished:
                    path = self._place.joinpath(*self.manifest.files[extent.file].path.split("/"))
                # Closed again before anything is moved or deleted, which Windows refuses for an open file.
                with open_regular(path) as opened:
                    opened.seek(extent.offset)
                    data = opened.read(extent.length)
        except (OSError, NotRegular, TandemError) as error:
            raise TandemError.of(NOT_OFFERED) from error
        if len(data) < extent.length:  # the file is being received again
            raise TandemError.of(NOT_OFFERED)
        return data

    def abandon(self) -> None:
        """Delete everything received so far."""
        shutil.rmtree(self._parts, ignore_errors=True)

    def _part(self, number: int) -> Path:
        return Path(self._part_name(number))

    def _part_name(self, number: int) -> str:
        """A string, since making a ``Path`` takes as long as a system call, for each of thousands of
        files."""
        return f"{self._parts}/{number}.part"

    def _gather(self) -> None:
        """Move the files of an interrupted ``finish`` back to the parts.

        Security invariant: moves no file that is reached through a link, which a script may have left there.
        """
        tree = self._parts / TREE
        if tree.is_symlink() or not tree.is_dir():
            return
        real = tree.resolve()
        for number, file in enumerate(self.manifest.files):
            moved = real.joinpath(*file.path.split("/"))
            if moved.is_file() and moved.resolve() == moved:
                moved.replace(self._part(number))
        shutil.rmtree(tree, ignore_errors=True)

    def _resume(self, number: int) -> None:
        part, file = self._part(number), self.manifest.files[number]
        if part.is_symlink() or (part.exists() and not part.is_file()):
            raise _foreign(part)
        if part.exists() and part.stat().st_nlink > 1 and part.stat().st_size != file.size:
            part.unlink()  # linked to another version's damaged file, which must not be written to
        self._have[number] = part.stat().st_size if part.exists() else 0
        if file.size == 0 and not part.exists():
            part.touch(mode=0o600)
        if self._have[number] >= file.size:
            self._meter.expect(self._have[number])
            try:
                is_right = hash_file(part, self._meter) == (file.size, file.sha256)
            except NotRegular:
                is_right = False
            self._settle(number, is_right)

    def _write(self, piece: FilePiece) -> None:
        """Written for thousands of small files: makes no more than the necessary system calls."""
        begins = 0 if piece.offset else os.O_CREAT | os.O_TRUNC
        descriptor = os.open(self._part_name(piece.file), _WRITES | begins, 0o600)
        try:
            if piece.offset:
                os.lseek(descriptor, piece.offset, os.SEEK_SET)
            left = memoryview(piece.data)
            while left:
                left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)

    def _hash_before(self, piece: FilePiece) -> None:
        """Hash the file's bytes before ``piece``, unless there are none or they were hashed on arrival."""
        if self._coming == piece.file and piece.offset:
            return
        self._coming, digest, left = -1, hashlib.sha256(), piece.offset
        if left:
            self._meter.expect(left)
            with open_regular(self._part(piece.file)) as part:
                while data := part.read(min(READ_BYTES, left)):
                    self._check()
                    digest.update(data)
                    self._meter.add(len(data))
                    left -= len(data)
        self._coming, self._digest = piece.file, digest

    def _settle(self, number: int, is_right: bool) -> bool:
        """A file has all its bytes: keep it if they are right, otherwise request it from the start."""
        file = self.manifest.files[number]
        self._coming = -1
        if is_right:
            del self._have[number]
        elif file.size == 0 and file.sha256 != _EMPTY:
            raise bad_piece(f"{shown(file.path)} with a hash that no empty file has")
        else:
            with self._turn.writing(), self._lock:
                self._part(number).unlink()
                self.received_bytes -= self._have[number]
                self._have[number] = 0
                self._fresh.pop(number, None)
        return is_right


def bad_piece(what: str) -> TandemError:
    return TandemError(
        code=BROKEN,
        what=f"The other laptop sent {what}.",
        fix="Start the run again. If it happens again, update Tandem on both laptops.",
    )


def _foreign(part: Path) -> TandemError:
    return TandemError(
        code="storage-failed",
        what=f"{shown(str(part))} is not a file that Tandem made.",
        fix="Remove it and start the run again.",
    )
