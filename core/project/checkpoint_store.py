"""Checkpoints on a member's disk: folders of files with a hashed manifest, of which the newest two stay.

What the files say is the engine's business (core/trainer/exact/); here they are bytes. Blocks: use a thread.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from core.home.private_file import sync_folder, write_new
from core.project.files import NotRegular, hash_file
from core.vocabulary import wire
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.manifest import Manifest, ProjectFile, check_files, manifest_of
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.run_folder import CHECKPOINTS

MANIFEST = "manifest.json"
FORMAT = "tandem-checkpoint-1"
KEPT = 2
LIMIT_FILES = 2_000
LIMIT_BYTES = 4_000_000_000
RUNS_LIMIT_BYTES = 5_000_000_000
"""Of all runs together, on this laptop."""
_LONGEST_MANIFEST = 1_000_000

_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}\.(?:json|bin)")
_SERIAL = re.compile(r"[0-9]{8}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    size: int
    sha256: str


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint's manifest. Members that keep the same have the same bytes, so that none has to travel."""

    format: str = FORMAT
    moment: Moment
    shares: tuple[int, ...]
    """Of the members, in rank order, when it was made."""
    files: tuple[KeptFile, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One that lies in ``folder``."""

    folder: str
    head: Head


def write(
    folder: Path,
    moment: Moment,
    shares: tuple[int, ...],
    files: Mapping[str, Iterable[bytes | memoryview]],
    unchanged: Mapping[str, tuple[Path, KeptFile]],
) -> Checkpoint:
    """Make a checkpoint in ``folder``, wholly or not at all, and drop all but the newest two.

    ``unchanged``: files of another checkpoint, with what is known of them. Raises ``OSError``.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder / f".{secrets.token_hex(4)}.part"
    part.mkdir(mode=0o700)
    try:
        kept = [_write(part / name, buffers) for name, buffers in files.items()]
        for name, (source, known) in unchanged.items():
            _link(source, part / name)
            kept.append(known)
        kept.sort(key=lambda file: file.name)
        head = Head(moment=moment, shares=shares, files=tuple(kept))
        write_new(part / MANIFEST, wire.to_json(head))
        sync_folder(part)
        place = next_place(folder)
        part.replace(place)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    sync_folder(folder)
    for old in _folders(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return Checkpoint(folder=str(place), head=head)


def newest(folder: Path) -> Checkpoint | None:
    """The newest one whose every byte is as its manifest says; an older one where the newest is damaged."""
    return next((found for found in _listed(folder) if intact(found)), None)


def look(folder: Path) -> Checkpoint | None:
    """As ``newest``, at a glance: sizes are compared, contents are not."""
    return next(iter(looks(folder)), None)


def looks(folder: Path) -> list[Checkpoint]:
    """All that are whole at a glance, the newest first."""
    return [found for found in _listed(folder) if _sizes_fit(found)]


def read_head(data: bytes) -> Head:
    """A manifest, which may come from a peer. Raises ``TandemError`` where it is none or not safe to obey."""
    try:
        head = wire.from_json(data, Head) if len(data) <= _LONGEST_MANIFEST else None
    except msgspec.DecodeError:
        head = None
    if head is None:
        raise _refused("its manifest cannot be read")
    check_head(head)
    return head


def check_head(head: Head) -> None:
    """Raises ``TandemError`` where a manifest names what it must not, or more than the limits allow."""
    names = [file.name for file in head.files]
    if head.format != FORMAT:
        raise _refused("another Tandem made it")
    if len(names) > LIMIT_FILES or len(set(names)) != len(names):
        raise _refused("its list of files cannot be right")
    for file in head.files:
        if not _NAME.fullmatch(file.name) or file.name == MANIFEST:
            raise _refused("it names a file that no checkpoint has")
        if file.size < 0 or not _SHA256.fullmatch(file.sha256):
            raise _refused("a file comes without a proper size and SHA-256")
    if head.total_bytes > LIMIT_BYTES:
        raise _refused(f"it is larger than {LIMIT_BYTES / 1e9:.0f} GB")


def intact(checkpoint: Checkpoint) -> bool:
    """Whether every file is there, with the bytes that the manifest tells."""
    folder = Path(checkpoint.folder)
    try:
        return all(
            hash_file(folder / file.name) == (file.size, file.sha256) for file in checkpoint.head.files
        )
    except (OSError, NotRegular):
        return False


def at(folder: Path) -> Checkpoint | None:
    """The checkpoint in this folder, as its manifest tells it; None where there is none."""
    try:
        path = folder / MANIFEST
        if path.stat().st_size > _LONGEST_MANIFEST:
            return None
        return Checkpoint(folder=str(folder), head=read_head(path.read_bytes()))
    except (OSError, TandemError):
        return None


def listing(checkpoint: Checkpoint) -> Manifest:
    """A checkpoint as a list of files, its own manifest among them: how it travels, and what names it."""
    size, sha256 = hash_file(Path(checkpoint.folder) / MANIFEST)
    files = [
        ProjectFile(path=file.name, size=file.size, sha256=file.sha256) for file in checkpoint.head.files
    ]
    return manifest_of("", [*files, ProjectFile(path=MANIFEST, size=size, sha256=sha256)])


def check_listing(listing: Manifest) -> None:
    """Raises ``TandemError`` unless it is one of a checkpoint, safe to receive and within limits."""
    check_files(listing.files, limit_bytes=LIMIT_BYTES, limit_files=LIMIT_FILES)
    names = {file.path for file in listing.files}
    if MANIFEST not in names or not all(_NAME.fullmatch(name) for name in names):
        raise _refused("it names a file that no checkpoint has")


def find(folder: Path, digest: ProjectId) -> Checkpoint | None:
    """The one with just these files, if it lies here whole."""
    for found in _listed(folder):
        try:
            if listing(found).digest == digest and intact(found):
                return found
        except (OSError, NotRegular):
            continue
    return None


def adopt(found: Checkpoint, folder: Path) -> Path:
    """Another run's checkpoint as the first of its own; the same bytes on the disk. Raises ``OSError``."""
    place = first(folder)
    place.mkdir(mode=0o700, parents=True)
    for name in (*(file.name for file in found.head.files), MANIFEST):
        _link(Path(found.folder) / name, place / name)
    return place


def first(folder: Path) -> Path:
    """Where a run's first checkpoint is: the one that it resumes from, if it resumes another run."""
    return folder / f"{1:08d}"


def resumed(run: Path, plan: Plan) -> Path | None:
    """Where the checkpoint is that the run in this folder resumes from, if it does."""
    return None if plan.resume is None else first(run / CHECKPOINTS)


def next_place(folder: Path) -> Path:
    """Where one more may be put."""
    return folder / f"{max((int(path.name) for path in _folders(folder)), default=0) + 1:08d}"


def trim(runs: Path, limit_bytes: int = RUNS_LIMIT_BYTES) -> None:
    """Throw away those of the oldest runs until the rest fits; the newest run's stay. Ids sort by time."""
    room = limit_bytes
    having = {folder.parent for folder in runs.glob(f"*/{CHECKPOINTS}*")}
    for number, run in enumerate(sorted(having, reverse=True)):
        folders = list(run.glob(f"{CHECKPOINTS}*"))  # one for each trainer
        room -= sum(path.stat().st_size for each in folders for path in each.rglob("*") if path.is_file())
        if room < 0 and number:
            for folder in folders:
                clear(folder)


def clear(folder: Path) -> None:
    """Throw all of them away: the training that they are of has come to its end."""
    shutil.rmtree(folder, ignore_errors=True)


def _listed(folder: Path) -> list[Checkpoint]:
    return [found for path in _folders(folder) if (found := at(path)) is not None]


def _folders(folder: Path) -> list[Path]:
    """The newest first."""
    try:
        found = [path for path in folder.iterdir() if _SERIAL.fullmatch(path.name) and path.is_dir()]
    except OSError:
        return []
    return sorted(found, key=lambda path: path.name, reverse=True)


def _sizes_fit(checkpoint: Checkpoint) -> bool:
    folder = Path(checkpoint.folder)
    try:
        return all((folder / file.name).stat().st_size == file.size for file in checkpoint.head.files)
    except OSError:
        return False


def _write(path: Path, buffers: Iterable[bytes | memoryview]) -> KeptFile:
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for buffer in buffers:
            digest.update(buffer)
            size += file.write(buffer)
        file.flush()
        os.fsync(descriptor)
    return KeptFile(name=path.name, size=size, sha256=digest.hexdigest())


def _link(source: Path, target: Path) -> None:
    """The same bytes under another name; a copy where the disk knows no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _refused(reason: str) -> TandemError:
    return TandemError(
        code="checkpoint-refused",
        what=f"The checkpoint cannot be used: {reason}.",
        fix="Start the training anew.",
    )
