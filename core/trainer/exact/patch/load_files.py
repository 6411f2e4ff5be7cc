"""Files that the chief alone wrote (a checkpoint), when the script on every member reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members.collectives import Collectives
from core.trainer.exact.steps.engine import Engine


def load(
    collectives: Collectives, original: Callable[..., Any], target: Any, path: Any, *args: Any, **kw: Any
) -> Any:
    """`load_weights` or `load_model` that reads the chief's file on members that lack it.

    `target` is the model for load_weights, None for load_model. Folders are read where they are.
    """
    subject = () if target is None else (target,)
    own = Path(path) if isinstance(path, str | Path) else None
    lacks = own is not None and not own.exists()
    if not collectives.any([lacks], "whether a file to load is there")[0] or own is None:
        return original(*subject, path, *args, **kw)
    readable = collectives.rank == 0 and own.is_file()
    data = collectives.from_chief(b"f" + own.read_bytes() if readable else b"", "a file to load")
    if not lacks or not data:
        return original(*subject, path, *args, **kw)
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        copy = Path(folder) / own.name
        copy.write_bytes(data[1:])
        return original(*subject, str(copy), *args, **kw)


def replace_loading(engine: Engine) -> None:
    """Has Keras read weights and models so, but in a callback that only the chief has."""

    def load_weights(original: Any, model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if engine.alone:
            return original(model, filepath, *args, **kwargs)
        return load(engine.collectives, original, model, filepath, *args, **kwargs)

    def load_model(original: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if engine.alone:
            return original(filepath, *args, **kwargs)
        return load(engine.collectives, original, None, filepath, *args, **kwargs)

    private.replace(keras.Model, "load_weights", load_weights)
    for module in (keras.models, keras.saving):
        private.replace(module, "load_model", load_model)
