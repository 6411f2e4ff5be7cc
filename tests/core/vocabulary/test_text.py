import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.vocabulary.text import fit_name, listed, plain, plain_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Anna's laptop", "Anna's laptop"),
        ("münchen 東京 🚀", "münchen 東京 🚀"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]0;never closed", ""),
        ("\x9b31mred", "red"),
        ("two\nlines\r\nand\ttab", "two lines and tab"),
        ("a\u202egnp.exe", "agnp.exe"),
        ("zero\u200bwidth\x00", "zerowidth"),
        ("\ud800lone", "lone"),
        ("   ", ""),
    ],
)
def test_terminal_commands_are_removed_from_a_shown_name(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    assert plain("a" * 50, 10) == "aaaaaaaaa…"
    assert plain("b" * 5_000_000, 10) == "bbbbbbbbb…"


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_ordinary_words_stay_as_they_are(text: str) -> None:
    assert plain(text, 10_000) == " ".join(text.split())


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    for line in (plain(text), *plain_lines(text)):
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in line)
        assert len(line) <= 500


def test_a_progress_bar_leaves_its_last_state() -> None:
    assert plain_lines("1/3\r2/3\r3/3\nnext\n") == ["3/3", "next"]
    assert plain_lines("1/3\b\b\b2/3\r\n") == ["2/3"]
    assert plain_lines("\tindented\n\nlast") == ["    indented", "", "last"]
    assert plain_lines("") == []


@pytest.mark.parametrize(
    ("name", "fitting"),
    [
        ("Anna's laptop", "Anna's laptop"),
        ("  two\n lines\t", "two lines"),
        ("a\u00a0b\u2028c", "a b c"),
        ("a\u202eb\u200bc\x00d\ue000", "abcd"),
        ("", "laptop"),
        (" \u200b ", "laptop"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 64),
        ("x" * 63 + " y", "x" * 63),
    ],
)
def test_a_name_fits_on_anothers_screen(name: str, fitting: str) -> None:
    assert fit_name(name) == fitting


def test_only_a_line_that_is_too_long_is_cut() -> None:
    assert plain("a" * 10, 10) == "a" * 10
    assert plain("a" * 8 + " bcd", 10) == "aaaaaaaa…"
    assert plain_lines("a" * 10, 10) == ["a" * 10]
    assert plain_lines("a" * 11, 10) == ["aaaaaaaaa…"]
    assert plain_lines("a \n") == ["a"]


def test_text_before_a_lone_carriage_return_stays() -> None:
    assert plain_lines("loading\r\n\r\n") == ["loading", ""]
    assert plain_lines("one\vtwo\x85three") == ["one two three"]


def test_names_are_listed_as_in_a_sentence() -> None:
    assert listed(["A"]) == "A"
    assert listed(["A", "B"]) == "A and B"
    assert listed(["A", "B", "C"]) == "A, B and C"
