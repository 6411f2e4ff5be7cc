import errno
import os
import random
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.project import copy
from core.project.files import ReadMeter
from core.project.receipt import PIECE_BYTES, FilePiece, Receipt
from core.project.send import NOT_OFFERED, Extent, NotYet
from core.vocabulary import units
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import ProjectFile, manifest_of
from tests.core.project.making import content, manifest_for, pieces, write

FILES = {"train.py": b"print(1)", "data/a.bin": bytes(range(256)) * 12_000, "data/empty": b"", "z/y/x": b"z"}
MANIFEST = manifest_for(FILES)
A_BIN, TRAIN = 0, 2


@pytest.fixture
def receipt(tmp_path: Path) -> Receipt:
    return Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")


def refusal(receipt: Receipt, **piece: object) -> str:
    with pytest.raises(TandemError) as caught:
        receipt.take(FilePiece(**piece))  # type: ignore[arg-type]
    assert caught.value.code == "transfer-broken"
    return caught.value.what


def test_a_project_comes_whole(tmp_path: Path, receipt: Receipt) -> None:
    source = write(tmp_path / "source", dict(FILES))
    assert receipt.missing_bytes == MANIFEST.total_bytes
    for piece in pieces(source, MANIFEST, receipt.wanted):
        receipt.take(piece)
    assert receipt.wanted == ()
    assert receipt.received_bytes == MANIFEST.total_bytes
    assert not (tmp_path / "place").exists()
    assert content(receipt.finish()) == FILES
    assert not (tmp_path / "parts").exists()


def test_a_receipt_continues_where_it_was_interrupted(tmp_path: Path, receipt: Receipt) -> None:
    source = write(tmp_path / "source", dict(FILES))
    sent = list(pieces(source, MANIFEST, receipt.wanted))
    for piece in sent[:2]:
        receipt.take(piece)
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    assert again.wanted[0].offset == 2 * PIECE_BYTES
    rest = list(pieces(source, MANIFEST, again.wanted))
    assert len(rest) == len(sent) - 2
    for piece in rest:
        again.take(piece)
    assert content(again.finish()) == FILES


def test_reading_earlier_parts_reports_progress(tmp_path: Path, receipt: Receipt) -> None:
    source = write(tmp_path / "source", dict(FILES))
    first, second, third, *rest = pieces(source, MANIFEST, receipt.wanted)
    for piece in (first, second):
        receipt.take(piece)
    told: list[tuple[int, int]] = []
    meter = ReadMeter(lambda done, total: told.append((done, total)), every_s=0)
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place", meter=meter)
    before = told[-1][0] if told else 0
    again.take(third)
    assert told[-1] == (before + 2 * PIECE_BYTES, before + 2 * PIECE_BYTES)
    for piece in rest:
        again.take(piece)
    count = len(told)
    Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place", meter=meter)
    assert len(told) > count and told[-1][0] - told[count - 1][0] == MANIFEST.total_bytes


@pytest.mark.parametrize("at", [0, 1])
def test_only_the_newer_of_two_receipts_on_one_folder_writes(
    tmp_path: Path, receipt: Receipt, at: int
) -> None:
    """The earlier fetch was cancelled, and has not noticed yet."""
    source = write(tmp_path / "source", dict(FILES))
    sent = list(pieces(source, MANIFEST, receipt.wanted))
    for piece in sent[:at]:
        receipt.take(piece)
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    again.take(sent[at])
    for late in (sent[at], replace(sent[0], data=b"wrong")):
        with pytest.raises(TandemError) as ended:
            receipt.take(late)
        assert ended.value.code == "transfer-taken-over"
    for piece in sent[at + 1 :]:
        again.take(piece)
    assert content(again.finish()) == FILES
    with pytest.raises(TandemError):
        receipt.finish()
    assert content(tmp_path / "place") == FILES


def test_a_part_that_another_program_made_longer_is_not_kept(tmp_path: Path, receipt: Receipt) -> None:
    *most, last = pieces(write(tmp_path / "source", dict(FILES)), MANIFEST, receipt.wanted[:1])
    for piece in most:
        receipt.take(piece)
    with (tmp_path / "parts" / f"{A_BIN}.part").open("r+b") as part:
        part.seek(len(FILES["data/a.bin"]))
        part.write(b"x")
    with pytest.raises(TandemError, match="another content"):
        receipt.take(last)
    assert (receipt.wanted[0].file, receipt.wanted[0].offset) == (A_BIN, 0)


def test_a_stop_interrupts_reading_of_earlier_parts(tmp_path: Path, receipt: Receipt) -> None:
    *most, last = pieces(write(tmp_path / "source", dict(FILES)), MANIFEST, receipt.wanted[:1])
    for piece in most:
        receipt.take(piece)
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    checks = iter([None])

    def check() -> None:
        if next(checks, last) is last:
            raise TandemError(code="called-off", what="It was called off.")

    again.watch(check)
    with pytest.raises(TandemError, match="called off"):
        again.take(last)
    assert again.received_bytes == receipt.received_bytes
    again.watch(lambda: None)
    again.take(last)
    assert A_BIN not in [want.file for want in again.wanted]


def test_received_bytes_are_counted_piece_by_piece(receipt: Receipt) -> None:
    assert receipt.received_bytes == 0
    receipt.take(FilePiece(file=A_BIN, offset=0, data=FILES["data/a.bin"][:1000]))
    assert receipt.received_bytes == 1000
    assert receipt.missing_bytes == MANIFEST.total_bytes - 1000


@pytest.mark.skipif(sys.platform == "win32", reason="no such modes")
def test_parts_are_for_this_user_alone(tmp_path: Path, receipt: Receipt) -> None:
    parts = tmp_path / "parts"
    assert parts.stat().st_mode & 0o777 == 0o700
    [empty] = parts.glob("*.part")
    assert empty.stat().st_mode & 0o777 == 0o600


def test_a_damaged_part_is_not_taken_for_whole_after_a_restart(tmp_path: Path, receipt: Receipt) -> None:
    receipt.take(FilePiece(file=TRAIN, offset=0, data=FILES["train.py"]))
    (tmp_path / "parts" / f"{TRAIN}.part").write_bytes(b"evil(1) ")
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    assert TRAIN in [want.file for want in again.wanted]


def test_a_part_that_grew_too_long_is_restarted(tmp_path: Path, receipt: Receipt) -> None:
    (tmp_path / "parts" / f"{TRAIN}.part").write_bytes(b"x" * 100)
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    assert next(want.offset for want in again.wanted if want.file == TRAIN) == 0


def test_wrong_content_is_refused_and_can_be_sent_again(receipt: Receipt) -> None:
    assert "another content" in refusal(receipt, file=TRAIN, offset=0, data=b"print(2)")
    assert TRAIN in [want.file for want in receipt.wanted]
    receipt.take(FilePiece(file=TRAIN, offset=0, data=b"print(1)"))
    assert TRAIN not in [want.file for want in receipt.wanted]


@pytest.mark.parametrize("wrong", range(3))
def test_each_block_is_verified_before_anything_is_in_place(
    tmp_path: Path, receipt: Receipt, wrong: int
) -> None:
    """One wrong byte anywhere, and the file is requested again."""
    source = write(tmp_path / "source", dict(FILES))
    sent = list(pieces(source, MANIFEST, receipt.wanted))
    blocks = [piece for piece in sent if piece.file == A_BIN]
    assert len(blocks) == 3
    for piece in sent:
        if piece.file != A_BIN:
            receipt.take(piece)
    for number, block in enumerate(blocks):
        data = bytearray(block.data)
        data[-1] ^= number == wrong
        if number < len(blocks) - 1:
            receipt.take(FilePiece(file=A_BIN, offset=block.offset, data=bytes(data)))
        else:
            assert "data/a.bin" in refusal(receipt, file=A_BIN, offset=block.offset, data=bytes(data))
    assert [(want.file, want.offset) for want in receipt.wanted] == [(A_BIN, 0)]
    with pytest.raises(TandemError, match="are missing"):
        receipt.finish()
    assert not (tmp_path / "place").exists()
    for block in blocks:
        receipt.take(block)
    assert content(receipt.finish()) == FILES


def test_a_file_can_be_restarted(receipt: Receipt) -> None:
    receipt.take(FilePiece(file=TRAIN, offset=0, data=b"what"))
    receipt.take(FilePiece(file=TRAIN, offset=0, data=b"print"))
    receipt.take(FilePiece(file=TRAIN, offset=5, data=b"(1)"))
    assert TRAIN not in [want.file for want in receipt.wanted]


@pytest.mark.parametrize(
    "piece",
    [
        {"file": -1, "offset": 0, "data": b"x"},
        {"file": 99, "offset": 0, "data": b"x"},
        {"file": 1, "offset": 0, "data": b"x"},
        {"file": TRAIN, "offset": 1, "data": b"x"},
        {"file": TRAIN, "offset": -1, "data": b"x"},
        {"file": TRAIN, "offset": 0, "data": b""},
        {"file": TRAIN, "offset": 0, "data": b"print(1)x"},
        {"file": A_BIN, "offset": 0, "data": b"x" * (PIECE_BYTES + 1)},
    ],
)
def test_pieces_that_do_not_fit_are_refused_and_nothing_is_written(
    tmp_path: Path, receipt: Receipt, piece: dict[str, object]
) -> None:
    before = content(tmp_path)
    assert refusal(receipt, **piece)
    assert content(tmp_path) == before


def test_nothing_is_put_in_place_before_everything_has_arrived(tmp_path: Path, receipt: Receipt) -> None:
    with pytest.raises(TandemError, match="3 of the project's 4 files"):
        receipt.finish()
    assert not (tmp_path / "place").exists()


@pytest.mark.parametrize("by", ["the same receipt", "another receipt"])
def test_received_files_survive_a_failure_while_being_put_in_place(
    tmp_path: Path, receipt: Receipt, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    for piece in pieces(write(tmp_path / "source", dict(FILES)), MANIFEST, receipt.wanted):
        receipt.take(piece)
    rename, moved = os.rename, list[str]()

    def fails(old: str, new: str) -> None:
        if len(moved) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        moved.append(new)
        rename(old, new)

    with monkeypatch.context() as full, pytest.raises(TandemError, match="is full"):
        full.setattr(os, "rename", fails)
        receipt.finish()
    assert len(moved) == 2
    again = receipt if by == "the same receipt" else Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    assert again.wanted == () and again.received_bytes == MANIFEST.total_bytes
    assert content(again.finish()) == FILES


def test_invariant_no_file_is_moved_through_a_link_left_beside_the_parts(tmp_path: Path) -> None:
    mine = write(tmp_path / "mine", {"a.bin": FILES["data/a.bin"], "train.py": b"print(1)"})
    tree = write(tmp_path / "parts" / "tree", {"z/y/x": b"z"})
    (tree / "data").symlink_to(mine)
    (tree / "train.py").symlink_to(mine / "train.py")
    receipt = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    assert [want.file for want in receipt.wanted] == [A_BIN, TRAIN]
    assert content(mine) == {"a.bin": FILES["data/a.bin"], "train.py": b"print(1)"}


def test_an_empty_file_with_a_false_hash_is_refused(tmp_path: Path) -> None:
    false = manifest_of("train.py", [ProjectFile(path="train.py", size=0, sha256="0" * 64)])
    with pytest.raises(TandemError, match="no empty file"):
        Receipt(false, tmp_path / "parts", tmp_path / "place")


def test_a_link_in_the_place_of_a_part_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / f"{TRAIN}.part").symlink_to(victim)
    with pytest.raises(TandemError, match="not a file that Tandem made"):
        Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    assert victim.read_text() == "mine"


def test_known_content_is_taken_from_this_disk_only_if_it_is_right(tmp_path: Path, receipt: Receipt) -> None:
    source = write(tmp_path / "old", {"right": FILES["data/a.bin"], "wrong": b"x" * len(FILES["data/a.bin"])})
    assert not receipt.adopt(A_BIN, source / "wrong")
    assert not receipt.adopt(A_BIN, source / "missing")
    assert A_BIN in [want.file for want in receipt.wanted]
    assert receipt.adopt(A_BIN, source / "right")
    assert A_BIN not in [want.file for want in receipt.wanted]


def test_nothing_is_written_to_a_file_of_another_version(tmp_path: Path, receipt: Receipt) -> None:
    """Its last bytes were lost after it had been accepted as this version."""
    source = write(tmp_path / "old", {"right": FILES["data/a.bin"]}) / "right"
    assert receipt.adopt(A_BIN, source)
    os.truncate(source, 7)
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    assert (A_BIN, 0) in [(want.file, want.offset) for want in again.wanted]
    for piece in pieces(write(tmp_path / "source", dict(FILES)), MANIFEST, again.wanted):
        again.take(piece)
    assert source.stat().st_size == 7
    assert content(again.finish()) == FILES


def test_a_file_that_this_disk_did_not_have_is_wanted_from_its_first_byte(
    tmp_path: Path, receipt: Receipt
) -> None:
    source = write(tmp_path / "source", dict(FILES))
    receipt.take(next(pieces(source, MANIFEST, receipt.wanted)))
    assert receipt.wanted[0].offset == PIECE_BYTES
    assert not receipt.adopt(A_BIN, tmp_path / "missing")
    assert (receipt.wanted[0].file, receipt.wanted[0].offset) == (A_BIN, 0)
    assert receipt.received_bytes == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_reported(receipt: Receipt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt, "_part_name", lambda number: "/dev/full")
    with pytest.raises(TandemError, match="is full") as caught:
        receipt.take(FilePiece(file=TRAIN, offset=0, data=b"print"))
    assert caught.value.code == "disk-full"
    assert "Free some space" in caught.value.fix


def test_a_project_that_does_not_fit_is_refused_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = MANIFEST.total_bytes + copy.SPARE_BYTES - 1

    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage)
    with pytest.raises(TandemError, match=f"{units.size(MANIFEST.total_bytes)} are needed"):
        Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")


@given(
    st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 9), st.binary(max_size=9)), max_size=12), st.data()
)
def test_only_the_right_bytes_are_ever_put_in_place(
    tmp_path_factory: pytest.TempPathFactory, noise: list[tuple[int, int, bytes]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("receipt")
    files = {"train.py": b"abcdefg", "b": b"", "c/d": b"xy"}
    manifest = manifest_for(files)
    receipt = Receipt(manifest, folder / "parts", folder / "place")
    for number, offset, piece in noise:
        try:
            receipt.take(FilePiece(file=number, offset=offset, data=piece))
        except TandemError as error:
            assert error.code == "transfer-broken"
    for want in receipt.wanted:
        file = manifest.files[want.file]
        cut = data.draw(st.integers(0, file.size - 1))
        whole = files[file.path]
        for offset, part in ((0, whole[:cut]), (cut, whole[cut:])):
            if part:
                receipt.take(FilePiece(file=want.file, offset=offset, data=part))
    assert content(receipt.finish()) == files
    assert [path.name for path in folder.iterdir()] == ["place"]


def test_files_may_come_in_any_order(tmp_path: Path, receipt: Receipt) -> None:
    source = write(tmp_path / "source", dict(FILES))
    wanted = list(receipt.wanted)
    random.Random(1).shuffle(wanted)
    for piece in pieces(source, MANIFEST, wanted):
        receipt.take(piece)
    assert content(receipt.finish()) == FILES


# --- giving on ---------------------------------------------------------------------------------------------


def given_of(receipt: Receipt, number: int, offset: int, length: int) -> bytes | None:
    """None: it is refused."""
    try:
        return receipt.given([Extent(number, offset, length)])
    except TandemError as error:
        assert error.code == NOT_OFFERED.code
        return None


def test_received_bytes_are_passed_on_at_once_and_after_they_are_in_place(
    tmp_path: Path, receipt: Receipt
) -> None:
    source = write(tmp_path / "source", dict(FILES))
    told = list[bool]()
    receipt.on_came = lambda: told.append(True)
    sent = list(pieces(source, MANIFEST, receipt.wanted))
    with pytest.raises(NotYet):
        receipt.given([Extent(A_BIN, 0, 1)])
    receipt.take(sent[0])
    assert given_of(receipt, A_BIN, 0, PIECE_BYTES) == sent[0].data and len(told) == 1
    with pytest.raises(NotYet):
        receipt.given([Extent(A_BIN, 0, 10), Extent(A_BIN, PIECE_BYTES, 1)])
    for piece in sent[1:]:
        receipt.take(piece)
    receipt.finish()
    assert (
        receipt.given([Extent(A_BIN, 5, 7), Extent(TRAIN, 0, 8)]) == FILES["data/a.bin"][5:12] + b"print(1)"
    )
    assert given_of(receipt, TRAIN, 0, 9) is None, "past its end"
    assert given_of(receipt, len(FILES), 0, 1) is None, "no such file"


def test_invariant_bytes_already_on_this_disk_are_given_to_nobody(tmp_path: Path, receipt: Receipt) -> None:
    source = write(tmp_path / "source", dict(FILES))
    assert receipt.adopt(TRAIN, source / "train.py")
    assert given_of(receipt, TRAIN, 0, 8) is None
    sent = list(pieces(source, MANIFEST, receipt.wanted))
    receipt.take(sent[0])
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    for piece in pieces(source, MANIFEST, again.wanted):
        again.take(piece)
    again.finish()
    assert given_of(again, A_BIN, 0, 1) is None and given_of(again, TRAIN, 0, 8) is None
    assert given_of(again, A_BIN, PIECE_BYTES - 1, 2) is None, "the first byte was here before"
    assert given_of(again, A_BIN, PIECE_BYTES, 2) == FILES["data/a.bin"][PIECE_BYTES : PIECE_BYTES + 2]
    last = len(FILES) - 1
    assert given_of(again, last, 0, 1) == b"z", "it came over the network"


def test_invariant_a_superseded_receipt_gives_nothing_that_its_successor_has(
    tmp_path: Path, receipt: Receipt
) -> None:
    """Otherwise a peer that sent other bytes of that length would get the bytes on this disk."""
    source = write(tmp_path / "source", dict(FILES))
    receipt.take(FilePiece(file=TRAIN, offset=0, data=b"wrong!!"))
    again = Receipt(MANIFEST, tmp_path / "parts", tmp_path / "place")
    assert again.adopt(TRAIN, source / "train.py")
    assert given_of(receipt, TRAIN, 0, 7) is None
    for piece in pieces(source, MANIFEST, again.wanted):
        again.take(piece)
    again.finish()
    assert given_of(receipt, TRAIN, 0, 7) is None


def test_a_file_received_again_is_passed_on_as_received_again(tmp_path: Path, receipt: Receipt) -> None:
    source = write(tmp_path / "source", dict(FILES))
    receipt.take(FilePiece(file=TRAIN, offset=0, data=b"prin"))
    assert "another content" in refusal(receipt, file=TRAIN, offset=4, data=b"no!!")
    with pytest.raises(NotYet):
        receipt.given([Extent(TRAIN, 0, 1)])
    for piece in pieces(source, MANIFEST, receipt.wanted):
        receipt.take(piece)
    assert given_of(receipt, TRAIN, 0, 8) == b"print(1)"
    (tmp_path / "parts" / f"{TRAIN}.part").write_bytes(b"cut")
    assert given_of(receipt, TRAIN, 0, 8) is None
