"""What callbacks hold, as far as it is plain data: kept in a checkpoint, put back when a fit goes on."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

from core.trainer.exact import plain

_NEVER = {"params", "model", "_model"}
_OF_THIS_PROCESS: dict[str, set[str]] = {
    "CSVLogger": {"append", "append_header"},  # its file has been opened anew, to go on at its end
    "EarlyStopping": {"min_delta"},  # Keras gives it its sign when it first compares
    "ReduceLROnPlateau": {"min_delta"},
    "TensorBoard": {"_should_trace", "_is_tracing", "_profiler_started", "_start_batch", "_stop_batch"},
}


def capture(callback: Any, say: Callable[[str], None]) -> list[Any]:
    """[class name, {attribute: value}]; a copy. `say` hears what of a user's own callback is left out."""
    held: dict[str, Any] = {}
    for name, value in vars(callback).items():
        if name in _left_out(callback):
            continue
        if plain.is_plain(value):
            held[name] = copy.deepcopy(value)
        elif not _of_keras(callback) and not callable(value):
            say(
                f"Checkpoints leave out {type(callback).__name__}.{name}: it holds a {type(value).__name__}, "
                "and only numbers, texts, arrays, lists and dicts of them are kept."
            )
    return [type(callback).__name__, held]


def restore(callback: Any, kept: Sequence[Any]) -> None:
    """Nothing, where this is another callback than the one that was kept."""
    name, held = kept
    if type(callback).__name__ != name:
        return
    for attribute, value in held.items():
        if attribute in _left_out(callback):
            continue
        if isinstance(value, str) and _of_keras(callback):
            continue  # Settings and paths, which the script has just given.
        setattr(callback, attribute, value)


def before_train_begin(callbacks: Sequence[Any], epoch: int) -> None:
    """A log that is gone on with in `epoch` is not begun anew, and has no line of what comes again."""
    for callback in callbacks:
        if isinstance(callback, keras.callbacks.CSVLogger):
            if epoch or not callback.append:  # else what is there may be of earlier trainings alone
                _cut(Path(callback.filename), callback.sep, epoch)
            callback.append = True


def _cut(log: Path, separator: str, epoch: int) -> None:
    try:
        lines = log.read_text().splitlines(keepends=True)
    except (OSError, UnicodeDecodeError):
        return  # Not there, or not on this disk.
    kept, later = len(lines), math.inf
    # From the end, and only as long as epochs go down: a log may hold earlier trainings, too.
    while kept and epoch <= (number := _epoch_of(lines[kept - 1], separator)) < later:
        kept, later = kept - 1, number
    if kept < len(lines):
        log.write_text("".join(lines[:kept]))


def _epoch_of(line: str, separator: str) -> int:
    first = line.partition(separator)[0].strip()
    return int(first) if first.isdecimal() else -1


def _left_out(callback: Any) -> set[str]:
    names = (cls.__name__ for cls in type(callback).__mro__ if cls.__module__.startswith("keras."))
    return _NEVER.union(*(_OF_THIS_PROCESS.get(name, set()) for name in names))


def _of_keras(callback: Any) -> bool:
    return type(callback).__module__.startswith("keras.")
