import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.vocabulary import wire
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import (
    Manifest,
    ProjectFile,
    check_files,
    check_project,
    differences,
    find_collision,
    listing_of,
    manifest_of,
    read_listing,
)
from core.vocabulary.paths import folded_path, why_unsafe

SHA = hashlib.sha256(b"").hexdigest()


def a_file(path: str, size: int = 1, sha256: str = SHA) -> ProjectFile:
    return ProjectFile(path=path, size=size, sha256=sha256)


def a_project(*paths: str, script: str = "train.py") -> Manifest:
    return manifest_of(script, [a_file(path) for path in paths])


def reason(manifest: Manifest) -> str:
    with pytest.raises(TandemError) as caught:
        check_project(manifest)
    assert caught.value.code == "project-refused"
    assert caught.value.fix
    return caught.value.what


def test_an_ordinary_project_passes() -> None:
    check_project(a_project("train.py", "data/digits.csv", "lib/__init__.py", "lib/model.py"))


def test_the_digest_is_fixed_for_all_time() -> None:
    text = f'["tandem-project-1","train.py",[["a/b.csv",1,"{SHA}"],["train.py",1,"{SHA}"]]]'
    assert a_project("train.py", "a/b.csv").digest == hashlib.sha256(text.encode()).hexdigest()


def test_order_does_not_change_the_digest_but_content_does() -> None:
    one = a_project("train.py", "a.csv", "b.csv")
    assert one.digest == a_project("b.csv", "train.py", "a.csv").digest
    others = [
        a_project("train.py", "a.csv"),
        a_project("train.py", "a.csv", "c.csv"),
        a_project("train.py", "a.csv", "b.csv", script="a.csv"),
        manifest_of("train.py", [a_file("train.py", 2), a_file("a.csv"), a_file("b.csv")]),
        manifest_of("train.py", [a_file("train.py", sha256="0" * 64), a_file("a.csv"), a_file("b.csv")]),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 6


def test_it_travels_and_keeps_its_digest() -> None:
    before = a_project("train.py", "ä/ß.csv")
    for after in (
        wire.from_msgpack(wire.to_msgpack(before), Manifest),
        wire.from_json(wire.to_json(before), Manifest),
    ):
        assert after == before
        assert after.digest == before.digest
        assert after.total_bytes == 2


def test_an_unsafe_path_is_named() -> None:
    assert "'../train.py'" in reason(a_project("../train.py", script="../train.py"))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Model.py", "model.py"),
        ("straße.csv", "STRASSE.csv"),
        ("caf\u00e9.csv", "cafe\u0301.csv"),
        ("data", "data/a.csv"),
        ("DATA", "data/a.csv"),
        ("Data/a.csv", "data/b.csv"),
        ("a.csv", "a\u200d.csv"),
        ("\u00c5.csv", "\u212b.csv"),
        ("same.csv", "same.csv"),
    ],
)
def test_two_names_for_one_file_are_refused(one: str, two: str) -> None:
    assert "the same name on some systems" in reason(a_project("train.py", one, two))


def test_only_the_disk_limits_a_projects_size() -> None:
    check_project(manifest_of("train.py", [a_file("train.py"), a_file("b", 5 * 10**12)]))


def test_more_files_than_a_project_may_have_are_refused() -> None:
    files = a_project("train.py", "a", "b").files
    with pytest.raises(TandemError, match="3 files, and the limit is 2"):
        check_files(files, limit_files=2)
    with pytest.raises(TandemError, match="the limit is 2 bytes"):
        check_files(files, limit_bytes=2)


@pytest.mark.parametrize("count", [1_000, 5_000])
def test_a_long_list_survives_a_round_trip_as_a_file(count: int) -> None:
    manifest = a_project("train.py", *(f"ä {number}" for number in range(count)))
    listing = listing_of(manifest)
    if count == 1_000:
        assert listing is None
        return
    assert listing is not None and listing.digest == manifest.digest
    (file,) = listing.as_files.files
    data = manifest.listing()
    assert (file.size, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert read_listing(data) == manifest


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'["tandem-project-2","a",[]]',
        b'["tandem-project-1","a",[],0]',
        b'["tandem-project-1", "a",[]]',
        b'["tandem-project-1","\\u0061",[]]',
        b'["tandem-project-1","a",[["a",1]]]',
        b'["tandem-project-1","a",[["a","1",""]]]',
    ],
)
def test_a_list_not_in_canonical_form_is_refused(data: bytes) -> None:
    with pytest.raises(TandemError, match="list of its files cannot be read"):
        read_listing(data)


@pytest.mark.parametrize(
    "file",
    [
        a_file("x", -1),
        a_file("x", 1 << 60),
        a_file("x", 1, ""),
        a_file("x", 1, SHA.upper()),
        a_file("x", 1, SHA[:-1]),
        a_file("x", 1, SHA + "\n"),
        a_file("x", 1, "../" + SHA[3:]),
    ],
)
def test_sizes_and_hashes_have_one_form(file: ProjectFile) -> None:
    assert "valid size" in reason(manifest_of("train.py", [a_file("train.py"), file]))


def test_the_script_must_be_among_the_files() -> None:
    assert "not among its files" in reason(a_project("other.py"))
    assert "not among its files" in reason(a_project("other.py", script=""))


def test_another_order_is_refused() -> None:
    files = (a_file("train.py"), a_file("a.csv"))
    assert "not in order" in reason(Manifest(script="train.py", files=files))


paths = st.lists(
    st.text(alphabet="aAbBéE\u0301ß./", min_size=1, max_size=8).filter(lambda path: why_unsafe(path) is None),
    max_size=8,
)


@given(paths)
def test_a_collision_is_found_exactly_where_there_is_one(names: list[str]) -> None:
    folds = [folded_path(name) for name in names]
    folders = {
        ("/".join(name.split("/")[:depth])) for name in names for depth in range(1, len(name.split("/")))
    }
    folder_folds = [folded_path(folder) for folder in folders]
    clash = (
        len(set(folds)) < len(folds)
        or len(set(folder_folds)) < len(folder_folds)
        or bool(set(folds) & set(folder_folds))
    )
    assert (find_collision(names) is not None) == clash


@given(st.binary(max_size=300))
def test_garbage_is_a_decode_error_or_checked(data: bytes) -> None:
    try:
        manifest = wire.from_msgpack(data, Manifest)
    except msgspec.DecodeError:
        return
    try:
        check_project(manifest)
    except TandemError:
        return
    assert manifest.script


@given(st.lists(st.tuples(st.text(max_size=12), st.integers(-5, 10**9), st.text(max_size=66)), max_size=6))
def test_every_accepted_manifest_is_safe(rows: list[tuple[str, int, str]]) -> None:
    files = [ProjectFile(path=path, size=size, sha256=sha or SHA) for path, size, sha in rows]
    manifest = manifest_of(rows[0][0] if rows else "", files)
    try:
        check_project(manifest)
    except TandemError:
        return
    assert all(why_unsafe(file.path) is None for file in manifest.files)
    assert find_collision(file.path for file in manifest.files) is None
    assert manifest.total_bytes >= 0


def test_differences_are_found_by_content() -> None:
    def of(**files: str) -> Manifest:
        return manifest_of(
            "a", [ProjectFile(path=path, size=1, sha256=digest * 64) for path, digest in files.items()]
        )

    assert differences(of(a="1", b="2"), of(a="1", b="2")) == {}
    found = differences(of(a="1", b="2", d="4"), of(a="1", b="3", e="5", c="6"))
    assert list(found.items()) == [("c", "new"), ("e", "new"), ("b", "changed"), ("d", "gone")]
