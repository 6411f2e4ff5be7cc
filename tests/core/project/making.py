"""Small real projects for the tests of this folder."""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.project.receipt import PIECE_BYTES, FilePiece, Wanted
from core.project.send import Extent, ManifestReader
from core.vocabulary.manifest import Manifest, ProjectFile, manifest_of


def write(folder: Path, files: dict[str, bytes | str]) -> Path:
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def manifest_for(files: dict[str, bytes], script: str = "train.py") -> Manifest:
    return manifest_of(
        script,
        [
            ProjectFile(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest())
            for path, data in files.items()
        ],
    )


def pieces(folder: Path, manifest: Manifest, wanted: Iterable[Wanted]) -> Iterator[FilePiece]:
    """The pieces a peer gets for this request, in order."""
    with contextlib.closing(ManifestReader(folder, manifest)) as source:
        for want in wanted:
            at, size = want.offset, manifest.files[want.file].size
            while at < size:
                extent = Extent(want.file, at, min(PIECE_BYTES, size - at))
                yield FilePiece(file=want.file, offset=at, data=source.read([extent]))
                at += extent.length


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
