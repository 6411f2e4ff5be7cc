"""Callbacks' plain data: stored in a checkpoint, restored when a fit resumes.

A checkpoint may come from another laptop. So only numbers are restored into a callback: its texts (paths,
commands) and whatever its class defines stay as this process' script sets them.
"""

from __future__ import annotations

import copy
import inspect
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import keras

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.resume import own_generators, plain

_OF_THIS_PROCESS: dict[str, set[str]] = {
    "CSVLogger": {"append", "append_header"},  # Its file has been reopened for appending.
    "EarlyStopping": {"min_delta"},  # Keras sets its sign when it first compares.
    "ReduceLROnPlateau": {"min_delta"},
    **private.OF_THE_PROCESS,
}
_METRICS_NAMES: dict[str, set[str]] = {"CSVLogger": {"keys"}, "History": {"history"}}
"""Attributes of Keras' own callbacks whose texts are names of metrics."""
_NAME = re.compile(r"\w[\w .:=%+-]{0,199}|(?:val_)?<lambda>")
"""A metric's name. Scripts name files after metrics, so no path matches, nor what a shell would interpret."""
_LINES_BEFORE = "tandem_lines_before"
"""A ``CSVLogger``'s attribute: how many lines its file had when the fit began."""
_ABSENT = object()


def capture(callback: Any, say: Callable[[str], None]) -> list[Any]:
    """[class name, {attribute: value}], a copy. Reports by `say` what it leaves out of a user's callback."""
    held: dict[str, Any] = {}
    never = private.OF_THE_FIT | _listed(callback, _OF_THIS_PROCESS)
    for name, value in vars(callback).items():
        if name in never:
            continue
        if plain.is_plain(value):
            held[name] = copy.deepcopy(value)
        elif not (_is_keras(callback) or callable(value) or own_generators.is_generator(value)):
            say(
                f"Checkpoints leave out {type(callback).__name__}.{name}: it holds a {type(value).__name__}, "
                "and only numbers, texts, arrays, lists and dicts of them are kept."
            )
    return [type(callback).__name__, held]


def is_state(value: Any) -> bool:
    """Whether ``value`` has the form of what ``capture`` returns."""
    match value:
        case [str(), dict()]:
            return True
    return False


def restore(callback: Any, kept: Sequence[Any], say: Callable[[str], None]) -> None:
    """Restores what ``capture`` returned for this class. Reports by `say` what stays unchanged."""
    if not is_state(kept) or type(callback).__name__ != kept[0]:
        return
    name, held = kept
    never = private.OF_THE_FIT | _listed(callback, _OF_THIS_PROCESS)
    for attribute, value in held.items():
        if attribute in never:
            continue
        if _may_change(callback, attribute, value):
            setattr(callback, attribute, value)
        elif str(attribute).isidentifier() and (
            not _is_keras(callback) or attribute in _listed(callback, _METRICS_NAMES)
        ):
            say(
                f"{name}.{attribute:.100} keeps the script's value, not the checkpoint's: text is not "
                "restored from checkpoints."
            )


def _may_change(callback: Any, attribute: Any, value: Any) -> bool:
    """Strict: a hostile checkpoint must not make this user's script write elsewhere, or run something."""
    if type(attribute) is not str or attribute.startswith("__"):
        return False
    default = inspect.getattr_static(type(callback), attribute, _ABSENT)
    present = vars(callback).get(attribute, default)
    known = present is not _ABSENT or attribute in _named_by_code(type(callback))
    if not all(each is _ABSENT or plain.is_plain(each) for each in (default, present)):
        return False  # For example a method, a property, a path, an open file.
    if attribute in _listed(callback, _METRICS_NAMES):
        return known and all(_NAME.fullmatch(text) for text in _texts(value).values())
    return known and _texts(value) == _texts(present)


def _texts(value: Any, place: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], str]:
    """All texts of plain data, including dict keys, by their place."""
    parts: list[tuple[Any, Any]]
    match value:
        case str():
            return {place: value}
        case list() | tuple():
            parts = list(enumerate(value))
        case dict():
            parts = [
                ((number, each), pair[each]) for number, pair in enumerate(value.items()) for each in (0, 1)
            ]
        case _:
            return {}
    return {at: text for part, held in parts for at, text in _texts(held, (*place, part)).items()}


def _named_by_code(cls: type) -> set[str]:
    """Names that the class's methods use: an attribute set by on_epoch_begin is missing in mid-epoch."""
    methods = (each for base in cls.__mro__ for each in vars(base).values() if isinstance(each, FunctionType))
    return {name for method in methods for name in method.__code__.co_names}


def note_logs(callbacks: Sequence[Any]) -> None:
    """Call before a fit that does not resume: notes how long the logs already are, for its checkpoints."""
    for callback in callbacks:
        if isinstance(callback, keras.callbacks.CSVLogger):
            lines = _lines(Path(callback.filename)) if callback.append else None
            setattr(callback, _LINES_BEFORE, len(lines or ()))


def before_train_begin(callbacks: Sequence[Any], epoch: int, states: Sequence[Any]) -> None:
    """Prepares logs for appending from `epoch` on: removes lines of epochs that will be trained again.
    ``states``: what ``capture`` returned for the callbacks."""
    for number, callback in enumerate(callbacks):
        if isinstance(callback, keras.callbacks.CSVLogger):
            match states[number : number + 1]:
                case [[_, {"tandem_lines_before": int(before)}]] if before >= 0:
                    setattr(callback, _LINES_BEFORE, before)
                    _cut(Path(callback.filename), callback.sep, epoch, before)
                case _ if epoch or not callback.append:  # Otherwise all lines may be of earlier trainings.
                    _cut(Path(callback.filename), callback.sep, epoch, None)
            callback.append = True


def _lines(log: Path) -> list[str] | None:
    try:
        return log.read_text().splitlines(keepends=True)
    except (OSError, UnicodeDecodeError):
        return None  # The file is missing, or not on this disk.


def _cut(log: Path, separator: str, epoch: int, before: int | None) -> None:
    """``before``: lines that the log had when the training began; None: unknown."""
    lines = _lines(log) or []
    kept, later = len(lines), math.inf
    # Read backwards, and only while epochs go down: elsewhere the log may hold more earlier trainings.
    while kept > (before or 0) and epoch <= (number := _epoch_of(lines[kept - 1], separator)) <= later:
        if number == later and before is None:
            break  # an earlier training of one epoch
        kept, later = kept - 1, number
    if kept < len(lines):
        log.write_text("".join(lines[:kept]))


def _epoch_of(line: str, separator: str) -> int:
    first = line.partition(separator)[0].strip()
    return int(first) if first.isdecimal() else -1


def _listed(callback: Any, attributes: dict[str, set[str]]) -> set[str]:
    """The attributes listed for the Keras classes that the callback derives from."""
    names = (cls.__name__ for cls in type(callback).__mro__ if cls.__module__.startswith("keras."))
    return set().union(*(attributes.get(name, set()) for name in names))


def _is_keras(callback: Any) -> bool:
    return type(callback).__module__.startswith("keras.")
