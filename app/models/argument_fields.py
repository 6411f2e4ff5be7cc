"""A script's declared arguments as fields of a form, and the argument text that they stand for. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from app.models.draft import split
from core.script.arguments import positions, refusal
from core.sweep.values import argument_sets
from core.vocabulary.answers import Declared
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.text import plain

MOST = 24
"""Fields of a form; other options are written into the text."""
ON = "on"
"""The value of a switch that is given."""


class Field(NamedTuple):
    """``value``: as given, ``""`` without one. ``wrong``: why the script would reject it. ``usable``: false
    for a positional argument whose predecessor is not given."""

    option: Declared
    value: str
    wrong: str = ""
    usable: bool = True

    @property
    def title(self) -> str:
        """The longest name, without its dashes."""
        return plain(name_of(self.option).lstrip("-"), 40)

    @property
    def meaning(self) -> str:
        default = f"Default: {self.option.default}." if self.option.default else ""
        names = ", ".join(self.option.names)
        return " ".join(filter(None, (f"{names}:", self.option.help, default))).removesuffix(":")


def name_of(option: Declared) -> str:
    return max(option.names, key=len)


def fields(options: Sequence[Declared], text: str, *, several: bool) -> tuple[Field, ...]:
    """Return fields for the options that can have one. ``several``: commas separate values to try."""
    words = split(text)
    if isinstance(words, Problem):
        words = ()
    found = []
    at = positions(words, options)
    positional = [option for option in options if option.is_positional]
    for option in options:
        if not (option.takes or option.switch) or (option.is_positional and at is None):
            continue
        _, value = _given(words, option, options)
        tried = _tried(value, several=several) if option.takes else ()
        told = filter(None, (refusal(name_of(option), each, option) for each in tried))
        usable = not option.is_positional or positional.index(option) <= len(at or ())
        found.append(Field(option, value, next(told, ""), usable))
    return tuple(found)[:MOST]


def value_of(words: Sequence[str], option: Declared) -> str:
    """Return an option's value as given, or its default."""
    places, value = _given(words, option)
    return value if places else option.default


def with_value(
    words: Sequence[str], option: Declared, value: str, options: Sequence[Declared] = ()
) -> tuple[str, ...]:
    """The words with the option once, where it was first; ``""``: without it. ``options``: all of the
    script's, for a positional one, which follows the one before it."""
    places, _ = _given(words, option, options)
    if option.is_positional and not places:
        at = (positions(words, options) or [-1])[-1] + 1
        return (*words[:at], value, *words[at:]) if value else tuple(words)
    drop = {place for begin, end in places for place in range(begin, end)}
    at = places[0][0] if places else words.index("--") if "--" in words else len(words)
    name = name_of(option)
    # A value that begins with a dash would be taken for an option of its own.
    valued = (f"{name}={value}",) if value.startswith("-") else (name, value)
    new = () if not value else (value,) if option.is_positional else (name,) if option.switch else valued
    before = tuple(word for place, word in enumerate(words[:at]) if place not in drop)
    after = tuple(word for place, word in enumerate(words) if place >= at and place not in drop)
    return (*before, *new, *after)


def changed(text: str, option: Declared, value: str, options: Sequence[Declared] = ()) -> str:
    """The text with the option's new value; as it was while a quotation mark is open. ``options``: all of the
    script's."""
    words = split(text)
    return text if isinstance(words, Problem) else shlex.join(with_value(words, option, value, options))


def _tried(value: str, *, several: bool) -> tuple[str, ...]:
    if not several:
        return (value,) if value else ()
    try:
        return tuple(each for (each,) in argument_sets((value,))) if value else ()
    except TandemError:
        return ()


def _given(
    words: Sequence[str], option: Declared, options: Sequence[Declared] = ()
) -> tuple[list[tuple[int, int]], str]:
    """Where the option's words are, and its last value."""
    places, value = [], ""
    if option.is_positional:
        number = [each for each in options if each.is_positional].index(option)
        at = (positions(words, options) or [])[number : number + 1]
        return [(place, place + 1) for place in at], words[at[0]] if at else ""
    for place, word in enumerate(words):
        if word == "--":
            break
        name, equals, after = word.partition("=")
        if name not in option.names:
            continue
        if option.switch or equals:
            places.append((place, place + 1))
            value = ON if option.switch else after
        else:
            places.append((place, min(place + 2, len(words))))
            value = words[place + 1] if place + 1 < len(words) else ""
    return places, value
