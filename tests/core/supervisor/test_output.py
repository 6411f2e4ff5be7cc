from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.supervisor.output import Batches, plain


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain", "plain"),
        ("10%\r50%\r100%", "100%"),
        ("windows\r", "windows"),
        ("\x1b[1;32mgreen\x1b[0m", "green"),
        ("\x1b]0;a new title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x08\x00\x9b2Jb", "a2Jb"),
        ("tab\tstays", "tab\tstays"),
        ("x" * 5000, "x" * 4096 + " …"),
    ],
)
def test_lines_are_shown_as_a_terminal_leaves_them_and_cannot_steer_one(line: str, shown: str) -> None:
    assert plain(line) == shown


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    assert not any((ord(char) < 32 and char not in "\t\n") or 127 <= ord(char) < 160 for char in plain(text))


def test_the_first_line_goes_at_once_and_the_next_wait_their_turn() -> None:
    batches = Batches("chief:0", interval_s=0.1)
    assert batches.due_s is None and batches.pop_due(5.0) == []
    batches.add("stdout", [b"one"])
    assert [lines.text for lines in batches.pop_due(5.0)] == ["one"]
    batches.add("stdout", [b"two"])
    batches.add("stdout", [b"three"])
    assert batches.pop_due(5.05) == []
    assert batches.due_s == pytest.approx(5.1)
    assert [lines.text for lines in batches.pop_due(5.11)] == ["two\nthree"]
    assert batches.due_s is None


def test_the_newest_of_too_many_lines_stay_and_the_rest_is_counted() -> None:
    batches = Batches("chief:0", most_lines=3)
    batches.add("stdout", [str(number).encode() for number in range(10)])
    batches.add("stderr", [b"alone"])
    out, err = batches.pop_due(0.0)
    assert (out.stream, out.text, out.dropped) == ("stdout", "7\n8\n9", 7)
    assert (err.stream, err.text, err.dropped) == ("stderr", "alone", 0)
    batches.add("stdout", [b"x"])
    assert batches.pop_due(1.0)[0].dropped == 0


def test_long_lines_count_by_their_length() -> None:
    batches = Batches("chief:0", most_chars=100)
    batches.add("stdout", [b"a" * 60, b"b" * 60])
    (lines,) = batches.pop_due(0.0)
    assert (lines.text, lines.dropped) == ("b" * 60, 1)


def test_at_the_end_everything_is_passed_on() -> None:
    batches = Batches("chief:0")
    batches.add("stdout", [b"one"])
    batches.pop_due(0.0)
    batches.add("stdout", [b"two"])
    assert batches.pop_due(0.01, all_of_it=True)[0].text == "two"
