"""Checks that members read the same data: compares short marks of it before the first step of a call.

Integers, strings and shapes are compared bit by bit. Floating-point numbers may differ by rounding, since
processors differ: they are compared by sums with random signs, which reveal any other value or order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import tensorflow as tf

from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import MOST_BYTES, Collectives
from core.trainer.exact.members.data_marks import unlike
from core.vocabulary.errors import TandemError

_SUMS = 4
_TOLERANCE = 1e-4
"""Relative to the norm of an array."""
_Part = Literal["x", "y", "the sample weights"]
_PARTS: tuple[_Part, ...] = ("x", "y", "the sample weights")
_LONGEST_KIND = 200


class _Mark(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One tensor of a batch. ``sums``: see ``marks_of``; None if it is compared bit by bit."""

    name: _Part
    kind: Annotated[str, msgspec.Meta(max_length=_LONGEST_KIND)]
    digest: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    sums: tuple[float, float, float, float, float] | None


_MARKS = msgspec.msgpack.Decoder(Annotated[list[_Mark], msgspec.Meta(max_length=10_000)])
"""Created here: a script may hide the modules in which type names are looked up."""


def agree_on_data(collectives: Collectives, batch: Any, call: str, what: str = "the data") -> str | None:
    """Compares the members' first batches of `call`. Returns None, or a message if they differ only in x.

    Raises TandemError if they differ in more. All members must call it.
    """
    own = [_mark(leaf, name) for name, leaf in parts(batch)]
    gathered = collectives.gather_objects(own, _MARKS, what)
    unlike = sorted({name for each in gathered[1:] for name in _differing(gathered[0], each)})
    if not unlike:
        return None
    names = list(dict.fromkeys(mark.name for mark in own))
    drawn = all(mark.sums for mark in own if mark.name == "x")
    if unlike == ["x"] and len(names) > 1 and drawn and all(len(each) == len(own) for each in gathered):
        return (
            f"The members' first batches of {call} differ only in x, as random augmentation in a parallel "
            "map makes them: each trains on the rows it drew. Members stay equal, but one process would draw "
            "others. Remove num_parallel_calls, or draw with tf.image.stateless_random_…"
        )
    raise TandemError(
        code="data-differs",
        what=f"The members read different data: {' and '.join(unlike)} of the first batch of {call} "
        f"{'is' if len(unlike) == 1 else 'are'} not the same on all of them",
        fix="Give every random generator a seed (np.random.default_rng(1)), and read no clock, no network "
        "and no file that another laptop does not have.",
    )


def with_chiefs_x(collectives: Collectives, batch: Any) -> Any:
    """``batch`` with the chief's x, for a first batch whose x each member drew itself."""

    def sent(leaf: Any) -> Any:
        if not leaf.dtype.is_floating:
            return leaf
        own = np.asarray(leaf)
        most = max(MOST_BYTES, 2 * own.nbytes)
        data = collectives.bytes_from_chief(own.tobytes(), "the chief's first batch", most)
        if len(data) != own.nbytes:
            raise TandemError(
                code="data-differs",
                what="The members read different data: the chief's first batch has another size",
                fix="Make every batch of the same shape on all laptops.",
            )
        return tf.constant(np.frombuffer(data, own.dtype).reshape(own.shape))

    x = [sent(leaf) for leaf in tf.nest.flatten(batch[0], expand_composites=True)]
    return (tf.nest.pack_sequence_as(batch[0], x, expand_composites=True), *batch[1:])


def batches_differ() -> TandemError:
    """The error if every member has to compute whole batches, but their batches differ."""
    return TandemError(
        code="data-differs",
        what="Every laptop has to compute each batch whole, but their batches differ in x, as random "
        "augmentation in a parallel map makes them",
        fix="Remove num_parallel_calls, or draw with tf.image.stateless_random_…",
    )


def assert_same_marks(marks: np.ndarray, names: Sequence[str], place: str, *, drawn: bool) -> None:
    """Checks the steps since the last meeting (`data_marks`). Raises TandemError if members' data differ."""
    found = unlike(marks, drawn=drawn)
    if not found:
        return
    who = " and ".join(names[rank] for rank in found)
    what = ", ".join(dict.fromkeys(name for each in found.values() for name in each))
    raise TandemError(
        code="data-differs",
        what=f"{who} read{'s' if len(found) == 1 else ''} other data than {names[0]} ({what}), "
        f"though the first batch was the same: {place}",
        fix="Give every random generator a seed, in later epochs, too (np.random.default_rng(1)), and read "
        "no clock, no network and no file that another laptop does not have.",
    )


def marks_of(array: Any) -> list[float]:
    """A short summary of a numeric array: its norm, and its sums with random signs divided by that norm."""
    flat = np.nan_to_num(np.asarray(array, np.float64).ravel(), nan=3.0, posinf=5.0, neginf=-5.0)
    norm = float(np.linalg.norm(flat))
    random = np.random.RandomState(flat.size % 2**31)
    return [
        norm,
        *(float(flat @ random.choice([-1.0, 1.0], flat.size)) / (norm or 1.0) for _ in range(_SUMS)),
    ]


def near(one: Sequence[float], other: Sequence[float], tolerance: float = _TOLERANCE) -> bool:
    """Whether two arrays with these marks are equal except for rounding."""
    size = max(one[0], other[0], 1e-30)
    return abs(one[0] - other[0]) <= tolerance * size and all(
        abs(a - b) <= 10 * tolerance for a, b in zip(one[1:], other[1:], strict=True)
    )


def parts(batch: Any) -> list[tuple[_Part, Any]]:
    """Every tensor of a batch, with the name of the part it belongs to."""
    whole = tf.nest.map_structure(steps.without_optional, batch)
    pieces = whole if isinstance(whole, tuple) else (whole,)
    return [
        (_PARTS[min(index, 2)], leaf)
        for index, part in enumerate(pieces)
        for leaf in tf.nest.flatten(part, expand_composites=True)
        if leaf is not None
    ]


def _mark(leaf: Any, name: _Part) -> _Mark:
    array = np.asarray(leaf)
    fraction = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    content = (
        json.dumps([_plain(value) for value in array.ravel()]) if array.dtype == object else array.tobytes()
    )
    digest = hashlib.sha256(content.encode() if isinstance(content, str) else content).digest()
    kind = f"{array.dtype} {array.shape}"[:_LONGEST_KIND]
    norm, *sums = marks_of(array) if fraction else [0.0]
    return _Mark(name, kind, digest, (norm, sums[0], sums[1], sums[2], sums[3]) if sums else None)


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _differing(chief: list[_Mark], other: list[_Mark]) -> list[_Part]:
    if len(chief) != len(other):
        return ["x"]
    return [one.name for one, two in zip(chief, other, strict=True) if not _alike(one, two)]


def _alike(one: _Mark, two: _Mark) -> bool:
    if one.kind != two.kind or one.digest == two.digest:
        return one.kind == two.kind
    return one.sums is not None and two.sums is not None and near(one.sums, two.sums)
