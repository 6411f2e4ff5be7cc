"""A project as a list of files with sizes and SHA-256: what travels, is consented to and checked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Literal

import msgspec

from core.vocabulary import wire
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.paths import Names, shown, why_unsafe

LIMIT_BYTES = 100_000_000
LIMIT_FILES = 5_000
LIMIT_MANIFEST_BYTES = 900_000
"""As MessagePack: a manifest goes into one frame of a link (1 MiB)."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class ProjectFile(msgspec.Struct, frozen=True, kw_only=True):
    """One regular file. ``path`` is relative to the project's folder, with ``/`` on every platform."""

    path: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A script and all files that travel with it, by path. ``script`` is ``""`` for a run's outputs."""

    script: str
    files: tuple[ProjectFile, ...]

    @cached_property
    def digest(self) -> ProjectId:
        """SHA-256 over the one canonical encoding: equal for equal content, whoever wrote it down."""
        rows = [[file.path, file.size, file.sha256] for file in self.files]
        text = wire.to_json(["tandem-project-1", self.script, rows])
        return ProjectId(hashlib.sha256(text).hexdigest())

    @cached_property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)


def manifest_of(script: str, files: Iterable[ProjectFile]) -> Manifest:
    """A manifest in canonical order."""
    return Manifest(script=script, files=tuple(sorted(files, key=lambda file: file.path)))


Difference = Literal["new", "changed", "gone"]


def differences(before: Manifest, now: Manifest) -> dict[str, Difference]:
    """By path, what is not as it was."""
    old, new = ({file.path: file.sha256 for file in each.files} for each in (before, now))
    found: dict[str, Difference] = dict.fromkeys(sorted(new.keys() - old.keys()), "new")
    found |= {path: "changed" for path in new if path in old and new[path] != old[path]}
    return found | dict.fromkeys(sorted(old.keys() - new.keys()), "gone")


def code_digest(manifest: Manifest) -> str:
    """SHA-256 of what is Python among a project's files: what the script writes does not change it."""
    code = [file for file in manifest.files if file.path.endswith((".py", ".ipynb"))]
    return hashlib.sha256(wire.to_msgpack(code)).hexdigest()


def check_project(manifest: Manifest) -> None:
    """Raises ``TandemError`` unless this manifest, which may come from a peer, is safe and within limits."""
    check_files(manifest.files, limit_bytes=LIMIT_BYTES, limit_files=LIMIT_FILES)
    if not any(file.path == manifest.script for file in manifest.files):
        raise _refused(f"its script {shown(manifest.script)!r} is not among its files")


def check_files(files: tuple[ProjectFile, ...], *, limit_bytes: int, limit_files: int) -> None:
    """Raises ``TandemError`` where a path could escape or collide, or a limit is passed. Writes nothing."""
    if len(files) > limit_files:
        raise _refused(f"it holds {len(files):,} files, and {limit_files:,} is the most")
    if len(wire.to_msgpack(files)) > LIMIT_MANIFEST_BYTES:
        raise _refused("the list of its files is too long for one message")
    total = 0
    for file in files:
        if reason := why_unsafe(file.path):
            raise _refused(f"{shown(file.path)!r}: {reason}")
        if not _SHA256.fullmatch(file.sha256) or file.size < 0:
            raise _refused(f"{shown(file.path)!r} comes without a proper size and SHA-256")
        total += file.size
    if total > limit_bytes:
        raise _refused(f"its files are {total / 1e6:,.1f} MB, and {limit_bytes / 1e6:,.0f} MB is the most")
    if collision := find_collision(file.path for file in files):
        raise _refused(f"{shown(collision[0])!r} and {shown(collision[1])!r} are one name on some systems")
    if any(one.path >= two.path for one, two in pairwise(files)):
        raise _refused("its files are not in order")


def find_collision(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two paths that some file system takes for one, or a path that needs another one to be a folder."""
    names = Names()
    for path in paths:
        if other := names.take(path):
            return other, path
    return None


def _refused(reason: str) -> TandemError:
    return TandemError(
        code="project-refused",
        what=f"The project was refused: {reason}.",
        fix="Nothing was written. Mend the name or leave the file out with a line in .tandemignore, on the "
        "laptop that sends the project.",
    )
