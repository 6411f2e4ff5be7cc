import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.vocabulary import paths
from core.vocabulary.paths import NAME_BYTES, Names, folded_path, shown, why_unsafe


@pytest.mark.parametrize(
    "path",
    [
        "train.py",
        "data/a.csv",
        "a/b/c/d.txt",
        ".hidden",
        "über/naïve ☃.txt",
        "aux_data/x",
        "console.py",
        "a..b",
    ],
)
def test_plain_paths_may_travel(path: str) -> None:
    assert why_unsafe(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "//host/share",
        "..",
        "../x",
        "a/../../x",
        "a/..",
        "./a",
        "a/./b",
        "a//b",
        "a/",
        "a\\b",
        "..\\x",
        "C:/x",
        "c:x",
        "a.txt:stream",
        "a\0b",
        "a\nb",
        "a\x1b[2Jb",
        "a\x7f",
        "a\u2028b",
        "gpj.\u202eyp.py",
        "CON",
        "con.txt",
        "a/Aux.py",
        "NUL .txt",
        "com1",
        "COM¹.log",
        "lpt9.x.y",
        "CONOUT$",
        "end.",
        "end ",
        " start",
        "a /b",
        "what?.py",
        "star*",
        "pipe|",
        'quote"',
        "<a>",
        ".git/config",
        "sub/.GIT/hooks/post-checkout",
        ".g\u200cit/config",
        "GIT~1/config",
        "\u200b",
        "a/\u200d",
        "x" * (NAME_BYTES + 1),
        "ä" * 128,
        "/".join(["d" * 100] * 11),
        "/".join(["d"] * 41),
        "lone\udcff",
    ],
)
def test_path_tricks_are_named(path: str) -> None:
    assert why_unsafe(path)


@given(st.text(max_size=40))
def test_a_safe_path_stays_inside_and_prints_plainly(path: str) -> None:
    if why_unsafe(path) is None:
        names = path.split("/")
        assert all(name not in ("", ".", "..") for name in names)
        assert not set(path) & set("\\:\0\n\r\x1b")
        path.encode("utf-8")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20))
def test_normal_forms_and_case_fold_to_one(path: str) -> None:
    assert folded_path(unicodedata.normalize("NFC", path)) == folded_path(unicodedata.normalize("NFD", path))
    if path.isascii():
        assert folded_path(path.upper()) == folded_path(path.lower())


def test_shown_paths_cannot_move_the_cursor_and_fit_a_line() -> None:
    assert shown("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"
    assert len(shown("x" * 500)) <= 80
    assert shown("\ud800") == "\\ud800"


def test_repeated_folders_are_folded_once() -> None:
    """A peer's list may have thousands of files, each below forty folders with costly names."""
    deep = "/".join(f"ᾀ{number}" for number in range(30))
    paths._folded_name.cache_clear()
    names = Names()
    for number in range(200):
        assert names.take(f"{deep}/{number}.py") is None
    assert paths._folded_name.cache_info().misses == 30 + 200
    assert names.take(f"{deep.upper()}/1.py") == f"{deep}/1.py"
    assert names.take(f"{deep.upper()}/other.py") == deep


def test_paths_just_within_the_limits_may_travel() -> None:
    assert why_unsafe("x" * NAME_BYTES) is None
    assert why_unsafe("/".join(["d"] * paths.DEPTH)) is None
    exact = "/".join(["d" * 204] * 5)
    assert len(exact) == paths.PATH_BYTES and why_unsafe(exact) is None
    assert why_unsafe(exact[:-1] + "ää") is not None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("lone\udcff", "not valid Unicode"),
        ("/etc", "absolute"),
        ("a\\b", "backslash"),
        ("/".join(["d" * 100] * 11), "longer than 1024 bytes"),
        ("/".join(["d"] * 41), "more than 40 folders"),
        ("x" * 256, "longer than 255 bytes"),
        ("../a", "leaves the folder"),
        ("a\nb", "control character"),
        ("a\u202eb", "turns the text's direction"),
        ("what?", "not every system can store"),
        (" a", "begins with a space"),
        ("a.", "ends in a space or a dot"),
        ("\u200b", "invisible"),
        (".git/x", "git repository"),
        ("con.txt", "device's name on Windows"),
    ],
)
def test_each_trick_is_refused_for_its_own_reason(path: str, reason: str) -> None:
    assert reason in (why_unsafe(path) or "")


def test_a_file_and_a_folder_cannot_have_one_name() -> None:
    names = Names()
    assert names.take("data/a.csv") is None
    assert names.take("data") == "data"
    assert names.take("Data/b.csv") == "data"
    assert names.take("data/A.csv") == "data/a.csv"
    assert names.take("data/a.csv/x") == "data/a.csv"
    assert names.take("data/b.csv") is None
    assert names.take("a/b/c/d") is None and names.take("a/b/C") == "a/b/c"


def test_a_long_path_is_shown_by_its_ends() -> None:
    assert shown("x" * 80) == "x" * 80
    assert shown("a" * 50 + "b" * 50) == "a" * 39 + "…" + "b" * 40
    assert shown("abcdefghijk", 10) == "abcd…ghijk"
