"""What is recorded while a step is traced: where its losses are, and which tensors depend on own rows.

It is read once the trace exists, before it runs (``steps/own_writes.py``, ``steps/probe.py``). A step that
runs eagerly records nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import keras
import tensorflow as tf

Site = Literal["loss", "gradient", "metric", "state"]
"""The kinds of numbers. The engine assumes that the first three are means over rows (a compiled loss of one
number, a tape's target, a metric's input), and the last one a sum: the change of a metric's state."""
Key = tuple[int, str]

_CORE = Path(__file__).resolve().parents[3]
_LIBRARIES = (*(str(Path(str(module.__file__)).parent) for module in (tf, keras)), str(_CORE))


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number for all rows."""

    site: Site
    tensor: Any
    name: str = ""
    """The metric's name."""
    before: float = 0.0
    """Subtracted from the value: for a state, its value before the step."""


@dataclass(slots=True)
class TraceRecord:
    own: set[Key] = field(default_factory=set)
    """Tensors that differ between members; so does everything computed from them."""
    same: set[Key] = field(default_factory=set)
    """Tensors that are the same on all members, though computed from own rows, since they were reduced."""
    scalars: list[Scalar] = field(default_factory=list)
    moments: list[Any] = field(default_factory=list)
    """Means and variances of batches, as ``BatchNormalization`` takes them."""
    gradients: list[Any] = field(default_factory=list)
    """Gradients of this member's rows, as they are sent to be summed."""
    sizes: dict[int, int] = field(default_factory=dict)
    """The number of elements of each gradient, by its place among the marks that audits compare."""
    sent_bits: int = 0
    """Bits of each number of the gradients, where they travel in fewer than they have; 0: in all."""
    own_draws: set[str] = field(default_factory=set)
    """Functions that draw different random numbers on each member."""
    not_compiled: set[str] = field(default_factory=set)
    """Functions with jit_compile=True, which is ignored in the step."""
    by_length: Any = None
    """The first tensor found by ``may_differ`` whose size is the length of the longest own row."""
    loss_row_bytes: list[int | None] = field(default_factory=list)
    """Bytes of each compiled loss's input for one row; None if that has no fixed size."""

    def mark_own(self, tensors: Iterable[Any]) -> None:
        self.own.update(key(tensor) for tensor in _traced(tensors))

    def mark_same(self, tensors: Iterable[Any]) -> None:
        self.same.update(key(tensor) for tensor in _traced(tensors))

    def may_differ(self, tensor: Any) -> bool:
        """Whether a traced tensor may differ on other members. Sets ``by_length``."""
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

    def add_scalar(self, site: Site, tensor: Any, name: str = "") -> int:
        """Records one number; returns its place among all of them, the same in every trace of the step."""
        self.scalars.append(Scalar(site, tensor, name))
        return len(self.scalars) - 1


def key(tensor: Any) -> Key:
    return id(tensor.graph), tensor.name


def line_of(op: Any) -> str:
    """The script line that created an operation, as ``train.py, line 12``; "" if the script did not."""
    for frame in reversed(list(op.traceback or ())):
        name = str(frame.filename)
        if not name.startswith((*_LIBRARIES, "<")) and "site-packages" not in name:
            return f"{Path(name).name}, line {frame.lineno}"
    return ""


def _is_size_of_a_row(op: Any) -> bool:
    """Whether the operation reads the size of an axis of a tensor, except the first axis."""
    if op.type != "StridedSlice" or op.inputs[0].op.type != "Shape":
        return False
    rank, begin = op.inputs[0].op.inputs[0].shape.rank, tf.get_static_value(op.inputs[1])
    return rank is not None and begin is not None and int(begin[0]) % rank > 0


def _is_padded(tensor: Any) -> bool:
    """Whether the tensor is computed from ragged rows that were padded to the longest own row."""
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
    """Whether the operation pads ragged rows to the longest one, with no length given by the script."""
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
