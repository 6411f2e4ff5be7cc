"""Whether members read the same data: compared by what is short to send, before the first step of a call.

Whole numbers, texts and shapes are compared bit by bit. Numbers with a fraction may differ by rounding, since
processors differ: they are compared by sums with random signs, which tell every other value and every other
order of them apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import Collectives
from core.trainer.exact.members.data_marks import unlike
from core.vocabulary.errors import TandemError

_SUMS = 4
_TOLERANCE = 1e-4
"""Of the norm of an array."""
_PARTS = ("x", "y", "the sample weights")


def agree_on_data(collectives: Collectives, batch: Any, call: str, what: str = "the data") -> str | None:
    """Of the first batch of `call`: None, or what is to be said where members differ in x alone.

    Raises TandemError where they differ in more. Called by every member alike.
    """
    own = [_marks(leaf, name) for name, leaf in parts(batch)]
    gathered = collectives.gather_bytes(json.dumps(own).encode(), what)
    told = [json.loads(data) for data in gathered]
    unlike = sorted({name for each in told[1:] for name in _differing(told[0], each)})
    if not unlike:
        return None
    names = list(dict.fromkeys(mark["name"] for mark in own))
    drawn = all(mark["sums"] for mark in own if mark["name"] == "x")
    if unlike == ["x"] and len(names) > 1 and drawn and all(len(each) == len(own) for each in told):
        return (
            f"The members' first batches of {call} differ in x alone, as by random augmentation in a "
            "parallel map: each trains on its rows as it drew them. Members stay equal, but one process "
            "would draw others. Leave num_parallel_calls out, or draw by tf.image.stateless_random_…"
        )
    raise TandemError(
        code="data-differs",
        what=f"The members read different data: {' and '.join(unlike)} of the first batch of {call} "
        f"{'is' if len(unlike) == 1 else 'are'} not the same on all of them",
        fix="Give every random generator a seed (np.random.default_rng(1)), and read no clock, no network "
        "and no file that another laptop does not have.",
    )


def of_chief(collectives: Collectives, batch: Any) -> Any:
    """A first batch whose x each member drew by itself, with the chief's x on all of them."""

    def sent(leaf: Any) -> Any:
        if not leaf.dtype.is_floating:
            return leaf
        own = tf.io.serialize_tensor(leaf).numpy()
        given = tf.io.parse_tensor(collectives.from_chief(own, "the chief's first batch"), leaf.dtype)
        return tf.ensure_shape(given, leaf.shape)

    x = [sent(leaf) for leaf in tf.nest.flatten(batch[0], expand_composites=True)]
    return (tf.nest.pack_sequence_as(batch[0], x, expand_composites=True), *batch[1:])


def drawn_apart() -> TandemError:
    """Where every member would compute whole batches, and each has its own."""
    return TandemError(
        code="data-differs",
        what="Every laptop has to compute each batch whole, and their batches differ in x, as by random "
        "augmentation in a parallel map",
        fix="Leave num_parallel_calls out, or draw by tf.image.stateless_random_…",
    )


def assert_same_marks(marks: np.ndarray, names: Sequence[str], place: str, *, drawn: bool) -> None:
    """Of the steps since members met last (`data_marks`). Raises TandemError where their data differ."""
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
    """Short for an array of numbers: its norm, and its sums with random signs, over that norm."""
    flat = np.nan_to_num(np.asarray(array, np.float64).ravel(), nan=3.0, posinf=5.0, neginf=-5.0)
    norm = float(np.linalg.norm(flat))
    random = np.random.RandomState(flat.size % 2**31)
    return [
        norm,
        *(float(flat @ random.choice([-1.0, 1.0], flat.size)) / (norm or 1.0) for _ in range(_SUMS)),
    ]


def near(one: list[float], other: list[float], tolerance: float = _TOLERANCE) -> bool:
    """Whether two arrays with these marks are equal but for rounding."""
    size = max(one[0], other[0], 1e-30)
    return abs(one[0] - other[0]) <= tolerance * size and all(
        abs(a - b) <= 10 * tolerance for a, b in zip(one[1:], other[1:], strict=True)
    )


def parts(batch: Any) -> list[tuple[str, Any]]:
    """Every tensor of a batch, with what it is of in words."""
    whole = tf.nest.map_structure(steps.without_optional, batch)
    pieces = whole if isinstance(whole, tuple) else (whole,)
    return [
        (_PARTS[min(place, 2)], leaf)
        for place, part in enumerate(pieces)
        for leaf in tf.nest.flatten(part, expand_composites=True)
        if leaf is not None
    ]


def _marks(leaf: Any, name: str) -> dict[str, Any]:
    array = np.asarray(leaf)
    fraction = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    content = (
        json.dumps([_plain(value) for value in array.ravel()]) if array.dtype == object else array.tobytes()
    )
    digest = hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
    return {
        "name": name,
        "kind": f"{array.dtype} {array.shape}",
        "digest": digest,
        "sums": marks_of(array) if fraction else [],
    }


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _differing(chief: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[str]:
    if len(chief) != len(other):
        return ["x"]
    return [
        one["name"]
        for one, two in zip(chief, other, strict=True)
        if one["kind"] != two["kind"]
        or (one["digest"] != two["digest"] and not (one["sums"] and near(one["sums"], two["sums"])))
    ]
