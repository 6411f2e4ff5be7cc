"""Checkpoints on a member's disk: folders of files with a hashed manifest. Keeps the newest two, and the
newest one that an audit confirmed.

The engine interprets the files (core/trainer/exact/); here they are bytes. Blocks: use a thread.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from core.home.private_file import sync_folder, write_atomically, write_new
from core.project.files import UNWATCHED, DiskUse, ReadMeter, disk_use, hash_file
from core.runtime.regular_file import NotRegular, open_regular
from core.runtime.removal import remove_tree
from core.vocabulary import units, wire
from core.vocabulary.bounds import Few, Many, MetEvery, Name, SentBits, Word, Words
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.manifest import Manifest, ProjectFile, check_files, manifest_of
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.progress import Audits
from core.vocabulary.run_folder import CHECKPOINTS

MANIFEST = "manifest.json"
FORMAT = "tandem-checkpoint-1"
KEPT = 2
LIMIT_FILES = 2_000
LIMIT_BYTES = 4_000_000_000
RUNS_LIMIT_BYTES = 5_000_000_000
"""Limit for the checkpoints of all runs on this laptop together."""
_LONGEST_MANIFEST = 1_000_000

_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}\.(?:json|bin)")
_SERIAL = re.compile(r"[0-9]{8}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    name: Name
    size: int
    sha256: Word


Unaudited = Literal["", "shared", "gathered"]
"""How members shared those steps of a model that were not audited: each its rows, or with predictions of all
of them for the loss. Empty: each step is known to be right."""


class Exactness(msgspec.Struct, frozen=True, kw_only=True):
    """What a training knows of its result, over all the runs that it took so far."""

    told: Few[Words] = ()
    """Ways in which it may differ from one machine's, in sentences."""
    audits: Audits | None = None
    unaudited: Unaudited = ""
    """How unaudited steps were shared, for the model in the fit under way or in the last one."""
    met_every: MetEvery = 0
    """As in ``Summary``, like ``sent_bits``."""
    sent_bits: SentBits = 0


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint's manifest. Members at the same point have identical bytes, so that none has to travel."""

    format: Word = FORMAT
    moment: Moment
    shares: Few[int]
    """The members' shares in rank order, for the run that resumes from it."""
    files: Many[KeptFile]
    whole: bool = False
    """From here on every member computes each batch whole."""
    exactness: Exactness = Exactness()

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)


_HEADS = msgspec.json.Decoder(Head)
"""Made at import: once a script runs, the names in its types can't be looked up (core/trainer/script.py)."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint in ``folder``."""

    folder: str
    head: Head


def write(
    folder: Path,
    moment: Moment,
    shares: tuple[int, ...],
    files: Mapping[str, Iterable[bytes | memoryview]],
    unchanged: Mapping[str, tuple[Path, KeptFile]],
    *,
    whole: bool = False,
    exactness: Exactness = Exactness(),  # noqa: B008 (frozen)
    sure_step: int | None = None,
) -> Checkpoint:
    """Make a checkpoint in ``folder``, completely or not at all, and drop those that are superseded.

    ``unchanged``: files of another checkpoint, with their known sizes and hashes. ``whole``, ``exactness``:
    as in ``Head``. ``sure_step``: the last step that an audit confirmed; the newest checkpoint up to it is
    kept, too. Raises ``OSError``.
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
        head = Head(moment=moment, shares=shares, files=tuple(kept), whole=whole, exactness=exactness)
        write_new(part / MANIFEST, wire.to_json(head))
        sync_folder(part)
        place = next_place(folder)
        part.replace(place)
    except BaseException:
        remove_tree(part)
        raise
    sync_folder(folder)
    for old in _superseded(folder, sure_step):
        remove_tree(old)
    return Checkpoint(folder=str(place), head=head)


def go_back(folder: Path, moment: Moment) -> None:
    """Drop all checkpoints newer than ``moment``, and mark the one at ``moment`` as ``Head.whole``. Raises
    ``OSError``."""
    for found in _listed(folder):
        if found.head.moment.order > moment.order:
            remove_tree(Path(found.folder))
        elif found.head.moment == moment and not found.head.whole:
            write_atomically(Path(found.folder) / MANIFEST, wire.to_json(replace(found.head, whole=True)))


def newest(folder: Path) -> Checkpoint | None:
    """The newest intact checkpoint: every byte matches its manifest."""
    return next((found for found in _listed(folder) if intact(found)), None)


def newest_by_size(folder: Path) -> Checkpoint | None:
    """As ``newest``, but quick: compares sizes, not contents."""
    return next(iter(complete_by_size(folder)), None)


def complete_by_size(folder: Path) -> list[Checkpoint]:
    """All checkpoints whose files have the right sizes, the newest first."""
    return [found for found in _listed(folder) if _sizes_fit(found)]


def read_head(data: bytes) -> Head:
    """A manifest, which may come from a peer. Raises ``TandemError`` where it is invalid or unsafe."""
    try:
        head = _HEADS.decode(data) if len(data) <= _LONGEST_MANIFEST else None
    except msgspec.DecodeError:
        head = None
    if head is None:
        raise _refused("its manifest cannot be read")
    check_head(head)
    return head


def check_head(head: Head) -> None:
    """Raises ``TandemError`` where a manifest names a forbidden file, or exceeds the limits."""
    names = [file.name for file in head.files]
    if head.format != FORMAT:
        raise _refused("a different version of Tandem made it")
    if len(names) > LIMIT_FILES or len(set(names)) != len(names):
        raise _refused("its list of files is invalid")
    for file in head.files:
        if not _NAME.fullmatch(file.name) or file.name == MANIFEST:
            raise _refused("it lists a file that does not belong in a checkpoint")
        if file.size < 0 or not _SHA256.fullmatch(file.sha256):
            raise _refused("a file has no valid size or SHA-256")
    if head.total_bytes > LIMIT_BYTES:
        raise _refused(f"it is larger than {units.size(LIMIT_BYTES)}")


def intact(checkpoint: Checkpoint, meter: ReadMeter = UNWATCHED) -> bool:
    """Whether every file is there, with the bytes that the manifest lists."""
    folder = Path(checkpoint.folder)
    try:
        # Sizes first: terabytes of zeros take no space, but hours to read.
        if not _sizes_fit(checkpoint):
            return False
        meter.expect(checkpoint.head.total_bytes)
        return all(
            hash_file(folder / file.name, meter) == (file.size, file.sha256) for file in checkpoint.head.files
        )
    except (OSError, NotRegular):
        return False


def at(folder: Path) -> Checkpoint | None:
    """The checkpoint in this folder, as its manifest describes it; None where there is none.

    Security invariant: never blocks on a pipe, or a link to an endless file, in the manifest's place.
    """
    try:
        with open_regular(folder / MANIFEST) as file:
            return Checkpoint(folder=str(folder), head=read_head(file.read(_LONGEST_MANIFEST + 1)))
    except (OSError, NotRegular, TandemError):
        return None


def listing(checkpoint: Checkpoint) -> Manifest:
    """A checkpoint as a list of files, including its own manifest: its form for transfers, and its
    identity."""
    size, sha256 = hash_file(Path(checkpoint.folder) / MANIFEST)
    files = [
        ProjectFile(path=file.name, size=file.size, sha256=file.sha256) for file in checkpoint.head.files
    ]
    return manifest_of("", [*files, ProjectFile(path=MANIFEST, size=size, sha256=sha256)])


def check_listing(listing: Manifest) -> None:
    """Raises ``TandemError`` unless it lists a checkpoint's files, safe to receive and within limits."""
    check_files(listing.files, limit_bytes=LIMIT_BYTES, limit_files=LIMIT_FILES)
    names = {file.path for file in listing.files}
    if MANIFEST not in names or not all(_NAME.fullmatch(name) for name in names):
        raise _refused("it lists a file that does not belong in a checkpoint")


def find(folder: Path, digest: ProjectId, meter: ReadMeter = UNWATCHED) -> Checkpoint | None:
    """The checkpoint whose listing has this digest, if it is here and intact."""
    for found in _listed(folder):
        try:
            if listing(found).digest == digest and intact(found, meter):
                return found
        except (OSError, NotRegular):
            continue
    return None


def adopt(found: Checkpoint, folder: Path) -> Path:
    """Link another run's checkpoint as the first of a run; shares its bytes on the disk. Raises
    ``OSError``."""
    place = first(folder)
    place.mkdir(mode=0o700, parents=True)
    for name in (*(file.name for file in found.head.files), MANIFEST):
        _link(Path(found.folder) / name, place / name)
    return place


def first(folder: Path) -> Path:
    """The folder of a run's first checkpoint: the one that it resumes from, if it resumes another run."""
    return folder / f"{1:08d}"


def resumed(run: Path, plan: Plan) -> Path | None:
    """The folder of the checkpoint that the run in this folder resumes from, if it does."""
    return None if plan.resume is None else first(run / CHECKPOINTS)


def next_place(folder: Path) -> Path:
    """The folder for the next checkpoint."""
    return folder / f"{max((int(path.name) for path in _folders(folder)), default=0) + 1:08d}"


def trim(runs: Path, limit_bytes: int = RUNS_LIMIT_BYTES) -> None:
    """Delete the oldest runs' checkpoints until the rest takes at most ``limit_bytes``. The newest run always
    keeps its own. Run ids sort by time."""
    kept = DiskUse()
    having = {folder.parent for folder in runs.glob(f"*/{CHECKPOINTS}*")}
    for number, run in enumerate(sorted(having, reverse=True)):
        folders = list(run.glob(f"{CHECKPOINTS}*"))  # one per trainer
        kept |= disk_use(*folders)
        if kept.total > limit_bytes and number:
            for folder in folders:
                clear(folder)


def clear(folder: Path) -> None:
    """Delete all checkpoints in ``folder``."""
    remove_tree(folder)


def _listed(folder: Path) -> list[Checkpoint]:
    return [found for path in _folders(folder) if (found := at(path)) is not None]


def _superseded(folder: Path, sure_step: int | None) -> list[Path]:
    old = _folders(folder)[KEPT:]
    if sure_step is not None:
        sure = (found.folder for found in _listed(folder) if found.head.moment.step <= sure_step)
        kept = next(sure, "")
        old = [each for each in old if str(each) != kept]
    return old


def _folders(folder: Path) -> list[Path]:
    """The newest first. Security invariant: skips links, which a script may have made."""
    try:
        found = [
            path
            for path in folder.iterdir()
            if _SERIAL.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        ]
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
    """The same bytes under another name; a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _refused(reason: str) -> TandemError:
    return TandemError(
        code="checkpoint-refused",
        what=f"The checkpoint cannot be used: {reason}.",
        fix="Start the training again.",
    )
