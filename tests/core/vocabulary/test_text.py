import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.vocabulary.text import plain, plain_lines


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
def test_a_name_is_shown_without_what_a_terminal_would_obey(text: str, shown: str) -> None:
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
