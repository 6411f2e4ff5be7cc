import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from core.project.receipt import PIECE_BYTES, Wanted
from core.project.send import pieces
from core.vocabulary.errors import TandemError
from tests.core.project.making import manifest_for, write

BIG = random.Random(0).randbytes(2 * PIECE_BYTES + 7)
assert BIG[:1] != b"x" and BIG[-1:] != b"\0", "the changes below are changes"
FILES = {"train.py": b"print(1)", "a.bin": BIG}
MANIFEST = manifest_for(FILES)
ALL = (Wanted(file=0), Wanted(file=1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, dict(FILES))


def test_pieces_are_small_and_in_order(folder: Path) -> None:
    sent = list(pieces(folder, MANIFEST, ALL))
    assert [(piece.file, piece.offset, len(piece.data)) for piece in sent] == [
        (0, 0, PIECE_BYTES),
        (0, PIECE_BYTES, PIECE_BYTES),
        (0, 2 * PIECE_BYTES, 7),
        (1, 0, 8),
    ]
    assert b"".join(piece.data for piece in sent) == BIG + b"print(1)"


@pytest.mark.parametrize(
    "offset", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, len(BIG) - 1, len(BIG)]
)
def test_sending_goes_on_from_any_offset(folder: Path, offset: int) -> None:
    sent = list(pieces(folder, MANIFEST, [Wanted(file=0, offset=offset)]))
    assert b"".join(piece.data for piece in sent) == BIG[offset:]
    assert all(piece.offset >= offset and 0 < len(piece.data) <= PIECE_BYTES for piece in sent)


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


def test_a_change_in_the_part_that_the_peer_has_is_found_too(folder: Path) -> None:
    write(folder, {"a.bin": b"x" + BIG[1:]})
    with pytest.raises(TandemError, match=r"a\.bin changed"):
        list(pieces(folder, MANIFEST, [Wanted(file=0, offset=len(BIG) - 1)]))


def test_a_file_that_became_a_link_a_pipe_or_nothing_is_not_sent(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
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
            list(pieces(folder, MANIFEST, [Wanted(file=1)]))
        script.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "want", [Wanted(file=-1), Wanted(file=2), Wanted(file=0, offset=-1), Wanted(file=1, offset=9)]
)
def test_a_peer_can_ask_for_nothing_outside_the_manifest(folder: Path, want: Wanted) -> None:
    with pytest.raises(TandemError, match="asked for a file that the project does not have"):
        list(pieces(folder, MANIFEST, [want]))


def test_asking_many_times_sends_once(folder: Path) -> None:
    assert len(list(pieces(folder, MANIFEST, [Wanted(file=1)] * 1000))) == 1
