"""Kinds of callbacks: those that write, those that need every batch, and Keras' own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import keras

from core.trainer.exact.keras import keras_private as private

WRITERS = (
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.CSVLogger,
    keras.callbacks.TensorBoard,
    keras.callbacks.BackupAndRestore,
    keras.callbacks.RemoteMonitor,
)
"""Callbacks that only write or send data: they need no other member."""
_MONITORS = (
    keras.callbacks.EarlyStopping,
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.ReduceLROnPlateau,
)
_BATCH_HOOKS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
_OTHER_HOOKS = ("on_test_batch_begin", "on_test_batch_end", "on_predict_batch_begin", "on_predict_batch_end")


def each_batch(callbacks: Any) -> tuple[bool, bool]:
    """Whether callbacks act on every batch: in training; in testing or predicting.

    If so, steps can't be bundled. The same on every member, whichever callbacks run there.
    """
    own = listed(callbacks)
    others = (hook for callback in own if not _is_keras(callback) for hook in _hooks(callback, _OTHER_HOOKS))
    return any(_hears_batches(callback) for callback in own), any(others)


def monitored(callbacks: Iterable[Any]) -> str:
    """The first metric besides the loss that one of Keras' callbacks monitors, without ``val_``."""
    names = (
        callback.monitor.removeprefix("val_") for callback in callbacks if isinstance(callback, _MONITORS)
    )
    return next((name for name in names if name != "loss"), "")


def writes_on(callback: Any, folders: Iterable[Path]) -> bool:
    """Whether a member other than the chief also runs a callback; `folders` are the member's own.

    A script may read what `ModelCheckpoint`, `CSVLogger` and `BackupAndRestore` write, so every member writes
    it in its own folders. Only the chief writes elsewhere, or sends.
    """
    match callback:
        case keras.callbacks.ModelCheckpoint():
            path = callback.filepath
        case keras.callbacks.CSVLogger():
            path = callback.filename
        case keras.callbacks.BackupAndRestore():
            path = callback.backup_dir
        case _:
            return not isinstance(callback, WRITERS)
    return is_inside(path, folders)


def is_inside(path: Any, folders: Iterable[Path]) -> bool:
    """Whether a path given to Keras is below one of `folders`; an address such as ``gs://`` is not."""
    text = os.fspath(path)
    if not isinstance(text, str) or "://" in text:
        return False
    whole = Path(os.path.realpath(text))
    return any(whole.is_relative_to(os.path.realpath(folder)) for folder in folders)


def listed(callbacks: Any) -> list[Any]:
    """A user's `callbacks` argument as a list."""
    if isinstance(callbacks, private.CallbackList):
        return list(callbacks.callbacks)
    return list(private.flatten(callbacks)) if callbacks else []


def _hears_batches(callback: Any) -> bool:
    match callback:
        case keras.callbacks.ProgbarLogger() | keras.callbacks.History():
            return False
        case keras.callbacks.TensorBoard():
            return callback.update_freq != "epoch" or private.traces_batches(callback) or _own_hooks(callback)
        case keras.callbacks.ModelCheckpoint() | keras.callbacks.BackupAndRestore():
            return callback.save_freq != "epoch" or _own_hooks(callback)
    return any(_hooks(callback, _BATCH_HOOKS))


def _hooks(callback: Any, hooks: Iterable[str]) -> Iterator[bool]:
    return (not private.is_default(getattr(callback, hook)) for hook in hooks)


def _is_keras(callback: Any) -> bool:
    return type(callback).__module__.startswith("keras.") and not isinstance(
        callback, keras.callbacks.LambdaCallback
    )


def _own_hooks(callback: Any) -> bool:
    """Whether a user's subclass of one of Keras' callbacks has batch hooks of its own."""
    classes = [cls for cls in type(callback).__mro__ if not cls.__module__.startswith("keras.")]
    return any(hook in vars(cls) for cls in classes for hook in _BATCH_HOOKS)
