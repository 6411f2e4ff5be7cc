"""A script's outputs in its working copy, and their way back to the starter. Blocks: use a thread."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from itertools import count
from pathlib import Path

import msgspec

from core.project.copy import Changed, copy_project
from core.project.files import Skipped, hash_open, list_files
from core.project.ignore import is_junk
from core.project.receipt import Receipt
from core.runtime.regular_file import Folder, NotRegular
from core.vocabulary import units, wire
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import (
    Manifest,
    ProjectFile,
    check_files,
    manifest_of,
)
from core.vocabulary.paths import Names, shown
from core.vocabulary.run_folder import OUTPUTS

LIMIT_BYTES = 500_000_000
LIMIT_FILES = 5_000
LIMIT_LIST_BYTES = 900_000
"""As MessagePack: the list must fit into one frame of a link (1 MiB)."""

_TOO_LARGE = f"it does not fit into the {units.size(LIMIT_BYTES)} that are brought back"


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are new or changed since the script began, and entries that stay where they are
    (``skipped``). ``left``: the paths of regular files among those, which exceed a limit or collide."""

    manifest: Manifest
    skipped: tuple[Skipped, ...] = ()
    left: tuple[str, ...] = ()


def find_outputs(
    work: Path,
    before: Manifest,
    *,
    first: Collection[str] = (),
    limit_bytes: int = LIMIT_BYTES,
    most_files: int = LIMIT_FILES,
) -> Outputs:
    """Compare a working copy with the checked-out files. Call it once the script's process has ended.

    Ignore rules do not apply here: they often name models and logs. Where not everything fits, ``first`` take
    precedence, then the smallest files, so that one huge file does not displace metrics.
    """
    listing = list_files(work, leave_out=lambda path, _: "" if is_junk(path.rpartition("/")[2]) else None)
    skipped = list(listing.skipped)
    known = {file.path: (file.size, file.sha256) for file in before.files}
    chosen, left = list[ProjectFile](), list[str]()
    room, room_in_list, names = limit_bytes, LIMIT_LIST_BYTES - 64, Names()
    for found in sorted(listing.files, key=lambda file: (file.path not in first, file.size, file.path)):
        try:
            # A different size proves a change without reading: the file may be terabytes of zeros.
            fits = found.size <= room or found.size == known.get(found.path, (-1, ""))[0]
            size, sha256 = _hashed(work, found.path) if fits else (found.size, "")
        except (OSError, NotRegular):
            skipped.append(Skipped(path=shown(found.path), why="it cannot be read"))
            continue
        if known.get(found.path) == (size, sha256):
            continue
        file = ProjectFile(path=found.path, size=size, sha256=sha256)
        room_in_list -= len(wire.to_msgpack(file))
        why = None
        if size > room:
            why = _TOO_LARGE
        elif len(chosen) == most_files or room_in_list < 0:
            why = f"no more than {most_files:,} files are brought back"
        elif other := names.take(found.path):
            why = f"some systems take it for {shown(other)}"
        if why is None:
            room -= size
            chosen.append(file)
        else:
            skipped.append(Skipped(path=shown(found.path), why=why))
            left.append(found.path)
    return Outputs(manifest=manifest_of("", chosen), skipped=tuple(skipped), left=tuple(left))


def receive_outputs(manifest: Manifest, run_folder: Path) -> Receipt:
    """The starter's side: pieces go into ``run_folder``; ``finish`` moves them into ``outputs``.

    Discards earlier pieces: outputs are always sent from the beginning. Raises ``TandemError`` where the
    manifest, which comes from a peer, is unsafe.
    """
    check_files(manifest.files, limit_bytes=LIMIT_BYTES, limit_files=LIMIT_FILES)
    incoming = run_folder / "outputs.incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    return Receipt(manifest, incoming, free_place(run_folder, OUTPUTS))


def collect_outputs(manifest: Manifest, work: Path, run_folder: Path) -> Path:
    """Copy a script's outputs into the run's folder, where the starter itself is the chief. Raises
    ``TandemError``."""
    place = free_place(run_folder, OUTPUTS)
    try:
        copy_project(manifest, work, place)
    except Changed as changed:
        raise TandemError(
            code="outputs-changed",
            what=f"{shown(changed.path)} changed while the run's outputs were collected.",
            fix=f"Everything that the script wrote is still in {shown(str(work))}.",
        ) from changed
    return place


def _hashed(work: Path, path: str) -> tuple[int, str]:
    """Follows no link: a surviving process of the script could replace a folder by one. Raises
    ``NotRegular``, ``OSError``."""
    with Folder(work) as below, below.open_regular(path) as file:
        return hash_open(file)


def free_place(run_folder: Path, name: str) -> Path:
    """The path for a folder of this name, or the next free one: existing folders are never overwritten."""
    names = (f"{name}-{number}" if number > 1 else name for number in count(1))
    return next(run_folder / name for name in names if not (run_folder / name).exists())
