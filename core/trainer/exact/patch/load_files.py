"""Models' files outside the members' own folders are the chief's: it writes them, and what is read is its."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras.callback_kinds import is_inside
from core.trainer.exact.steps.engine import Engine


def load(engine: Engine, original: Callable[..., Any], target: Any, path: Any, *args: Any, **kw: Any) -> Any:
    """`load_weights` or `load_model` that reads the chief's file on members that lack it, or have another one
    outside their own folders.

    `target` is the model for load_weights, None for load_model. Folders are read where they are.
    """
    subject = () if target is None else (target,)
    own = Path(path) if isinstance(path, str | Path) else None
    mark = _mark(own, engine.folders)
    marks = engine.collectives.gather_bytes(mark, "whether a file to load is there")
    if all(each == marks[0] for each in marks) or own is None:
        return original(*subject, path, *args, **kw)
    readable = engine.rank == 0 and own.is_file()
    data = engine.collectives.from_chief(b"f" + own.read_bytes() if readable else b"", "a file to load")
    if mark == marks[0] or not data:
        return original(*subject, path, *args, **kw)
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        copy = Path(folder) / own.name
        copy.write_bytes(data[1:])
        return original(*subject, str(copy), *args, **kw)


def _mark(path: Path | None, folders: tuple[Path, ...]) -> bytes:
    """What has to be the chief's, too: that a file is there, and outside the own folders what is in it."""
    if path is None or not path.exists():
        return b""
    if is_inside(path, folders) or not path.is_file():
        return b"there"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def replace_loading(engine: Engine) -> None:
    """Has Keras read weights and models so, but in a callback that only the chief has."""

    def load_weights(original: Any, model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if engine.alone:
            return original(model, filepath, *args, **kwargs)
        return load(engine, original, model, filepath, *args, **kwargs)

    def load_model(original: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if engine.alone:
            return original(filepath, *args, **kwargs)
        return load(engine, original, None, filepath, *args, **kwargs)

    def save(original: Any, model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_chiefs(engine, filepath):
            return None
        return original(model, filepath, *args, **kwargs)

    private.replace(keras.Model, "load_weights", load_weights)
    for name in ("save", "save_weights", "export"):
        private.replace(keras.Model, name, save)
    for module in (keras.models, keras.saving):
        private.replace(module, "load_model", load_model)
        private.replace(module, "save_model", save)


def _is_chiefs(engine: Engine, path: Any) -> bool:
    """Whether to leave writing this to the chief: on another laptop the folder may not even be there."""
    named = isinstance(path, str | os.PathLike)
    return engine.rank != 0 and bool(engine.folders) and named and not is_inside(path, engine.folders)
