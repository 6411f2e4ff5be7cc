"""Lines that any program can write, and none can break."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.node import json_lines
from core.node.json_lines import NodeGreeting, NumberedCommand, Replied
from core.vocabulary.answers import Done, Refused, StateNow
from core.vocabulary.commands import AnswerPairing, GetState, StopRun
from core.vocabulary.state import State, apply
from tests.core.fake_node import found, started

STATE = apply(apply(State(), started()), found())


def refused(line: bytes) -> Replied:
    answer = json_lines.read_asked(line)
    assert isinstance(answer, Replied)
    assert isinstance(answer.answer, Refused)
    assert answer.answer.problem.code == "bad-line"
    return answer


def test_a_command_keeps_its_number() -> None:
    line = json_lines.write_asked(7, AnswerPairing(same=True))

    assert json.loads(line) == {"id": 7, "type": "answer_pairing", "same": True}
    assert json_lines.read_asked(line) == NumberedCommand(7, AnswerPairing(same=True))


def test_a_command_needs_no_number() -> None:
    assert json_lines.read_asked(b'{"type":"stop_run"}') == NumberedCommand(None, StopRun())


def test_an_id_may_be_a_word() -> None:
    assert json_lines.read_asked(b'{"type":"get_state","id":"first"}') == NumberedCommand("first", GetState())


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"{",
        b"[]",
        b"null",
        b'{"type": "format_disk"}',
        b'{"type": "answer_pairing"}',
        b'{"type": "answer_pairing", "same": "yes"}',
        b'{"id": [1], "type": "get_state"}',
        b"\xff\xfe",
        b'{"type": "pair", "address": "\xff"}',
        b"[" * 100_000,
        b" " * (json_lines.MAX_LINE_BYTES + 1),
    ],
)
def test_a_line_that_is_not_a_command_is_refused(line: bytes) -> None:
    refused(line)


def test_a_refusal_carries_the_number_where_it_was_readable() -> None:
    assert refused(b'{"id": 3, "type": "format_disk"}').id == 3


def test_a_line_may_be_a_mebibyte_long_and_no_longer() -> None:
    line = b'{"type":"get_state"}'
    longest = line + b" " * (2**20 - len(line))
    assert json_lines.read_asked(longest) == NumberedCommand(None, GetState())
    assert "longer than 1048576 bytes" in str(refused(longest + b" ").answer)


def test_an_empty_line_is_ignored() -> None:
    assert json_lines.read_asked(b"  \r") is None


def test_a_reply_is_one_object_with_the_answers_fields() -> None:
    line = json_lines.write_reply(3, Done())

    assert json.loads(line) == {"reply": 3, "type": "done"}
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert json_lines.read_message(line) == Replied(3, Done())


def test_a_whole_state_survives_the_round_trip() -> None:
    assert json_lines.read_message(json_lines.write_reply(None, StateNow(state=STATE))) == Replied(
        None, StateNow(state=STATE)
    )
    assert json_lines.read_message(json_lines.write_greeting(STATE, 2)) == NodeGreeting(state=STATE, missed=2)


def test_a_greeting_says_that_nothing_was_missed_unless_something_was() -> None:
    assert json_lines.read_message(json_lines.write_greeting(STATE)) == NodeGreeting(state=STATE, missed=0)


def test_an_event_survives_the_round_trip() -> None:
    assert json_lines.read_message(json_lines.write_event(found("büro\n"))) == found("büro\n")
    assert json_lines.write_event(found("büro\n")).count(b"\n") == 1


@given(st.binary(max_size=200))
def test_no_line_whatever_raises(line: bytes) -> None:
    assert json_lines.read_asked(line) is None or refused(line) is not None
