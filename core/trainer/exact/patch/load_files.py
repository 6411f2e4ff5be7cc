"""Model files outside the members' own folders: only the chief writes them, and others read its bytes.

Security invariant: bytes from another laptop are data. They never replace a file in a member's own folders,
and Keras reads them in its safe mode whatever the script says.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import keras
import msgspec

from core.project.checkpoint_store import LIMIT_BYTES
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras.callback_kinds import is_inside
from core.trainer.exact.steps.engine import Engine
from core.vocabulary.errors import TandemError

_WEIGHTS = (".weights.h5", ".keras")
"""Suffixes of files that hold weights without code."""
_MODELS = (".keras",)
"""Suffixes of files in which Keras' safe mode refuses code: not ``.h5``, if they hold whole models."""


class _FileMark(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The file that a member has at the path to load."""

    own: bool = True
    """Whether the file is in the member's own folders, or the path is none on a disk."""
    sha256: Annotated[bytes, msgspec.Meta(max_length=32)] = b""
    """Empty if there is no file."""
    size: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0


_FILE_MARK = msgspec.msgpack.Decoder(_FileMark)


def load(engine: Engine, original: Callable[..., Any], target: Any, path: Any, *args: Any, **kw: Any) -> Any:
    """`load_weights` or `load_model`; reads the chief's file on members that have none, or another one
    outside their own folders.

    `target`: the model for load_weights, None for load_model. Folders are read locally. Raises TandemError if
    a missing file may hold code.
    """
    subject = () if target is None else (target,)
    own = Path(path) if isinstance(path, str | Path) else None
    mark = _FileMark() if own is None else _mark(own, engine.folders)
    chief, *others = engine.collectives.gather_objects(mark, _FILE_MARK, "whether a file to load is there")
    giver = engine.collectives.met[0]
    if own is None or not any(_lacks(each, chief) for each in others):
        return original(*subject, path, *args, **kw)
    kinds = _MODELS if target is None else _WEIGHTS
    suffix = next((kind for kind in kinds if own.name.endswith(kind)), None)
    if suffix is None:
        raise _refused(own, f"only {' and '.join(kinds)} files are accepted from another laptop")
    if chief.size > LIMIT_BYTES:
        raise _refused(own, f"it is larger than {LIMIT_BYTES / 1e9:.0f} GB")
    what = "a file to load"
    given = own.read_bytes() if engine.rank == giver else b""
    data = engine.collectives.bytes_from_chief(given, what, chief.size)
    if engine.collectives.met[0] != giver:  # The chief has left meanwhile.
        return load(engine, original, target, path, *args, **kw)
    if engine.rank == giver or not _lacks(mark, chief):
        return original(*subject, path, *args, **kw)
    if hashlib.sha256(data).digest() != chief.sha256:
        raise engine.collectives.unsound(giver, what, "not the bytes that it announced")
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        copy = Path(folder) / f"file{suffix}"
        copy.write_bytes(data)
        del data
        if target is not None:
            return original(target, str(copy), *args, **kw)
        return _load_model(original, own, copy, *args, **kw)


def _load_model(
    original: Callable[..., Any],
    own: Path,
    copy: Path,
    custom_objects: Any = None,
    compile: bool = True,
    safe_mode: bool = True,
) -> Any:
    wants_code = not safe_mode or private.in_safe_mode() is False
    try:
        with private.SafeModeScope(True):  # keras.config.enable_unsafe_deserialization() overrides safe_mode
            return original(str(copy), custom_objects=custom_objects, compile=compile, safe_mode=True)
    except (ValueError, TypeError) as error:
        if not wants_code:
            raise
        raise _refused(own, "it holds code, such as a Lambda layer, or is damaged") from error


def _mark(path: Path, folders: tuple[Path, ...]) -> _FileMark:
    own = path.exists() and is_inside(path, folders)
    if not path.is_file():
        return _FileMark(own=own)
    with path.open("rb") as file:
        return _FileMark(own, hashlib.file_digest(file, "sha256").digest(), os.fstat(file.fileno()).st_size)


def _lacks(mark: _FileMark, chief: _FileMark) -> bool:
    """Whether a member has to read the chief's file: it has none, or another one outside its own folders."""
    return bool(chief.sha256) and not mark.own and mark.sha256 != chief.sha256


def _refused(path: Path, why: str) -> TandemError:
    return TandemError(
        code="foreign-file",
        what=f"{path} is not the same file on all laptops, and the chief's is not loaded on others: {why}",
        fix="Put the file into the project's folder and load it from there, or save and load weights alone "
        "(NAME.weights.h5).",
    )


def replace_loading(engine: Engine) -> None:
    """Makes Keras load and save weights and models this way, except for loading in a callback that writes."""

    def load_weights(original: Any, model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if engine.is_local:
            return original(model, filepath, *args, **kwargs)
        return load(engine, original, model, filepath, *args, **kwargs)

    def load_model(original: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if engine.is_local:
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
    """Whether to leave this write to the chief: on another laptop the folder may not even exist."""
    named = isinstance(path, str | os.PathLike)
    return (
        not engine.collectives.is_chief
        and bool(engine.folders)
        and named
        and not is_inside(path, engine.folders)
    )
