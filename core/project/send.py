"""Cuts a manifest's files into pieces for a peer, as long as they are what was consented to. Blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.project.files import NotRegular, open_regular
from core.project.receipt import PIECE_BYTES, Piece, Wanted
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import Manifest, ProjectFile
from core.vocabulary.paths import shown


def check_wanted(manifest: Manifest, wanted: Iterable[Wanted]) -> tuple[Wanted, ...]:
    """What a peer asks for, once it is known to be in the manifest. Raises ``TandemError``."""
    asked = tuple(wanted)
    for want in asked:
        if not 0 <= want.file < len(manifest.files) or not 0 <= want.offset <= manifest.files[want.file].size:
            raise TandemError(
                code="transfer-broken",
                what="The other laptop asked for a file that the project does not have.",
                fix="Start the run again. If it happens again, update Tandem on both laptops.",
            )
    if len({want.file for want in asked}) != len(asked):
        return tuple({want.file: want for want in asked}.values())
    return asked


def pieces(folder: Path, manifest: Manifest, wanted: Iterable[Wanted]) -> Iterator[Piece]:
    """The pieces that ``wanted`` asks for, file by file, each file in order. Raises ``TandemError``.

    A file's last piece is held back until its hash is right: of a file that changed since the manifest was
    made, no peer ever gets the whole.
    """
    for want in check_wanted(manifest, wanted):
        yield from _pieces_of(folder, manifest.files[want.file], want)


def _pieces_of(folder: Path, file: ProjectFile, want: Wanted) -> Iterator[Piece]:
    digest, offset = hashlib.sha256(), 0
    try:
        with open_regular(folder.joinpath(*file.path.split("/"))) as reader:
            while offset < file.size:
                # What the peer has already is read all the same: the hash covers the whole file.
                stop = want.offset if offset < want.offset else file.size
                data = reader.read(min(PIECE_BYTES, stop - offset))
                if not data:
                    raise _changed(file)
                digest.update(data)
                ends = offset + len(data) == file.size
                if ends and (digest.hexdigest() != file.sha256 or reader.read(1)):
                    raise _changed(file)
                if offset >= want.offset:
                    yield Piece(file=want.file, offset=offset, data=data)
                offset += len(data)
    except (OSError, NotRegular) as error:
        raise _changed(file) from error


def _changed(file: ProjectFile) -> TandemError:
    return TandemError(
        code="project-changed",
        what=f"{shown(file.path)} changed while the project was being sent.",
        fix="Save your files, let no other program write into the script's folder, and start the run again.",
    )
