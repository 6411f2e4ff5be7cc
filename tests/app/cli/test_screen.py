import errno
import io
import os

import pytest

from app.cli.screen import Lasting, LinesScreen
from core.node import json_lines
from core.vocabulary.answers import Refused
from core.vocabulary.errors import Problem
from tests.app.cli.scripted_node import PROBLEM, Words


def test_a_problem_says_what_happened_and_how_to_mend_it() -> None:
    screen = Words()
    screen.problem(PROBLEM)
    assert screen.said == "It did not work.\nDo this.\n"


def test_only_the_end_of_a_long_detail_is_shown() -> None:
    screen = Words()
    detail = "\n".join(f"line {number}" for number in range(100))
    screen.problem(Problem(code="x", what="No.", detail=detail))
    assert "line 99" in screen.said
    assert "line 50" not in screen.said


def test_with_json_only_objects_go_to_stdout() -> None:
    screen = Words(json=True)
    screen.say("for people")
    screen.problem(PROBLEM)
    assert screen.told == [
        {
            "ok": False,
            "problem": {
                "code": "test",
                "what": "It did not work.",
                "fix": "Do this.",
                "detail": "",
                "command": "",
                "command_on": "",
                "installs": [],
            },
        }
    ]
    assert screen.said == "for people\n"


def test_what_a_peer_says_can_neither_colour_nor_mark_up_nor_steer() -> None:
    screen = Words()
    screen.say("[bold]not bold[/bold] :rocket:")
    screen.problem(Problem(code="x", what="\x1b[2Jgone\x07"))
    assert screen.said == "[bold]not bold[/bold] :rocket:\ngone\n"


def test_where_stdout_is_json_lines_a_failure_is_one_of_them() -> None:
    out = io.StringIO()
    LinesScreen(out=out).problem(PROBLEM)
    told = json_lines.read_message(out.getvalue().encode())
    assert told == json_lines.Replied(None, Refused(problem=PROBLEM))


def test_nothing_moves_where_no_terminal_is() -> None:
    assert not Words().live
    assert not Words(json=True).live


@pytest.mark.real
@pytest.mark.skipif(os.name != "posix", reason="terminals as POSIX has them")
def test_words_to_a_terminal_that_was_closed_go_nowhere() -> None:
    person, terminal = os.openpty()
    with open(terminal, "w", encoding="utf-8") as screen:  # noqa: PTH123 (the file of a descriptor)
        lasting = Lasting(screen)
        lasting.write("before\n")
        lasting.flush()
        assert os.read(person, 100) == b"before\r\n"
        os.close(person)
        with pytest.raises(OSError, match="Input/output error") as hung_up:
            os.write(terminal, b"x")
        assert hung_up.value.errno == errno.EIO
        for _ in range(2):
            lasting.write("after\n")
            lasting.flush()


@pytest.mark.real
def test_words_to_a_reader_that_has_left_end_the_program() -> None:
    read, write = os.pipe()
    os.close(read)
    screen = open(write, "w", encoding="utf-8", buffering=1)  # noqa: PTH123, SIM115 (its end fails, too)
    try:
        with pytest.raises(BrokenPipeError):
            Lasting(screen).write("more\n")
    finally:
        with pytest.raises(BrokenPipeError):
            screen.close()
