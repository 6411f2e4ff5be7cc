"""Reads a script's ``argparse`` options from its text, and finds values that they reject.

Relies only on what the text makes certain: options computed at run time accept any text. Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from core.script.syntax import SourceTree, called
from core.vocabulary.answers import Declared
from core.vocabulary.text import plain

MOST = 100
_TYPES = {"int": int, "float": float}
_NUMBERS = {"int": "a whole number", "float": "a number"}


def declared(source: SourceTree) -> tuple[Declared, ...]:
    """In the order of the text; none where there are several parsers, or subparsers."""
    made = [source.dotted(call.func) for call in source.calls]
    if made.count("argparse.ArgumentParser") != 1 or any(
        called(call) == "add_subparsers" for call in source.calls
    ):
        return ()
    added = [call for call in source.calls if called(call) == "add_argument"]
    found = (each for call in sorted(added, key=lambda call: call.lineno) for each in _declared(call))
    return tuple(found)[:MOST]


def refused(words: Sequence[str], options: Sequence[Declared]) -> list[str]:
    """A sentence for each value that ``argparse`` would reject."""
    by_name = {name: option for option in options for name in option.names}
    told = []
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if (option := by_name.get(name)) is None or not option.takes:
            continue
        if not equals and (place + 1 == len(words) or words[place + 1] in by_name):
            told.append(f"{name} needs a value.")
            continue
        value = value if equals else words[place + 1]
        if option.choices and value not in option.choices:
            told.append(f"{name} must be one of {', '.join(option.choices)}, not {plain(value, 40)}.")
        elif option.kind and not _is(option.kind, value):
            told.append(f"{name} must be {_NUMBERS[option.kind]}, not {plain(value, 40)}.")
    return told


def _is(kind: str, value: str) -> bool:
    try:
        _TYPES[kind](value)
    except ValueError:
        return False
    return True


def _declared(call: ast.Call) -> Iterator[Declared]:
    names = [text for arg in call.args if (text := _text(arg)).startswith("-")]
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if not names or len(names) < len(call.args) or None in given:
        return  # a positional one, or a computed declaration
    kind, choices = given.get("type"), given.get("choices")
    # argparse converts values before comparing them with choices: only texts compare literally.
    plainly = kind is None and isinstance(choices, ast.List | ast.Tuple)
    texts = [_text(each) for each in getattr(choices, "elts", ())] if plainly else []
    yield Declared(
        names=tuple(names),
        takes="nargs" not in given and _text(given.get("action")) in ("", "store", "append"),
        kind=kind.id if choices is None and isinstance(kind, ast.Name) and kind.id in _TYPES else "",
        choices=tuple(texts) if all(texts) else (),
        default=_default(given.get("default")),
        help=plain(_text(given.get("help")), 200),
    )


def _default(node: ast.expr | None) -> str:
    return "" if node is None else plain(_text(node) or ast.unparse(node), 40)


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
