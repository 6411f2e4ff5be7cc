"""Plain data as bytes and back, exactly: None, bool, int, float, str, list, tuple, dict, NumPy arrays.

A tree becomes JSON; arrays are stored beside it, end to end. Nothing is pickled, so reading runs no code.
Reading checks everything that it relies on: a file may come from another laptop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from core.vocabulary.bounds import Files
from core.vocabulary.errors import TandemError

_DEEPEST = 50
_LONGEST_JSON = 64_000_000
_KINDS = "biufcV"
"""Kinds of numbers, including those of ml_dtypes (bfloat16), whose kind is V."""

_UNSOUND = (
    msgspec.DecodeError,
    LookupError,
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
    RecursionError,
)
"""Errors while reading bytes that Tandem did not write."""


class _Array(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    dtype: Annotated[str, msgspec.Meta(max_length=20)]
    shape: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=32)]


Tree = Annotated[Any, msgspec.Meta(extra={"bounded_by": "load"})]
"""Plain data, no longer and no deeper than ``load`` accepts."""


class _Dump(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tree: Tree
    """Checked as it is decoded."""
    arrays: Files[_Array]


_DECODER = msgspec.json.Decoder(_Dump)


class NotPlain(ValueError):
    """Some of it is not plain data."""


def is_plain(value: Any) -> bool:
    try:
        _encode(value, [], 0)
    except NotPlain:
        return False
    return True


def dump(value: Any) -> tuple[bytes, list[np.ndarray]]:
    """(JSON, arrays whose bytes are stored end to end in one file). Raises NotPlain."""
    arrays: list[np.ndarray] = []
    tree = _encode(value, arrays, 0)
    index = tuple(_Array(array.dtype.name, array.shape) for array in arrays)
    return msgspec.json.encode(_Dump(tree, index)), arrays


def load(json: bytes, data: bytes | memoryview) -> Any:
    """The dumped data; arrays are writable copies. Raises TandemError for anything else."""
    if len(json) > _LONGEST_JSON:
        raise broken("it is too large")
    try:
        decoded = _DECODER.decode(json)
        return _decode(decoded.tree, _arrays(decoded.arrays, memoryview(data)), 0)
    except _UNSOUND as error:
        raise broken(type(error).__name__) from error


def pack(value: Any) -> bytes:
    """A small tree as one piece. Raises NotPlain."""
    json, arrays = dump(value)
    return b"".join([len(json).to_bytes(4, "big"), json, *(array.tobytes() for array in arrays)])


def unpack(packed: bytes) -> Any:
    """The packed tree. Raises TandemError for anything else."""
    end = 4 + int.from_bytes(packed[:4], "big")
    return load(packed[4:end], packed[end:])


def buffers(arrays: Sequence[np.ndarray]) -> list[memoryview]:
    """The arrays' bytes, in order, without a copy."""
    return [array.reshape(-1).view(np.uint8).data for array in arrays if array.size]


def _encode(value: Any, arrays: list[np.ndarray], depth: int) -> Any:
    if depth > _DEEPEST:
        raise NotPlain("too deep")
    match value:
        case None | bool() | str() if type(value) in (type(None), bool, str):
            return value
        case int() if type(value) is int:
            return {"i": str(value)}
        case float() if type(value) is float:
            return {"f": value.hex()}
        case list() if type(value) is list:
            return [_encode(each, arrays, depth + 1) for each in value]
        case tuple() if type(value) is tuple:
            return {"t": [_encode(each, arrays, depth + 1) for each in value]}
        case dict() if type(value) is dict:
            return {"d": [[_encode(each, arrays, depth + 1) for each in pair] for pair in value.items()]}
        case np.ndarray() | np.generic() if value.dtype.kind in _KINDS and value.dtype.names is None:
            arrays.append(np.ascontiguousarray(value).reshape(np.shape(value)))
            return {"a" if isinstance(value, np.ndarray) else "g": len(arrays) - 1}
    raise NotPlain(type(value).__name__)


def _decode(tree: Any, arrays: list[np.ndarray], depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError("too deep")
    if tree is None or isinstance(tree, bool | str):
        return tree
    if isinstance(tree, list):
        return [_decode(each, arrays, depth + 1) for each in tree]
    ((kind, held),) = tree.items()
    match kind:
        case "i":
            return int(held)
        case "f":
            return float.fromhex(held)
        case "t":
            return tuple(_decode(each, arrays, depth + 1) for each in held)
        case "d":
            return {_decode(k, arrays, depth + 1): _decode(v, arrays, depth + 1) for k, v in held}
        case "a":
            return arrays[held]
        case "g":
            return arrays[held][()]
    raise ValueError(kind)


def _arrays(index: Sequence[_Array], data: memoryview) -> list[np.ndarray]:
    arrays, place = [], 0
    for entry in index:
        dtype = np.dtype(entry.dtype)
        if dtype.kind not in _KINDS or dtype.hasobject or dtype.names is not None:
            raise ValueError(entry.dtype)
        end = place + math.prod(entry.shape) * dtype.itemsize
        if end > len(data):
            raise ValueError("too short")
        arrays.append(np.frombuffer(data[place:end], dtype).reshape(entry.shape).copy())
        place = end
    if place != len(data):
        raise ValueError("too long")
    return arrays


def broken(why: str) -> TandemError:
    """The error for a checkpoint whose files cannot be read."""
    return TandemError(
        code="checkpoint-broken",
        what=f"The checkpoint cannot be read ({why}).",
        fix="Start the training again.",
    )
