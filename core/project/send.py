"""Reads parts of a manifest's files for a peer, as long as the files match the manifest. Blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Protocol

import msgspec

from core.project.chunks import chunks, packed
from core.runtime.regular_file import READ_BYTES, Folder, NotRegular
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.manifest import Listing, Manifest, ProjectFile
from core.vocabulary.paths import shown


class Extent(msgspec.Struct, frozen=True, array_like=True):
    """``length`` bytes of file number ``file`` of a manifest, from ``offset`` on."""

    file: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    offset: Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
    length: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]


NOT_OFFERED = Problem(code="not-offered", what="The other laptop no longer offers these files.")


class NotYet(Exception):
    """The files are still on their way here."""


class Reader(Protocol):
    """Reads parts of a manifest's files."""

    @property
    def digest(self) -> ProjectId:
        """The manifest's."""

    def read(self, extents: Iterable[Extent]) -> bytes:
        """All extents, one after the other. Raises ``TandemError`` and ``NotYet``."""

    def outline(self, number: int) -> bytes:
        """A file's packed chunks, or nothing. Raises ``TandemError``."""

    def close(self) -> None: ...


class ManifestReader:
    """For one peer and one thread. ``close`` it. ``inside``: a folder in ``folder`` that has the files.

    Neither that folder nor any on the path to a file may be a link.

    The last byte of a file is held back until the file's hash is verified: a peer never gets the whole of a
    file that changed since the manifest was made. Reading a file's parts in order is therefore cheapest.
    """

    def __init__(self, folder: Path, manifest: Manifest, *, inside: str = "") -> None:
        self.manifest = manifest
        self._folder = Folder(folder)
        self._inside = f"{inside}/" if inside else ""
        self._reading: _Reading | None = None

    @property
    def digest(self) -> ProjectId:
        return self.manifest.digest

    def read(self, extents: Iterable[Extent]) -> bytes:
        """All extents, one after the other. Raises ``TandemError``."""
        return b"".join(map(self._read, extents))

    def outline(self, number: int) -> bytes:
        """A file's packed chunks. Raises ``TandemError``."""
        file = _asked_for(Extent(number, 0, 1), self.manifest)
        try:
            with self._folder.open_regular(f"{self._inside}{file.path}") as opened:
                return packed(chunks(opened, file.size))
        except (OSError, NotRegular) as error:
            raise _changed(file) from error

    def close(self) -> None:
        self._close_file()
        self._folder.close()

    def _close_file(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def _read(self, extent: Extent) -> bytes:
        file = _asked_for(extent, self.manifest)
        try:
            if self._reading is None or (self._reading.file, self._reading.at) != (file, extent.offset):
                self._close_file()
                self._reading = _Reading(self._folder, f"{self._inside}{file.path}", file)
                self._reading.skip(extent.offset)
            data = self._reading.read(extent.length)
        except (OSError, NotRegular) as error:
            self._close_file()
            raise _changed(file) from error
        except TandemError:
            self._close_file()
            raise
        if self._reading.at == file.size:
            self._close_file()
        return data


class ListingReader:
    """As ``ManifestReader``, for a manifest's listing, which is made when it is first read."""

    def __init__(self, manifest: Manifest, listing: Listing) -> None:
        self.manifest = listing.as_files
        self._of, self._data = manifest, b""

    @property
    def digest(self) -> ProjectId:
        return self.manifest.digest

    def read(self, extents: Iterable[Extent]) -> bytes:
        self._data = self._data or self._of.listing()
        parts = []
        for extent in extents:
            end = extent.offset + extent.length
            parts.append(self._data[extent.offset : end])
            if end == _asked_for(extent, self.manifest).size:
                self.close()
        return b"".join(parts)

    def outline(self, number: int) -> bytes:
        """Lists are sent whole."""
        return b""

    def close(self) -> None:
        self._data = b""


def _asked_for(extent: Extent, manifest: Manifest) -> ProjectFile:
    """The file that an extent is part of. Raises ``TandemError`` where there is no such part."""
    files = manifest.files
    if extent.file >= len(files) or extent.offset + extent.length > files[extent.file].size:
        raise TandemError(
            code="transfer-broken",
            what="The other laptop asked for a file that the project does not have.",
            fix="Start the run again. If it happens again, update Tandem on both laptops.",
        )
    return files[extent.file]


class _Reading:
    """One file, read and hashed from its beginning."""

    def __init__(self, folder: Folder, path: str, file: ProjectFile) -> None:
        self.file, self.at = file, 0
        self._digest, self._stream = hashlib.sha256(), folder.open_regular(path, buffering=0)

    def skip(self, offset: int) -> None:
        """Read even what the peer already has: the hash covers the whole file."""
        while self.at < offset:
            self.read(min(READ_BYTES, offset - self.at))

    def read(self, length: int) -> bytes:
        """Raises ``TandemError`` where the file differs from the manifest."""
        self.at += length
        ends = self.at == self.file.size
        data = self._read(length + ends)  # a byte after the end shows that the file has grown
        self._digest.update(data)
        if len(data) != length or (ends and self._digest.hexdigest() != self.file.sha256):
            raise _changed(self.file)
        return data

    def _read(self, length: int) -> bytes:
        """``length`` bytes, or fewer at the end of the file: an unbuffered read may return fewer anywhere."""
        data = self._stream.read(length)
        while len(data) < length and (more := self._stream.read(length - len(data))):
            data += more
        return data

    def close(self) -> None:
        self._stream.close()


def _changed(file: ProjectFile) -> TandemError:
    return TandemError(
        code="project-changed",
        what=f"{shown(file.path)} changed while the project was being sent.",
        fix="Save your files, let no other program write into the script's folder, and start the run again.",
    )
