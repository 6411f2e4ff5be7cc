"""A project as a list of files with sizes and SHA-256: the basis of transfers, consent and checks."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

import msgspec

from core.vocabulary import units, wire
from core.vocabulary.bounds import MOST_FILES, FilePath, Files, Word
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.paths import Names, shown, why_unsafe

INLINE_BYTES = 250_000
"""Largest manifest in a message, as MessagePack. A longer one travels as a file."""
LIMIT_LISTING_BYTES = 32 << 20
LARGEST = 1 << 50
"""Largest size of a file, in bytes: safe for any arithmetic."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


_FORMAT = "tandem-project-1"


class ProjectFile(msgspec.Struct, frozen=True, kw_only=True):
    """One regular file. ``path`` is relative to the project's folder, with ``/`` on every platform."""

    path: FilePath
    size: int
    sha256: Word


class Manifest(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A script and all files that travel with it, by path. ``script`` is ``""`` for a run's outputs."""

    script: FilePath
    files: Files[ProjectFile]

    @cached_property
    def digest(self) -> ProjectId:
        """SHA-256 of the listing: equal for equal content, whoever made it."""
        return ProjectId(hashlib.sha256(self.listing()).hexdigest())

    def listing(self) -> bytes:
        """The one canonical encoding."""
        rows = [[file.path, file.size, file.sha256] for file in self.files]
        return wire.to_json([_FORMAT, self.script, rows])

    @cached_property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)


def manifest_of(script: str, files: Iterable[ProjectFile]) -> Manifest:
    """A manifest in canonical order."""
    return Manifest(script=script, files=tuple(sorted(files, key=lambda file: file.path)))


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Replaces a manifest that is too long for a message: the file to fetch instead, of ``size`` bytes."""

    digest: Word
    size: Annotated[int, msgspec.Meta(gt=0, le=LIMIT_LISTING_BYTES)]

    @property
    def as_files(self) -> Manifest:
        """A manifest with that file only. Its SHA-256 is the manifest's digest."""
        return manifest_of("", [ProjectFile(path="listing", size=self.size, sha256=self.digest)])


def listing_of(manifest: Manifest) -> Listing | None:
    """None: it fits into a message. Takes a second for 100,000 files."""
    if len(wire.to_msgpack(manifest)) <= INLINE_BYTES:
        return None
    return Listing(digest=manifest.digest, size=len(manifest.listing()))


class _Listed(msgspec.Struct, frozen=True, array_like=True):
    format: Literal["tandem-project-1"]
    script: FilePath
    rows: Files[tuple[FilePath, int, Word]]


def read_listing(data: bytes) -> Manifest:
    """Raises ``TandemError`` unless it is a manifest, in the canonical encoding."""
    try:
        listed = wire.from_json(data, _Listed)
    except msgspec.DecodeError as error:
        raise _refused("the list of its files cannot be read") from error
    files = (ProjectFile(path=path, size=size, sha256=sha256) for path, size, sha256 in listed.rows)
    manifest = Manifest(script=listed.script, files=tuple(files))
    if manifest.listing() != data:
        raise _refused("the list of its files cannot be read")
    return manifest


Difference = Literal["new", "changed", "gone"]


def differences(before: Manifest, now: Manifest) -> dict[str, Difference]:
    """Changed files, by path."""
    old, new = ({file.path: file.sha256 for file in each.files} for each in (before, now))
    found: dict[str, Difference] = dict.fromkeys(sorted(new.keys() - old.keys()), "new")
    found |= {path: "changed" for path in new if path in old and new[path] != old[path]}
    return found | dict.fromkeys(sorted(old.keys() - new.keys()), "gone")


def code_digest(manifest: Manifest) -> str:
    """SHA-256 of a project's Python files: the script's outputs do not change it."""
    code = [file for file in manifest.files if file.path.endswith((".py", ".ipynb"))]
    return hashlib.sha256(wire.to_msgpack(code)).hexdigest()


def check_project(manifest: Manifest) -> None:
    """Raises ``TandemError`` unless this manifest, which may come from a peer, is safe."""
    check_files(manifest.files)
    if not any(file.path == manifest.script for file in manifest.files):
        raise _refused(f"its script {shown(manifest.script)!r} is not among its files")


def check_files(
    files: tuple[ProjectFile, ...], *, limit_bytes: float = math.inf, limit_files: int = MOST_FILES
) -> None:
    """Raises ``TandemError`` where a path could escape or collide, or a limit is exceeded. Writes nothing."""
    if len(files) > limit_files:
        raise _refused(f"it has {len(files):,} files, and the limit is {limit_files:,}")
    total = 0
    for file in files:
        if reason := why_unsafe(file.path):
            raise _refused(f"{shown(file.path)!r}: {reason}")
        if not _SHA256.fullmatch(file.sha256) or not 0 <= file.size <= LARGEST:
            raise _refused(f"{shown(file.path)!r} has no valid size and SHA-256")
        total += file.size
    if total > limit_bytes:
        raise _refused(f"its files take {units.size(total)}, and the limit is {units.size(limit_bytes)}")
    if collision := find_collision(file.path for file in files):
        raise _refused(
            f"{shown(collision[0])!r} and {shown(collision[1])!r} have the same name on some systems"
        )
    if any(one.path >= two.path for one, two in pairwise(files)):
        raise _refused("its files are not in order")


def find_collision(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two paths that are the same file on some system, or that need one name as both file and folder."""
    names = Names()
    for path in paths:
        if other := names.take(path):
            return other, path
    return None


def _refused(reason: str) -> TandemError:
    return TandemError(
        code="project-refused",
        what=f"The project was refused: {reason}.",
        fix="Nothing was written. Rename the file, or exclude it with a line in .tandemignore, on the "
        "laptop that sends the project.",
    )
