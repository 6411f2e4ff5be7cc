"""Where members meet by the exchange instead of TensorFlow's collectives: the same sums and gathers.

A tensor is handed over as soon as it is there, which does not block; one operation then waits for all sums of
its stage. Never may several block: TensorFlow has as few threads for operations as the machine has cores, and
two members that block in different orders wait for ever. Functions of Python are stateful operations, which
tf.function runs in the order of the trace, within loops and conditions and across them: so all members go
through the same stages, and a count of those that have ended is a number that all of them agree on.

In a step, what asks for the sums is a MirroredStrategy: ``CrossDeviceOps`` is where TensorFlow lets others
say how its replicas are added up.

A step is applied whole or not at all: where members regroup (``Exchange.regroup``), what waits ends with
``whole`` false. Then nothing of the step may be applied, and it is met again from ``step`` on. Of an attempt
that was given up no later stage is whole either, so that the last one's word holds for all of the step. This
is for members that leave and return; as yet nothing regroups those of a run, and every step is whole.

Members whose scripts go different ways find it where they meet: with each pack goes what it is for and where
its script is. So such a word may hold nothing that differs between members of a sound run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from core.exchange.driver import Exchange
from core.exchange.problems import OLD, ExchangeFailed
from core.exchange.state import MAX_WORD, Key, Kind, Wire
from core.trainer.exact.members.collectives import Collectives

_NARROW: dict[Any, Wire] = {tf.bfloat16: "bf16", tf.float16: "fp16"}
"""Added in float32 by the exchange, which narrows it for the wire."""


class ExchangeCollectives(Collectives):
    """``failure``: why the exchange ended a meeting, since TensorFlow makes an error of its own of it. After
    one there are no more meetings: a script that catches the error must not go on alone."""

    gathers_any_length = True

    def __init__(self, exchange: Exchange, generation: int = 0) -> None:
        self.rank, self.members = exchange.rank, exchange.members
        self.failure: ExchangeFailed | None = None
        self._exchange, self._generation = exchange, generation
        self._attempt = self._stage = self._first = 0
        self._brought: dict[int, tuple[Any, Any]] = {}
        """Packs of this stage, with their shapes and types."""
        self.whole: Any = None
        """bool, a scalar: whether everybody met in the last stage. In a graph, of the stage traced last."""
        self._what = "numbers"
        self._count: Any = None
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0"], cross_device_ops=_Sums(self))
        """Of this member's processor, which is one replica of ``members``."""

    def sum(self, value: Any, what: str = "numbers", count: Any = None) -> Any:
        """The sum over all members of dense tensors (one, or a list) of equal shapes on each; no gradient.

        Each tensor of a list travels on its own, the last one first, and leaves as soon as it is there.
        """
        tensors = [tf.stop_gradient(tf.convert_to_tensor(each)) for each in tf.nest.flatten(value)]
        # Without a graph a strategy starts threads for each sum, and it adds integers up by itself.
        direct = tf.executing_eagerly() or any(tensor.dtype.is_integer for tensor in tensors)
        self._what, self._count = what, count
        sums = self.sum_all(tensors) if direct else self._sum(tensors)
        return tf.nest.pack_sequence_as(value, sums)

    def add_up(self, tensors: Sequence[Any], what: str) -> list[Any]:
        """Of each tensor, the sum over all members, without the help of a strategy: within any other one."""
        self._what, self._count = what, None
        return self.sum_all(tensors)

    def sum_all(self, tensors: Sequence[Any]) -> list[Any]:
        """Of each tensor, the sum over all members, for what ``sum`` was told."""
        for pack, tensor in reversed(list(enumerate(tensors))):
            of = f", part {pack + 1} of {len(tensors)}" if len(tensors) > 1 else ""
            self._hand_over(tensor, pack, "sum", self._what, self._count, of)
        sums = self._wait([_wide(tensor) for tensor in tensors], "sum")
        for total, tensor in zip(sums, tensors, strict=True):
            total.set_shape(tensor.shape)
        return [tf.cast(total, tensor.dtype) for total, tensor in zip(sums, tensors, strict=True)]

    def gather(self, value: Any, what: str = "numbers") -> Any:
        """All members' tensors joined along axis 0 in rank order; their lengths may differ."""
        tensor = tf.stop_gradient(tf.convert_to_tensor(value))
        self._hand_over(tensor, 0, "gather", what)
        [joined] = self._wait([_wide(tensor)], "gather")
        joined.set_shape([None, *tensor.shape[1:]])
        return tf.cast(joined, tensor.dtype)

    @property
    def step(self) -> Key:
        """Where the step under way begins: who leaves and returns knows by it what it has missed."""
        return Key(self._generation, self._attempt, self._first, 0)

    def begin_step(self) -> None:
        """All of the one before is applied."""
        self._first = self._stage

    def begin_again(self, generation: int, attempt: int) -> None:
        """Meet again from ``step`` on, with the members of now."""
        self._generation, self._attempt, self._stage = generation, attempt, self._first
        self._brought = {}

    def stand_together(self, what: str, limit_s: float) -> None:
        """Until all members are here. Raises ``ExchangeFailed``; ``TimeoutError`` after ``limit_s``."""
        if self.failure is not None:
            raise self.failure
        key = self._bring(0, np.zeros(1, np.int8), "sum", "f32", what)
        self._exchange.wait([key], limit_s)
        self._next_stage()

    def _hand_over(
        self, tensor: Any, pack: int, kind: Kind, what: str, count: Any = None, of: str = ""
    ) -> None:
        wire = _NARROW.get(tensor.dtype, "f32")

        def hand_over(array: Any, *counts: Any) -> None:
            word = what.format(*counts) if counts else what
            self._bring(pack, np.asarray(array), kind, wire, word + of)

        counts = [] if count is None else [count]
        tf.numpy_function(hand_over, [tf.cast(tensor, _wide(tensor)), *counts], [])

    def _bring(self, pack: int, array: Any, kind: Kind, wire: Wire, what: str) -> Key:
        if self.failure is not None:
            raise self.failure
        if pack in self._brought:
            self._next_stage()  # an error ended the stage before its wait, and the script caught it
        self._brought[pack] = (array.shape, array.dtype)
        word = f"{what} in {place}" if (place := self.place()) else what
        self._exchange.hand_over(self._key(pack), array, kind=kind, wire=wire, word=word[:MAX_WORD])
        return self._key(pack)

    def _wait(self, dtypes: Sequence[Any], kind: Kind) -> list[Any]:
        def wait() -> list[Any]:
            packs = range(len(dtypes))
            try:
                results, whole = self._exchange.wait([self._key(pack) for pack in packs]), True
            except ExchangeFailed as failure:
                if failure.code != OLD:
                    self.failure = failure
                    raise
                results, whole = [np.zeros(*self._brought[pack]) for pack in packs], False
            self._next_stage()
            if kind == "gather" and whole:
                results = [np.concatenate(each) for each in results]
            return [*results, np.bool_(whole)]

        *found, self.whole = tf.numpy_function(wait, [], [*dtypes, tf.bool])
        return found

    def _next_stage(self) -> None:
        self._stage += 1
        self._brought = {}

    def _key(self, pack: int) -> Key:
        return Key(self._generation, self._attempt, self._stage, pack)


class _Sums(tf.distribute.CrossDeviceOps):
    """How a mirrored strategy's replicas are added up, of which this process has one."""

    def __init__(self, collectives: ExchangeCollectives) -> None:
        super().__init__()
        self._collectives = collectives

    @property
    def _num_between_graph_workers(self) -> int:
        return self._collectives.members  # of one, TensorFlow would not ask for a sum at all

    def batch_reduce_implementation(self, reduce_op: Any, pairs: Any, options: Any) -> list[Any]:
        assert reduce_op == tf.distribute.ReduceOp.SUM
        return self._collectives.sum_all([value.values[0] for value, _ in pairs])


def _wide(tensor: Any) -> Any:
    return tf.float32 if tensor.dtype in _NARROW else tensor.dtype
