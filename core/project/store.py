"""Projects that other laptops sent, under their digest in the node's home. Blocks: use a thread."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from core.home.private_file import write_atomically
from core.project.copy import Changed, copy_project, storing
from core.project.receipt import Receipt
from core.project.texts import read_exactly
from core.vocabulary import wire
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId, short
from core.vocabulary.manifest import Manifest, ProjectFile, check_project
from core.vocabulary.paths import shown

LIMIT_BYTES = 2_000_000_000
"""The least recently used projects beyond this are thrown away."""
UNFINISHED_KEPT = 3


class ProjectStore:
    """``DIGEST/`` holds a project's files, ``DIGEST.json`` its manifest, ``incoming/`` what is on its way.

    Only the store's own folder is ever written, only under names that ``check_project`` passed, and nothing
    in it is ever run: a run gets a copy of its own, verified while it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, digest: ProjectId) -> bool:
        return self._files(digest).is_dir() and self.manifest(digest) is not None

    def manifest(self, digest: ProjectId) -> Manifest | None:
        """The manifest kept under this digest; None where there is none, or where it was tampered with."""
        try:
            manifest = wire.from_json(self._list(digest).read_bytes(), Manifest)
            check_project(manifest)
        except (OSError, msgspec.DecodeError, TandemError):
            return None
        return manifest if manifest.digest == digest else None

    def read(self, digest: ProjectId, file: ProjectFile) -> bytes | None:
        """A kept project's file; None where it is not here as it was sent."""
        return read_exactly(self._files(digest).joinpath(*file.path.split("/")), file)

    def receive(self, manifest: Manifest) -> Receipt:
        """Begin or continue to receive a project: ask for ``wanted``, ``take`` pieces, then ``keep``.

        Content that another version of the project brought already is taken from there. Raises
        ``TandemError`` where the manifest is unsafe or the disk has no room.
        """
        check_project(manifest)
        with storing(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        receipt = Receipt(manifest, self._folder / "incoming" / manifest.digest, self._files(manifest.digest))
        known = self._known()
        for wanted in receipt.wanted:
            if source := known.get(manifest.files[wanted.file].sha256):
                receipt.adopt(wanted.file, source)
        return receipt

    def keep(self, receipt: Receipt) -> None:
        """Every piece came: the project is in the store from here on. Raises ``TandemError``."""
        digest = receipt.manifest.digest
        if self.has(digest):
            receipt.abandon()
            return
        with storing(self._folder):
            shutil.rmtree(self._files(digest), ignore_errors=True)
            receipt.finish()
            write_atomically(self._list(digest), wire.to_json(receipt.manifest))

    def checkout(self, manifest: Manifest, run_folder: Path) -> Path:
        """A working copy for one run in ``run_folder/work``, every byte verified. Raises ``TandemError``.

        What a script writes there never reaches the store. A damaged project is thrown away.
        """
        check_project(manifest)
        work = run_folder / "work"
        try:
            copy_project(manifest, self._files(manifest.digest), work)
        except Changed as changed:
            self.forget(manifest.digest)
            raise TandemError(
                code="project-damaged",
                what=f"The stored project {short(manifest.digest)} is damaged: {shown(changed.path)} is "
                "missing or not what was sent.",
                fix="It has been thrown away; start the run again and it is sent anew.",
            ) from changed
        with storing(self._folder):
            os.utime(self._list(manifest.digest))
        return work

    def used_s(self, digest: ProjectId) -> float:
        """When a run last began with it, Unix time; 0: it is not here."""
        try:
            return self._list(digest).stat().st_mtime
        except OSError:
            return 0.0

    def forget(self, digest: ProjectId) -> None:
        """Also what has come of it so far, if it is on its way."""
        self._list(digest).unlink(missing_ok=True)
        shutil.rmtree(self._folder / "incoming" / digest, ignore_errors=True)
        shutil.rmtree(self._files(digest), ignore_errors=True)

    def trim(self, *, keep: frozenset[ProjectId] = frozenset(), limit_bytes: int = LIMIT_BYTES) -> None:
        """Throw away the least recently used projects until the rest fits; never those in ``keep``.

        Of those that never arrived completely, the newest few stay, so that receiving them can continue.
        """
        digests = sorted(self._digests(), key=lambda digest: self._list(digest).stat().st_mtime_ns)
        sizes = {digest: found.total_bytes for digest in digests if (found := self.manifest(digest))}
        total = sum(sizes.values())
        for digest in digests:
            if total > limit_bytes and digest not in keep:
                self.forget(digest)
                total -= sizes.get(digest, 0)
        unfinished = sorted(
            (path for path in (self._folder / "incoming").glob("*") if path.name not in keep),
            key=lambda path: path.stat().st_mtime_ns,
        )
        for path in unfinished[:-UNFINISHED_KEPT]:
            shutil.rmtree(path, ignore_errors=True)

    def _files(self, digest: ProjectId) -> Path:
        return self._folder / digest

    def _list(self, digest: ProjectId) -> Path:
        return self._folder / f"{digest}.json"

    def _digests(self) -> list[ProjectId]:
        return [ProjectId(path.stem) for path in self._folder.glob("*.json") if len(path.stem) == 64]

    def _known(self) -> dict[str, Path]:
        """Where content lies that is here already, by SHA-256. It is verified when it is taken."""
        known: dict[str, Path] = {}
        for digest in self._digests():
            if manifest := self.manifest(digest):
                for file in manifest.files:
                    known[file.sha256] = self._files(digest).joinpath(*file.path.split("/"))
        return known
