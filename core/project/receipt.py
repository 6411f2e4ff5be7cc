"""Takes a manifest's files in pieces; puts them into place once all are right. Blocks: use a thread."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec

from core.project.copy import Changed, check_room, copy_file, storing
from core.project.files import NotRegular, hash_file
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown

PIECE_BYTES = 256 * 1024

_EMPTY = hashlib.sha256().hexdigest()


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of file number ``file`` of a manifest, from ``offset`` on; at most ``PIECE_BYTES``."""

    file: int
    offset: int
    data: bytes


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """File number ``file`` is missing from ``offset`` on."""

    file: int
    offset: int = 0


class Receipt:
    """One project on its way in. Pieces of a file come in order; files in any order.

    Parts lie under their number, never under a name from outside, and survive a lost link or a restart:
    a new ``Receipt`` on the same folder goes on where the old one stood. One at a time per folder. The
    manifest must have been checked (``check_project`` or ``check_files``).
    """

    def __init__(self, manifest: Manifest, parts: Path, place: Path) -> None:
        self.manifest = manifest
        self._parts = parts
        self._place = place
        self._have: dict[int, int] = {}
        """Bytes here, by number of each file that is not complete."""
        with storing(parts):
            parts.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(len(manifest.files)):
                self._resume(number)
        check_room(parts, self.missing_bytes)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """What has not come yet, in the manifest's order; empty: ``finish`` may be called."""
        return tuple(Wanted(file=number, offset=have) for number, have in sorted(self._have.items()))

    @property
    def missing_bytes(self) -> int:
        return sum(self.manifest.files[number].size - have for number, have in self._have.items())

    @property
    def received_bytes(self) -> int:
        return self.manifest.total_bytes - self.missing_bytes

    def adopt(self, number: int, source: Path) -> bool:
        """Take a missing file from this disk instead, if ``source`` has just that content."""
        part = self._part(number)
        with storing(self._parts):
            part.unlink(missing_ok=True)
            self._have[number] = 0
            try:
                copy_file(self.manifest.files[number], source, part)
            except Changed:
                return False
        del self._have[number]
        return True

    def take(self, piece: Piece) -> None:
        """Write one piece. Raises ``TandemError`` where it does not fit; offset 0 begins a file afresh."""
        if piece.file not in self._have:
            raise _bad_piece("a piece of a file that was not asked for")
        file, have = self.manifest.files[piece.file], self._have[piece.file]
        if piece.offset not in (have, 0):
            raise _bad_piece(f"a piece of {shown(file.path)} out of order")
        end = piece.offset + len(piece.data)
        if not 0 < len(piece.data) <= PIECE_BYTES or end > file.size:
            raise _bad_piece(f"a piece of {shown(file.path)} of a wrong size")
        with storing(self._parts):
            with self._part(piece.file).open("ab" if piece.offset else "wb") as part:
                part.write(piece.data)
            self._have[piece.file] = end
            if end == file.size and not self._settle(piece.file):
                raise _bad_piece(f"{shown(file.path)} with another content than announced")

    def finish(self) -> Path:
        """Move everything into place in one step; returns the place. Raises ``TandemError``."""
        if self._have:
            raise TandemError(
                code="transfer-incomplete",
                what=f"{len(self._have):,} of the project's {len(self.manifest.files):,} files did not come.",
                fix="Start the run again; what came already is kept.",
            )
        tree = self._parts / "tree"
        with storing(self._place):
            shutil.rmtree(tree, ignore_errors=True)
            tree.mkdir(mode=0o700)
            for number, file in enumerate(self.manifest.files):
                target = tree.joinpath(*file.path.split("/"))
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._part(number).rename(target)
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            tree.rename(self._place)
            self.abandon()
        return self._place

    def abandon(self) -> None:
        """Throw away what came so far."""
        shutil.rmtree(self._parts, ignore_errors=True)

    def _part(self, number: int) -> Path:
        return self._parts / f"{number}.part"

    def _resume(self, number: int) -> None:
        part, file = self._part(number), self.manifest.files[number]
        if part.is_symlink() or (part.exists() and not part.is_file()):
            raise _foreign(part)
        self._have[number] = part.stat().st_size if part.exists() else 0
        if file.size == 0 and not part.exists():
            part.touch(mode=0o600)
        if self._have[number] >= file.size:
            self._settle(number)

    def _settle(self, number: int) -> bool:
        """The file has all its bytes: keep it if they are right, else it is wanted from the start."""
        file = self.manifest.files[number]
        try:
            right = hash_file(self._part(number)) == (file.size, file.sha256)
        except NotRegular:
            right = False
        if right:
            del self._have[number]
        elif file.size == 0 and file.sha256 != _EMPTY:
            raise _bad_piece(f"{shown(file.path)} with a hash that no empty file has")
        else:
            self._part(number).unlink()
            self._have[number] = 0
        return right


def _bad_piece(what: str) -> TandemError:
    return TandemError(
        code="transfer-broken",
        what=f"The other laptop sent {what}.",
        fix="Start the run again. If it happens again, update Tandem on both laptops.",
    )


def _foreign(part: Path) -> TandemError:
    return TandemError(
        code="storage-failed",
        what=f"{shown(str(part))} is not a file that Tandem made.",
        fix="Remove it and start the run again.",
    )
