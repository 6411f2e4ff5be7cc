"""Commands, events, answers and messages as other programs see them: named, frozen, unchanged by a round
trip."""

import importlib
import re
from typing import Any, get_args

import pytest

from core.vocabulary import wire
from core.vocabulary.answers import Answer
from core.vocabulary.commands import Command
from core.vocabulary.events import Event
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Phase
from core.vocabulary.trainer_messages import Order, Report
from core.vocabulary.wire import Tagged
from tests.core import golden
from tests.core.samples import sample
from tests.core.vocabulary_tables import MARK, OBJECTS, PAGE, TAGGED, objects_within, tables

VOCABULARIES: dict[str, Any] = {
    "commands": Command,
    "events": Event,
    "answers": Answer,
    "messages between nodes": Message,
    "phases": Phase,
    "orders and reports of a trainer": Order | Report,
}
UNIONS: dict[str, Any] = {
    "core.vocabulary.commands": Command,
    "core.vocabulary.events": Event,
    "core.vocabulary.answers": Answer,
    "core.vocabulary.peer_messages": Message,
    "core.vocabulary.phases": Phase,
    "core.vocabulary.trainer_messages": Order | Report,
}
KINDS = [
    pytest.param(kind, union, id=f"{module}.{kind.__name__}")
    for module, union in UNIONS.items()
    for kind in get_args(union)
]


@pytest.mark.parametrize(("kind", "union"), KINDS)
def test_it_is_frozen_and_named_in_snake_case(kind: type[Tagged], union: Any) -> None:
    assert kind.__struct_config__.frozen
    assert kind.__struct_config__.tag_field == "type"
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", str(kind.__struct_config__.tag))


@pytest.mark.parametrize(("kind", "union"), KINDS)
def test_it_survives_a_round_trip_through_json_and_messagepack(kind: type[Tagged], union: Any) -> None:
    message = sample(kind)

    assert wire.from_json(wire.to_json(message), union) == message
    assert wire.from_msgpack(wire.to_msgpack(message), union) == message
    assert b"\n" not in wire.to_json(message)
    assert wire.from_json(wire.to_json(message), dict[str, Any])["type"] == type_of(message)


@pytest.mark.parametrize("module", UNIONS)
def test_every_message_of_a_module_is_in_its_union(module: str) -> None:
    defined = {
        kind
        for kind in vars(importlib.import_module(module)).values()
        if isinstance(kind, type) and issubclass(kind, Tagged) and kind.__module__ == module
        if not kind.__subclasses__()
    }

    assert defined == {kind for kind in get_args(UNIONS[module]) if kind.__module__ == module}


def type_of(message: Tagged) -> str:
    """Its ``type`` on the wire."""
    return str(type(message).__struct_config__.tag)


def test_no_command_has_the_name_of_an_event_or_an_answer() -> None:
    names = [{type_of(sample(kind)) for kind in get_args(union)} for union in (Command, Event, Answer)]

    assert not names[0] & names[1] and not names[0] & names[2] and not names[1] & names[2]


def test_the_documented_tables_are_those_of_the_types() -> None:
    """After a change of the vocabulary: python -m tests.core.vocabulary_tables"""
    _, mark, documented = PAGE.read_text(encoding="utf-8").partition(MARK)

    assert mark
    assert documented.strip() == tables().strip()


def test_every_object_that_travels_is_documented() -> None:
    tagged = {kind for union in TAGGED.values() for kind in get_args(union)}

    assert objects_within(tagged) - tagged == set(OBJECTS)


def test_formats_of_messages_and_of_the_history_stay_as_they_are() -> None:
    """After an intended change of a format: python -m tests.core.golden"""
    assert golden.PAGE.read_text(encoding="utf-8") == golden.golden(VOCABULARIES)
