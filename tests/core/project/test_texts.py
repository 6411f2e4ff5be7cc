"""The texts sent with a request: which, how many, and that they match the manifest."""

import hashlib
from pathlib import Path

import pytest

from core.project.checkpoint_store import LIMIT_FILES
from core.project.texts import LIMIT_TEXTS_BYTES, find_unseen, match_manifest, read_texts
from core.vocabulary.manifest import INLINE_BYTES, Manifest, ProjectFile, listing_of, manifest_of
from core.vocabulary.peer_messages import MAX_FRAME_BYTES, Prepare
from core.vocabulary.wire import to_msgpack
from tests.core.cluster.laptops import plan_of
from tests.core.project.making import manifest_for, write

FILES = {"train.py": b"import model\n", "model.py": b"# layers\n", "notes.txt": "Grüße".encode()}


def test_script_modules_and_texts_are_sent_and_data_is_not(tmp_path: Path) -> None:
    files = {**FILES, "digits.npz": b"PK\x03\x04\x00\x01", "latin.txt": "Grüße".encode("latin-1")}
    write(tmp_path, dict(files))
    assert read_texts(tmp_path, manifest_for(files)) == FILES


def test_the_script_goes_first_if_not_all_texts_fit(tmp_path: Path) -> None:
    half = LIMIT_TEXTS_BYTES // 2
    files = {"train.py": b"#" * half, "a.py": b"#" * half, "b.py": b"# small", "z.txt": b"words"}
    write(tmp_path, dict(files))
    assert set(read_texts(tmp_path, manifest_for(files))) == {"train.py", "b.py", "z.txt"}


def test_a_file_that_changed_since_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, dict(FILES))
    manifest = manifest_for(FILES)
    (tmp_path / "model.py").write_text("# other layers\n")
    assert set(read_texts(tmp_path, manifest)) == {"train.py", "notes.txt"}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, dict(FILES))
    (tmp_path / "model.py").rename(tmp_path / "elsewhere.py")
    (tmp_path / "model.py").symlink_to(tmp_path / "elsewhere.py")
    assert "model.py" not in read_texts(tmp_path, manifest_for(FILES))


def test_the_longest_request_fits_into_a_frame(tmp_path: Path) -> None:
    data = {f"{number:03}.py": b"#" * 1000 for number in range(500)}
    write(tmp_path, {"train.py": b"1", **data})
    files = [*manifest_for({"train.py": b"1", **data}).files]
    while listing_of(manifest := manifest_of("train.py", files)) is None:
        files.append(ProjectFile(path=f"d/{len(files):04}" + "x" * 110, size=1, sha256="a" * 64))
    manifest = manifest_of("train.py", files[:-1])
    kept = ProjectFile(path="n" * 46, size=1 << 31, sha256="a" * 64)
    checkpoint = Manifest(script="", files=(kept,) * LIMIT_FILES)
    texts = read_texts(tmp_path, manifest)
    assert 10 < len(texts) < 500
    largest = Prepare(plan=plan_of(), manifest=manifest, checkpoint=checkpoint, texts=texts)
    assert INLINE_BYTES - 1_000 < len(to_msgpack(manifest)) <= INLINE_BYTES
    assert len(to_msgpack(largest)) < MAX_FRAME_BYTES


@pytest.mark.parametrize(
    "texts",
    [
        {"train.py": b"import evil\n"},
        {"other.py": FILES["model.py"]},
        {"model.py": FILES["train.py"]},
    ],
    ids=["other bytes", "another name", "swapped"],
)
def test_invariant_texts_that_differ_from_the_manifest_are_detected(texts: dict[str, bytes]) -> None:
    manifest = manifest_for(FILES)
    assert match_manifest({}, manifest)
    assert match_manifest({"train.py": FILES["train.py"]}, manifest)
    assert not match_manifest({"train.py": FILES["train.py"], **texts}, manifest)


def test_texts_beyond_the_limit_are_rejected() -> None:
    files = {"train.py": b"1", "long.py": b"#" * LIMIT_TEXTS_BYTES}
    assert hashlib.sha256(files["long.py"]).hexdigest() == manifest_for(files).files[0].sha256
    assert not match_manifest(files, manifest_for(files))


def test_the_sender_is_told_about_a_script_too_large_to_be_shown(tmp_path: Path) -> None:
    assert find_unseen(manifest_for(FILES)) == ()
    large = {"train.ipynb": b"{}" * LIMIT_TEXTS_BYTES}
    write(tmp_path, dict(large))
    (mistake,) = find_unseen(manifest_for(large, "train.ipynb"))
    assert mistake.what.startswith("train.ipynb is too large (1 MB) for the other laptops' users")
    assert "Clear Outputs" in mistake.fix
    assert read_texts(tmp_path, manifest_for(large, "train.ipynb")) == {}
