"""Projects and data from other laptops, stored under their digest in the node's home. Blocks: use a
thread."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import msgspec

from core.home.private_file import write_atomically
from core.project.chunks import LEAST_BYTES
from core.project.copy import Changed, check_paths, check_room, copy_project, storing
from core.project.data import scan_data
from core.project.files import UNWATCHED, DiskUse, ReadMeter, disk_use
from core.project.receipt import TREE, Receipt
from core.project.texts import read_exactly
from core.vocabulary import wire
from core.vocabulary.bounds import Few
from core.vocabulary.data import Data
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId, short
from core.vocabulary.manifest import Manifest, ProjectFile, check_files, check_project
from core.vocabulary.paths import shown
from core.vocabulary.run_folder import WORK

_EXPECTED = "expected"
_Expected = Few[ProjectId]


class ProjectStore:
    """``DIGEST/`` holds a project's files, ``DIGEST.json`` its manifest, ``incoming/`` unfinished transfers.

    Writes only inside the store's own folder, and only under names that ``check_project`` passed. Nothing in
    the store is ever run: a run gets a separate copy, verified while it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, digest: ProjectId) -> bool:
        return self._files(digest).is_dir() and self.manifest(digest) is not None

    def manifest(self, digest: ProjectId) -> Manifest | None:
        """The manifest kept under this digest; None where there is none, or where it was tampered with."""
        try:
            manifest = wire.from_json(self._list(digest).read_bytes(), Manifest)
            _check(manifest)
        except (OSError, msgspec.DecodeError, TandemError):
            return None
        return manifest if manifest.digest == digest else None

    def read(self, digest: ProjectId, file: ProjectFile) -> bytes | None:
        """A kept project's file; None where it is missing or altered."""
        return read_exactly(self._files(digest).joinpath(*file.path.split("/")), file)

    def find_data(self, data: Data, hashes: Path | None = None, meter: ReadMeter = UNWATCHED) -> Path | None:
        """The path of data stored here; None where there is none, or where it was altered, which removes it.
        ``hashes``: as in ``scan_data``, so that unchanged files are read once. Raises ``TandemError``, also
        where it cannot be read now.

        Security invariant: a peer that names a stored project as data does not get it removed.
        """
        digest = ProjectId(data.listing.digest)
        if (manifest := self.manifest(digest)) is None or manifest.script or not self.has(digest):
            return None
        place = Path(os.path.realpath(self._files(digest)))
        try:
            found = _find_files(data, place, manifest, hashes, meter)
        except TandemError as error:
            if isinstance(error.__cause__, OSError):  # this may be temporary
                raise _unreadable(data.name) from error
            found = None
        if found is None or found.digest != digest:
            if found is not None and not _is_altered(place, manifest, found):
                raise _unreadable(data.name)
            self.forget(digest)
            return None
        with storing(self._folder):
            os.utime(self._list(digest))
        return place / manifest.files[0].path if data.is_file else place

    def check_room(self, manifest: Manifest, copies: int, more_bytes: int = 0) -> None:
        """Raises ``TandemError`` where the disk lacks space for the missing files, ``copies`` working copies
        and ``more_bytes``, or a path would be too long."""
        missing = manifest.total_bytes - self.came_bytes(manifest.digest)
        missing = 0 if self.has(manifest.digest) else max(0, missing)
        with storing(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_paths(manifest, self._folder / "incoming" / manifest.digest / TREE, self._folder)
        check_room(self._folder, missing + copies * manifest.total_bytes + more_bytes)

    def came_bytes(self, digest: ProjectId) -> int:
        """Bytes of a project that an unfinished transfer has brought."""
        placed = () if self.has(digest) else (self._files(digest),)
        return disk_use(*placed, self._folder / "incoming" / digest).total

    def disk_use(self, digest: ProjectId) -> DiskUse:
        """Size of a stored project's files. Versions of a project share identical files."""
        return disk_use(self._files(digest))

    def receive(
        self,
        manifest: Manifest,
        own: Mapping[str, Path] = MappingProxyType({}),
        meter: ReadMeter = UNWATCHED,
    ) -> Receipt:
        """Begin or continue to receive a project: request what the receipt ``wanted``, let it ``take`` the
        pieces, then ``add`` it.

        Reuses content of other versions of the project, including parts of files. ``own``: this user's files,
        by SHA-256, which are copied if they are still the same. Raises ``TandemError`` where the manifest is
        unsafe, a path would be too long, or the disk is full.
        """
        _check(manifest)
        with storing(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        parts, known = self._folder / "incoming" / manifest.digest, self._known()
        check_paths(manifest, parts / TREE, self._folder)
        placed = self._files(manifest.digest)
        if not self.has(manifest.digest) and placed.is_dir() and not placed.is_symlink():
            self._take_back(manifest.digest, parts)
        receipt = Receipt(manifest, parts, placed, known, meter)
        for wanted in receipt.wanted:
            if (source := own.get(manifest.files[wanted.file].sha256)) is not None:
                receipt.adopt(wanted.file, source, may_change=True)
        receipt.similar = self._similar(receipt)
        return receipt

    def add(self, receipt: Receipt) -> None:
        """Add to the store a project whose pieces have all arrived. Raises ``TandemError``."""
        digest = receipt.manifest.digest
        if self.has(digest):
            receipt.abandon()
            return
        with storing(self._folder):
            shutil.rmtree(self._files(digest), ignore_errors=True)
            receipt.finish()
            write_atomically(self._list(digest), wire.to_json(receipt.manifest))

    def checkout(self, manifest: Manifest, run_folder: Path, meter: ReadMeter = UNWATCHED) -> Path:
        """A working copy for one run in ``run_folder/work``, every byte verified. Raises ``TandemError``.

        A script's writes there never reach the store. A damaged project is deleted.
        """
        check_project(manifest)
        work = run_folder / WORK
        try:
            copy_project(manifest, self._files(manifest.digest), work, meter)
        except Changed as changed:
            self.forget(manifest.digest)
            raise TandemError(
                code="project-damaged",
                what=f"The stored project {short(manifest.digest)} is damaged: {shown(changed.path)} is "
                "missing or not what was sent.",
                fix="Start the run again: the damaged copy was deleted, and the project will be sent again.",
            ) from changed
        with storing(self._folder):
            os.utime(self._list(manifest.digest))
        return work

    def _take_back(self, digest: ProjectId, parts: Path) -> None:
        """Undo a transfer that moved the files into place but did not write their list."""
        with storing(self._folder):
            parts.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.rmtree(parts / TREE, ignore_errors=True)
            self._files(digest).rename(parts / TREE)

    def used_s(self, digest: ProjectId) -> float:
        """When a project was last used by a run, Unix time; 0: it is not here."""
        try:
            return self._list(digest).stat().st_mtime
        except OSError:
            return 0.0

    def forget(self, digest: ProjectId) -> None:
        """Delete a project, including an unfinished transfer of it."""
        self._list(digest).unlink(missing_ok=True)
        shutil.rmtree(self._folder / "incoming" / digest, ignore_errors=True)
        shutil.rmtree(self._files(digest), ignore_errors=True)

    def unfinished(self) -> list[Path]:
        """Folders of incomplete transfers, including complete files whose manifest was not written. They are
        continued when the projects are sent again."""
        placed = (path for path in self._folder.glob("*") if len(path.name) == 64)
        unlisted = (path for path in placed if not self._list(ProjectId(path.name)).exists())
        return [*(self._folder / "incoming").glob("*"), *unlisted]

    def expect(self, digests: Iterable[ProjectId]) -> None:
        """Record that another laptop is sending these for a run whose plan is not recorded yet: what has
        arrived of them must not be removed to make room. Raises ``TandemError``."""
        with storing(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self._folder / _EXPECTED, wire.to_json(tuple(digests)))

    def expected(self) -> frozenset[str]:
        """The digests of the last ``expect``."""
        with suppress(OSError, msgspec.DecodeError):
            return frozenset(msgspec.json.decode((self._folder / _EXPECTED).read_bytes(), type=_Expected))
        return frozenset()

    def _files(self, digest: ProjectId) -> Path:
        return self._folder / digest

    def _list(self, digest: ProjectId) -> Path:
        return self._folder / f"{digest}.json"

    def digests(self) -> list[ProjectId]:
        """All complete projects, and perhaps some damaged ones."""
        return [ProjectId(path.stem) for path in self._folder.glob("*.json") if len(path.stem) == 64]

    def _similar(self, receipt: Receipt) -> dict[int, Path]:
        """Paths of similar files by the number of each missing large file: the most recently used version
        with the same path."""
        files = receipt.manifest.files
        missing = {files[want.file].path: want.file for want in receipt.wanted}
        found: dict[int, Path] = {}
        for digest in sorted(self.digests(), key=self.used_s):
            for file in (self.manifest(digest) or receipt.manifest).files:
                number = missing.get(file.path)
                if number is not None and min(file.size, files[number].size) >= LEAST_BYTES:
                    found[number] = self._files(digest).joinpath(*file.path.split("/"))
        return found

    def _known(self) -> dict[str, Path]:
        """Paths of files that are already here, by SHA-256. Their content is verified when it is used."""
        known: dict[str, Path] = {}
        for digest in self.digests():
            if manifest := self.manifest(digest):
                for file in manifest.files:
                    known[file.sha256] = self._files(digest).joinpath(*file.path.split("/"))
        return known


def _unreadable(name: str) -> TandemError:
    return TandemError(
        code="data-unreadable",
        what=f"The data {name}, stored on this laptop, cannot be read at the moment.",
        fix="Close programs that use it, check that its disk is connected, and start the run again.",
    )


def _check(manifest: Manifest) -> None:
    """Raises ``TandemError``. Data has no script."""
    if manifest.script:
        check_project(manifest)
    else:
        check_files(manifest.files)


def _find_files(
    data: Data, place: Path, kept: Manifest, hashes: Path | None, meter: ReadMeter
) -> Manifest | None:
    """The files that are at ``place`` now; None: something else is there. Raises ``TandemError``."""
    name = kept.files[0].path
    if not data.is_file or len(kept.files) > 1:
        return scan_data(place, "", hashes, meter)
    # Scanned by name, since a single file may be hidden; files of a folder may not.
    return None if _is_gone(place / name) else scan_data(place / name, name, hashes, meter)


def _is_altered(place: Path, kept: Manifest, found: Manifest) -> bool:
    """Whether files differ; False where files are only inaccessible."""
    before, now = set(kept.files), set(found.files)
    lacking = (place.joinpath(*file.path.split("/")) for file in before - now)
    return not now <= before or any(map(_is_gone, lacking))


def _is_gone(path: Path) -> bool:
    """Whether there is no regular file at this path, or only through a link."""
    try:
        return not stat.S_ISREG(path.lstat().st_mode) or path.resolve() != path
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
