"""What is noted of a step while it is traced: where its losses are, and which tensors depend on own rows.

Looked at once the trace is there, before it is run (``steps/own_writes.py``, ``steps/probe.py``). Where a
step runs eagerly, nothing is noted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import keras
import tensorflow as tf

Site = Literal["loss", "gradient", "metric", "state"]
"""What the engine takes for a mean over rows: a compiled loss of one number, what a tape derives, what a
metric is given; and what it takes for a sum: the change of a metric's state."""
Key = tuple[int, str]

_HOUSE = Path(__file__).resolve().parents[3]
_LIBRARIES = (*(str(Path(str(module.__file__)).parent) for module in (tf, keras)), str(_HOUSE))


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number for all rows."""

    site: Site
    tensor: Any
    name: str = ""
    """The metric's."""
    before: float = 0.0
    """What is subtracted from it: of a state, that before the step."""


@dataclass(slots=True)
class Notes:
    own: set[Key] = field(default_factory=set)
    """Tensors that differ between members; what is computed from them does, too."""
    same: set[Key] = field(default_factory=set)
    """Tensors that are the same on all members, though they come from own rows: these met."""
    scalars: list[Scalar] = field(default_factory=list)
    moments: list[Any] = field(default_factory=list)
    """Means and variances of batches, as ``BatchNormalization`` takes them."""

    own_draws: set[str] = field(default_factory=set)
    """Functions whose random numbers are each member's own."""
    by_length: Any = None
    """The first tensor asked for whose size is the length of the longest own row."""
    loss_row_bytes: list[int | None] = field(default_factory=list)
    """Of what each compiled loss is given for one row; None where that has no fixed size."""

    def is_own(self, tensors: Iterable[Any]) -> None:
        self.own.update(key(tensor) for tensor in _traced(tensors))

    def is_same(self, tensors: Iterable[Any]) -> None:
        self.same.update(key(tensor) for tensor in _traced(tensors))

    def depends(self, tensor: Any) -> bool:
        """Whether a traced tensor may be another one on other members. One of other length is noted."""
        seen, left = set(), [tensor]
        while left:
            each = left.pop()
            if key(each) in seen or key(each) in self.same:
                continue
            seen.add(key(each))
            if key(each) in self.own or (each.op.type == "Placeholder" and each.dtype != tf.resource):
                return True
            if not _is_size_of_a_row(each.op):
                left += each.op.inputs
            elif _is_padded(each.op.inputs[0].op.inputs[0]):
                self.by_length = tensor if self.by_length is None else self.by_length
        return False

    def scalar(self, site: Site, tensor: Any, name: str = "") -> int:
        """Notes one number; returns its place among all of them, the same each time the step is traced."""
        self.scalars.append(Scalar(site, tensor, name))
        return len(self.scalars) - 1


def key(tensor: Any) -> Key:
    return id(tensor.graph), tensor.name


def line_of(op: Any) -> str:
    """Where the script made an operation, as ``train.py, line 12``; "" where it did not."""
    for frame in reversed(list(op.traceback or ())):
        name = str(frame.filename)
        if not name.startswith((*_LIBRARIES, "<")) and "site-packages" not in name:
            return f"{Path(name).name}, line {frame.lineno}"
    return ""


def _is_size_of_a_row(op: Any) -> bool:
    """Whether it takes another size of a tensor than that of its first axis."""
    if op.type != "StridedSlice" or op.inputs[0].op.type != "Shape":
        return False
    rank, begin = op.inputs[0].op.inputs[0].shape.rank, tf.get_static_value(op.inputs[1])
    return rank is not None and begin is not None and int(begin[0]) % rank > 0


def _is_padded(tensor: Any) -> bool:
    """Whether rows of unequal lengths were made as long as the longest own one on the way to it."""
    seen, left = set(), [tensor.op]
    while left:
        op = left.pop()
        if pads(op):
            return True
        if op.name not in seen:
            seen.add(op.name)
            left += [each.op for each in op.inputs]
    return False


def pads(op: Any) -> bool:
    """Whether it makes rows of unequal lengths as long as the longest, for which the script has no number."""
    return (
        op.type == "RaggedTensorToTensor"
        and (op.outputs[0].shape.rank or 0) > 1
        and op.outputs[0].shape[1] is None
    )


def _traced(tensors: Iterable[Any]) -> list[Any]:
    """The components of tensors that are part of a graph."""
    if tf.executing_eagerly():
        return []
    leaves = tf.nest.flatten(list(tensors), expand_composites=True)
    return [leaf for leaf in leaves if isinstance(leaf, tf.Tensor) and hasattr(leaf, "graph")]
