"""The format of the lines of ``--jsonl`` and of the local socket. Pure.

In: ``{"id": 1, "type": "pair", ...}``: a command with a number that the client chooses.
Out: first ``{"vocabulary": 1, "tandem": ..., "state": {...}}``; then answers ``{"reply": 1, "type": ...}``
and events ``{"type": "device_found", ...}`` as they come. An invalid line is answered with ``{"reply": <its
id or null>, "type": "refused", ...}``.
"""

from __future__ import annotations

import msgspec

from core.vocabulary.answers import Answer, Refused
from core.vocabulary.bounds import Name
from core.vocabulary.commands import Command
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.state import State
from core.vocabulary.versions import TANDEM, VOCABULARY

MAX_LINE_BYTES = 1 << 20
Id = int | Name | None


class NodeGreeting(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. It comes again, with ``missed``, when a slow reader lost events: the state is
    complete."""

    vocabulary: int = VOCABULARY
    tandem: str = TANDEM
    state: State
    missed: int = 0


class NumberedCommand(msgspec.Struct, frozen=True):
    """A command with its client's number."""

    id: Id
    command: Command


class Replied(msgspec.Struct, frozen=True):
    """An answer to the command of that number."""

    id: Id
    answer: Answer


class _Id(msgspec.Struct):
    id: Id = None


class _Reply(msgspec.Struct):
    reply: Id


class _Kind(msgspec.Struct):
    reply: Id | msgspec.UnsetType = msgspec.UNSET
    vocabulary: int | msgspec.UnsetType = msgspec.UNSET


_commands = msgspec.json.Decoder(Command)
_ids = msgspec.json.Decoder(_Id)
_kinds = msgspec.json.Decoder(_Kind)
_answers = msgspec.json.Decoder(Answer)
_greetings = msgspec.json.Decoder(NodeGreeting)
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def read_asked(line: bytes) -> NumberedCommand | Replied | None:
    """The command, or the refusal to send back; None for an empty line. Never raises."""
    if len(line) > MAX_LINE_BYTES:
        return _refused(None, f"A line is longer than {MAX_LINE_BYTES} bytes.")
    if not line.strip():
        return None
    number: Id = None
    try:
        number = _ids.decode(line).id
        return NumberedCommand(number, _commands.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _refused(number, f"This line is not a command: {error}.")


def write_asked(number: int, command: Command) -> bytes:
    return _line(b'{"id":%d' % number, msgspec.json.encode(command))


def write_reply(number: Id, answer: Answer) -> bytes:
    return _line(msgspec.json.encode(_Reply(number))[:-1], msgspec.json.encode(answer))


def write_event(event: Event) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def write_greeting(state: State, missed: int = 0) -> bytes:
    return msgspec.json.encode(NodeGreeting(state=state, missed=missed)) + b"\n"


def read_message(line: bytes) -> NodeGreeting | Replied | Event:
    """A message of the node. Raises ``msgspec.DecodeError`` for lines that no node of this version sends."""
    kind = _kinds.decode(line)
    if kind.vocabulary is not msgspec.UNSET:
        return _greetings.decode(line)
    if kind.reply is not msgspec.UNSET:
        return Replied(kind.reply, _answers.decode(line))
    return _events.decode(line)


def _line(head: bytes, body: bytes) -> bytes:
    """``body`` is an object with at least its ``type``."""
    return head + b"," + body[1:] + b"\n"


def _refused(number: Id, what: str) -> Replied:
    problem = Problem(
        code="bad-line",
        what=what,
        fix='Send one JSON object a line, such as {"id": 1, "type": "get_state"}; see docs/jsonl.md.',
    )
    return Replied(number, Refused(problem=problem))
