"""Reads the arguments that a script declares to ``argparse``, ``click`` or absl from its text, and finds
values that they reject.

Relies only on what the text makes certain: options computed at run time accept any text. Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from core.script.syntax import SourceTree, called
from core.vocabulary.answers import Declared
from core.vocabulary.text import plain

MOST = 100
_TYPES = {"int": int, "float": float}
_NUMBERS = {"int": "a whole number", "float": "a number"}
_ABSL = {
    "DEFINE_integer": "int",
    "DEFINE_float": "float",
    "DEFINE_string": "",
    "DEFINE_list": "",
    "DEFINE_enum": "",
    "DEFINE_bool": "",
    "DEFINE_boolean": "",
}
_UNUSUAL = frozenset({None, "parents", "prefix_chars", "fromfile_prefix_chars"})
"""Options of a parser that change what is a positional argument."""
_Given = Mapping[str | None, ast.expr]


def declared(source: SourceTree) -> tuple[Declared, ...]:
    """The options in the order of the text, and argparse's positional arguments if all of them are certain;
    none if there are several parsers, or subcommands."""
    calls = sorted(source.calls, key=lambda call: (call.lineno, call.col_offset))
    made = [source.dotted(call.func) for call in calls]
    functions = (node for node in source.nodes if isinstance(node, ast.FunctionDef))
    bare = [source.dotted(each) for function in functions for each in function.decorator_list]
    parsers = made.count("argparse.ArgumentParser"), (made + bare).count("click.command")
    if any(called(call) == "add_subparsers" for call in calls) or "click.group" in made + bare:
        return ()
    found: list[Declared] = []
    if parsers == (1, 0):
        read = [_argparse(call) for call in calls if called(call) == "add_argument"]
        needed = [each.required for each in read if each is not None and each.is_positional]
        parser = calls[made.index("argparse.ArgumentParser")]
        usual = _UNUSUAL.isdisjoint(keyword.arg for keyword in parser.keywords)
        certain = usual and None not in read and needed == sorted(needed, reverse=True)
        found = [each for each in read if each is not None and (certain or not each.is_positional)]
    elif parsers == (0, 1):
        for call, name in zip(calls, made, strict=True):
            found += _click(source, call) if name == "click.option" else ()
    elif parsers == (0, 0):
        for call, name in zip(calls, made, strict=True):
            found += _absl(call, name.removeprefix("absl.flags."))
    return tuple(found)[:MOST]


def refused(words: Sequence[str], options: Sequence[Declared]) -> list[str]:
    """A sentence for each value that the script's parser would reject, and for each that it would miss."""
    by_name = _by_name(options)
    refusals = []
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if (option := by_name.get(name)) is None or not option.takes:
            continue
        # Some parsers accept the next option's name as a text value.
        takes_any = not option.kind and not option.choices
        if not equals and (place + 1 == len(words) or (words[place + 1] in by_name and not takes_any)):
            refusals.append(f"{name} needs a value.")
        elif reason := refusal(name, value if equals else words[place + 1], option):
            refusals.append(reason)
    at = positions(words, options)
    if at is None:
        return refusals
    given = {word.partition("=")[0] for word in words}
    positional = [option for option in options if option.is_positional]
    for option, place in zip(positional, at, strict=False):
        refusals += filter(None, (refusal(option.names[0], words[place], option),))
    missing = [option for option in options if not option.is_positional and given.isdisjoint(option.names)]
    missing += positional[len(at) :]
    return refusals + [f"{option.names[0]} is missing." for option in missing if option.required]


def positions(words: Sequence[str], options: Sequence[Declared]) -> list[int] | None:
    """The places of the positional arguments among ``words``. None: the declarations do not tell."""
    by_name, found, place = _by_name(options), list[int](), 0
    while place < len(words):
        name, equals, _ = words[place].partition("=")
        if name == "--":
            return [*found, *range(place + 1, len(words))]
        if name.startswith("-") and name != "-":
            option = by_name.get(name)
            if option is None or not (option.takes or option.switch):
                return None
            place += 2 if option.takes and not equals else 1
        else:
            found.append(place)
            place += 1
    return found


def _by_name(options: Sequence[Declared]) -> dict[str, Declared]:
    return {name: option for option in options if not option.is_positional for name in option.names}


def refusal(name: str, value: str, option: Declared) -> str:
    """Why the option, called ``name``, would reject the value; ``""`` if it would not."""
    if option.choices and value not in option.choices:
        return f"{name} must be one of {', '.join(option.choices)}, not {plain(value, 40)}."
    if option.kind and not _is(option.kind, value):
        return f"{name} must be {_NUMBERS[option.kind]}, not {plain(value, 40)}."
    return ""


def _is(kind: str, value: str) -> bool:
    try:
        _TYPES[kind](value)
    except ValueError:
        return kind == "int" and value[:2].lower() in ("0x", "0o")  # absl takes these
    return True


def _argparse(call: ast.Call) -> Declared | None:
    """None: a computed declaration, or a positional one of several words."""
    given: _Given = {keyword.arg: keyword.value for keyword in call.keywords}
    names = tuple(filter(None, map(_text, call.args)))
    dashed = [name.startswith("-") for name in names]
    if not names or len(names) < len(call.args) or None in given:
        return None
    kind, choices = _kind(given.get("type")), given.get("choices")
    action = _text(given["action"]) if "action" in given else "store"
    nargs = _text(given["nargs"]) if "nargs" in given else ""
    positional = not any(dashed)
    if not all(dashed) and not (positional and len(names) == 1 and action == "store"):
        return None
    if positional and "nargs" in given and nargs != "?":
        return None
    required = given.get("required")
    # argparse converts values before comparing them with choices: only texts compare literally.
    return Declared(
        names=names,
        takes=positional or ("nargs" not in given and action in ("store", "append")),
        switch=action == "store_true",
        kind=kind if choices is None else "",
        choices=_texts(choices) if "type" not in given else (),
        default=_default(given.get("default")),
        help=plain(_text(given.get("help")), 200),
        required=not nargs if positional else isinstance(required, ast.Constant) and required.value is True,
    )


def _click(source: SourceTree, call: ast.Call) -> Iterator[Declared]:
    given: _Given = {keyword.arg: keyword.value for keyword in call.keywords}
    texts = [_text(arg) for arg in call.args]
    names = tuple(name for text in texts if text.startswith("-") for name in text.replace(" ", "").split("/"))
    if not names or not all(texts) or None in given:
        return
    pair = any("/" in text for text in texts)
    flag, type_, default = given.get("is_flag"), given.get("type"), given.get("default")
    flags = flag is not None or not {"flag_value", "count", "nargs"}.isdisjoint(given)
    value = default.value if isinstance(default, ast.Constant) else None
    kind = _kind(type_)
    if type_ is None and type(value) in (int, float):
        kind = type(value).__name__  # click takes the default's type
    choices: tuple[str, ...] = ()
    if isinstance(type_, ast.Call) and source.dotted(type_.func) == "click.Choice" and not type_.keywords:
        choices = _texts(type_.args[0] if type_.args else None)
    yield Declared(
        names=names,
        takes=not pair and not flags,
        switch=not pair and isinstance(flag, ast.Constant) and flag.value is True and not value,
        kind=kind,
        choices=choices,
        default=_default(default),
        help=plain(_text(given.get("help")), 200),
    )


def _absl(call: ast.Call, what: str) -> Iterator[Declared]:
    given: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
    enum = what == "DEFINE_enum"
    order = ("name", "default", "enum_values", "help") if enum else ("name", "default", "help")
    given.update(zip(order, call.args, strict=False))
    name, default = _text(given.get("name")), given.get("default")
    if what not in _ABSL or not name or None in given:
        return
    boolean = what in ("DEFINE_bool", "DEFINE_boolean")
    off = isinstance(default, ast.Constant) and not default.value
    yield Declared(
        names=(f"--{name}",),
        takes=not boolean,
        switch=boolean and off,
        kind=_ABSL[what],
        choices=_texts(given.get("enum_values")) if "case_sensitive" not in given else (),
        default=_default(default),
        help=plain(_text(given.get("help")), 200),
    )


def _kind(type_: ast.expr | None) -> str:
    return type_.id if isinstance(type_, ast.Name) and type_.id in _TYPES else ""


def _texts(choices: ast.expr | None) -> tuple[str, ...]:
    """The items of a list of texts; none if one of them is something else."""
    given = choices.elts if isinstance(choices, ast.List | ast.Tuple) else []
    texts = [_text(each) for each in given]
    return tuple(texts) if all(texts) else ()


def _default(node: ast.expr | None) -> str:
    nothing = node is None or (isinstance(node, ast.Constant) and node.value is None)
    return "" if nothing or node is None else plain(_text(node) or ast.unparse(node), 40)


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
