import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.project.chunks import chunks, packed
from core.project.receipt import PIECE_BYTES, Wanted
from core.project.send import Extent, ListingReader, ManifestReader
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import Listing
from tests.core.project.making import manifest_for, pieces, write

BIG = random.Random(0).randbytes(2 * PIECE_BYTES + 7)
assert BIG[:1] != b"x" and BIG[-1:] != b"\0", "the changes below are changes"
FILES = {"train.py": b"print(1)", "a.bin": BIG}
MANIFEST = manifest_for(FILES)
A_BIN, TRAIN = 0, 1
ALL = (Wanted(file=A_BIN), Wanted(file=TRAIN))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, dict(FILES))


@pytest.fixture
def source(folder: Path) -> Iterator[ManifestReader]:
    source = ManifestReader(folder, MANIFEST)
    yield source
    source.close()


def test_parts_of_several_files_come_as_one(source: ManifestReader) -> None:
    extents = [Extent(A_BIN, 1, 3), Extent(TRAIN, 0, 8), Extent(A_BIN, len(BIG) - 2, 2)]
    assert source.read(extents) == BIG[1:4] + b"print(1)" + BIG[-2:]


@pytest.mark.parametrize(
    "offset", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, len(BIG) - 1, len(BIG)]
)
def test_sending_continues_from_any_offset(folder: Path, offset: int) -> None:
    sent = list(pieces(folder, MANIFEST, [Wanted(file=A_BIN, offset=offset)]))
    assert b"".join(piece.data for piece in sent) == BIG[offset:]


@pytest.mark.parametrize(
    "other",
    [b"x" + BIG[1:], BIG[:-1], BIG + b"x", b"", BIG[:-1] + b"\0"],
    ids=["first byte", "shorter", "longer", "empty", "last byte"],
)
def test_a_file_that_changed_is_named_and_never_sent_whole(folder: Path, other: bytes) -> None:
    write(folder, {"a.bin": other})
    sent = []
    with pytest.raises(TandemError, match=r"a\.bin changed") as caught:
        for piece in pieces(folder, MANIFEST, ALL):
            sent.append(piece)
    assert caught.value.code == "project-changed"
    assert sum(len(piece.data) for piece in sent) < len(BIG)


def test_a_file_that_is_replaced_while_it_is_read_is_never_sent_whole(
    folder: Path, source: ManifestReader
) -> None:
    assert source.read([Extent(A_BIN, 0, PIECE_BYTES)]) == BIG[:PIECE_BYTES]
    write(folder, {"a.bin": BIG[:PIECE_BYTES] + bytes(len(BIG) - PIECE_BYTES)})
    with pytest.raises(TandemError, match=r"a\.bin changed"):
        source.read([Extent(A_BIN, PIECE_BYTES, PIECE_BYTES), Extent(A_BIN, 2 * PIECE_BYTES, 7)])


def test_a_change_in_the_part_that_the_peer_has_is_found_too(folder: Path, source: ManifestReader) -> None:
    write(folder, {"a.bin": b"x" + BIG[1:]})
    with pytest.raises(TandemError, match=r"a\.bin changed"):
        source.read([Extent(A_BIN, len(BIG) - 1, 1)])


def test_a_file_that_became_a_link_a_pipe_or_nothing_is_not_sent(
    folder: Path, source: ManifestReader
) -> None:
    secret = folder / "secret"
    secret.write_bytes(b"print(1)")
    script = folder / "train.py"
    script.unlink()
    replacements: tuple[Callable[[], None], ...] = (
        lambda: script.symlink_to(secret),
        lambda: os.mkfifo(script),
        lambda: None,
    )
    for replace in replacements:
        replace()
        with pytest.raises(TandemError, match=r"train\.py changed"):
            source.read([Extent(TRAIN, 0, 8)])
        script.unlink(missing_ok=True)


@pytest.mark.parametrize("swapped", ["00000001", "00000001/deep"])
def test_invariant_a_folder_that_became_a_link_since_it_was_offered_opens_nothing(
    tmp_path: Path, swapped: str
) -> None:
    """By a script that is still running: all but the last byte of a private file would go to a peer."""
    private = write(tmp_path / "private", {"config.json": b"a secret", "deep/config.json": b"a secret"})
    write(tmp_path / "kept/00000001", {"deep/config.json": b"forged!!"})
    manifest = manifest_for({"deep/config.json": b"forged!!"})
    reader = ManifestReader(tmp_path / "kept", manifest, inside="00000001")
    (tmp_path / "kept" / swapped).rename(tmp_path / "moved")
    (tmp_path / "kept" / swapped).symlink_to(private / swapped.partition("/")[2])
    with pytest.raises(TandemError, match=r"config\.json changed"):
        reader.read([Extent(0, 0, 7)])
    reader.close()


def test_an_outline_describes_the_file_that_is_read(tmp_path: Path) -> None:
    write(tmp_path / "kept/00000001", dict(FILES))
    reader = ManifestReader(tmp_path / "kept", MANIFEST, inside="00000001")
    with (tmp_path / "kept/00000001/a.bin").open("rb") as opened:
        assert reader.outline(A_BIN) == packed(chunks(opened, len(BIG)))
    reader.close()


def test_a_list_of_files_is_read_in_any_parts_but_not_beyond_its_end() -> None:
    data = MANIFEST.listing()
    reader = ListingReader(MANIFEST, Listing(digest=MANIFEST.digest, size=len(data)))
    assert reader.read([Extent(0, 0, 5), Extent(0, 5, len(data) - 5)]) == data
    assert reader.read([Extent(0, 7, 2)]) == data[7:9]
    for extent in (Extent(0, 0, len(data) + 1), Extent(0, len(data), 1), Extent(1, 0, 1)):
        with pytest.raises(TandemError, match="asked for a file"):
            reader.read([extent])


@pytest.mark.parametrize("extent", [Extent(2, 0, 1), Extent(TRAIN, 8, 1), Extent(A_BIN, 1 << 60, 1)], ids=str)
def test_a_peer_can_ask_for_nothing_outside_the_manifest(source: ManifestReader, extent: Extent) -> None:
    with pytest.raises(TandemError, match="asked for a file that the project does not have"):
        source.read([extent])
