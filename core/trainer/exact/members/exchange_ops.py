"""Sums and gathers by the exchange, as TensorFlow operations.

A tensor is handed over as soon as it is ready, which does not block; one operation then waits for all sums of
its stage. Two operations must never block at once: TensorFlow has about as many threads for operations as
there are cores, and two members that block in different orders wait forever. Python
functions are stateful operations, which tf.function runs in trace order, within loops and conditions and
across them: so all members go through the same stages, and agree on the count of those that have ended.

In a step, a MirroredStrategy requests the sums: ``CrossDeviceOps`` is TensorFlow's hook for how its replicas
are added up.

When a member leaves (``Exchange.regroup``), the remaining ones begin a new generation, and first report their
progress: if one of them had already completed a stage, the others get that stage's results from it. Work
begun since then (``atomically``) is undone and repeated without the departed member; it must not be applied
in part. So the remaining members stay equal, whenever each of them learns of the departure.

Members whose scripts diverge find out at a meeting: each pack carries its purpose and its script's place.
These texts must contain nothing that differs between members of a sound run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from core.exchange import problems
from core.exchange.driver import Exchange
from core.exchange.problems import OLD, ExchangeFailed
from core.exchange.state import MAX_LABEL, Key, Kind, Wire
from core.trainer.exact.members.collectives import Collectives, LeftMidway, PendingGather
from core.vocabulary.errors import TandemError

_log = logging.getLogger(__name__)

Array = npt.NDArray[Any]
_T = TypeVar("_T")
MEETING = "tandem_meeting"
"""Part of the name of every operation here that runs Python."""
_PENDING = 2**31
"""Pack number of a gather that later stages overlap: no stage has so many packs."""
_NARROW: dict[Any, Wire] = {tf.bfloat16: "bf16", tf.float16: "fp16"}
"""Types that the exchange adds in float32 and narrows for the wire."""


class ExchangeCollectives(Collectives):
    """``failure``: why the exchange ended a meeting, since TensorFlow replaces the error with its own. It
    prevents all later meetings: a script that catches the error must not continue alone."""

    def __init__(self, exchange: Exchange, generation: int = 0) -> None:
        super().__init__(exchange.rank, exchange.members)
        self.failure: TandemError | None = None
        self._exchange, self._generation = exchange, generation
        self._attempt = self._stage = 0
        self._first = 0
        """The stage at which repeated work starts."""
        self._is_atomic = self._is_broken_off = False
        self._resumed = -1
        """The stage at which the remaining members continued after one had left."""
        self._pending: PendingGather | None = None
        self._packs: dict[int, Array] = {}
        """This member's packs of the current stage."""
        self._last: list[list[Array]] = []
        """The last stage's results, which another member may lack: a sum's array, a gather's by rank."""
        self._what = "numbers"
        self._count: Any = None
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0"], cross_device_ops=_Sums(self))
        """A strategy on this member's processor, which is one replica of ``members``."""

    def sum(self, value: Any, what: str = "numbers", count: Any = None) -> Any:
        tensors = [tf.stop_gradient(tf.convert_to_tensor(each)) for each in tf.nest.flatten(value)]
        # Outside a graph a strategy would start threads for each sum, and it adds up integers itself.
        direct = tf.executing_eagerly() or any(tensor.dtype.is_integer for tensor in tensors)
        self._what, self._count = what, count
        sums = self._meet(lambda: self.sum_all(tensors)) if direct else self._sum(tensors)
        return tf.nest.pack_sequence_as(value, sums)

    def sum_without_strategy(self, tensors: Sequence[Any], what: str) -> list[Any]:
        self._what, self._count = what, None
        return self._meet(lambda: self.sum_all(tensors))

    def sum_all(self, tensors: Sequence[Any]) -> list[Any]:
        """The sum of each tensor over all members, for the purpose given to ``sum``."""
        if len(tensors) == 1:
            sums = [self._hand_over(tensors[0], 0, "sum", self._what, self._count, waits=True)]
        else:
            for pack, tensor in reversed(list(enumerate(tensors))):
                self._hand_over(tensor, pack, "sum", self._what, self._count, _part(pack, len(tensors)))
            sums = self._wait([_wide(tensor) for tensor in tensors], "sum")
        for total, tensor in zip(sums, tensors, strict=True):
            total.set_shape(tensor.shape)
        return [tf.cast(total, tensor.dtype) for total, tensor in zip(sums, tensors, strict=True)]

    def gather_all(self, values: Sequence[Any], what: str, count: Any = None) -> list[Any]:
        tensors = [tf.stop_gradient(tf.convert_to_tensor(value)) for value in values]
        self._what = what

        def gather() -> Any:
            for pack, tensor in reversed(list(enumerate(tensors))):
                self._hand_over(tensor, pack, "gather", what, count, _part(pack, len(tensors)))
            return self._wait([_wide(tensor) for tensor in tensors], "gather", alike=count is not None)

        found = self._meet(gather)
        for joined, tensor in zip(found, tensors, strict=True):
            joined.set_shape([None, *tensor.shape[1:]])
        return [tf.cast(joined, tensor.dtype) for joined, tensor in zip(found, tensors, strict=True)]

    def _sum(self, tensors: list[Any]) -> Any:
        """Sums by the strategy, within a step."""

        def in_replica(own: Any) -> Any:
            # The identity puts the tensor on this replica's device, which the all-reduce needs.
            own = tf.nest.map_structure(tf.identity, own)
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, own)

        return self.strategy.run(in_replica, args=(tensors,))

    def _gather_each(self, own: np.ndarray, what: str) -> list[tuple[int, np.ndarray]]:
        def gather() -> list[Array]:
            self._send(0, own, "gather", "f32", what)
            [found] = self._end_stage("gather")
            return found

        found = self._meet(gather)
        return list(zip(self.met, found, strict=True))

    def begin_gather(self, own: np.ndarray, what: str) -> PendingGather:
        if self._pending is not None:
            self.end_gather(self._pending, "to end what an error broke off")
        if self.failure is not None:
            raise self.failure
        # Members that were ahead when one left began this gather before, in a generation that is over.
        key = None if self._stage == self._resumed else self._key(_PENDING)
        if key is not None:
            self._exchange.hand_over(key, own, kind="gather", label=self._label(what))
        self._pending = PendingGather(key, self.present)
        return self._pending

    def end_gather(self, begun: PendingGather, what: str) -> list[np.ndarray] | None:
        self._pending = None
        if self.failure is not None:
            raise self.failure
        found: list[Array] | None = None
        try:
            if begun.key is not None:
                [found] = self._exchange.wait([begun.key])
        except ExchangeFailed as failure:
            if failure.code != OLD:
                self.failure = failure
                raise
        # Only some members may have had all arrays before they learned that one left.
        everywhere = self.gather_ints([found is not None], what)
        return found if all(has for [has] in everywhere) else None

    def atomically(self, run: Callable[[], _T]) -> _T:
        assert not self._is_atomic, "within another atomic call"
        self._is_atomic = True
        self._first, self._packs = self._stage, {}
        try:
            return run()
        except Exception as error:
            if not self._is_broken_off:
                raise
            _log.info("%s: starting again without the members that left", self.place())
            self._is_broken_off, self._stage = False, self._first
            raise LeftMidway from error
        finally:
            self._is_atomic = False

    def _meet(self, meet: Callable[[], _T]) -> _T:
        """Meets. Repeats the stage if a member leaves, unless in a graph or an atomic call."""
        if self._is_atomic or not tf.executing_eagerly():
            return meet()
        while True:
            try:
                return self.atomically(meet)
            except LeftMidway:
                pass  # A lone stage has nothing to undo.

    def barrier(self, what: str, limit_s: float) -> None:
        """Waits until all members are here. Raises ``ExchangeFailed``; ``TimeoutError`` after ``limit_s``."""
        if self.failure is not None:
            raise self.failure

        def status() -> None:
            self._send(0, np.zeros(1, np.int8), "sum", "f32", what)
            self._end_stage("sum", limit_s)

        self._meet(status)

    def _hand_over(
        self,
        tensor: Any,
        pack: int,
        kind: Kind,
        what: str,
        count: Any = None,
        of: str = "",
        *,
        waits: bool = False,
    ) -> Any:
        """Adds an operation that sends a pack. ``waits``: it is the stage's only pack; returns its sum."""
        wire, wide = _NARROW.get(tensor.dtype, "f32"), _wide(tensor)

        def hand_over(array: Any, *counts: Any) -> Array | None:
            label = what.format(*counts) if counts else what
            self._send(pack, np.asarray(array), kind, wire, label + of)
            return self._end_stage(kind)[0][0] if waits else None

        given = [tf.cast(tensor, wide), *([] if count is None else [count])]
        return tf.numpy_function(hand_over, given, wide if waits else [], name=MEETING)

    def _send(self, pack: int, array: Any, kind: Kind, wire: Wire, what: str) -> None:
        if self.failure is not None:
            raise self.failure
        if self._is_broken_off:
            raise _begun_anew()
        if pack in self._packs:
            self._next_stage()  # An error ended the stage before its wait, and the script caught it.
        if not self._is_atomic and not self._packs:
            self._first = self._stage
        self._packs[pack] = array
        self._exchange.hand_over(self._key(pack), array, kind=kind, wire=wire, label=self._label(what))

    def _label(self, what: str) -> str:
        return (f"{what} in {place}" if (place := self.place()) else what)[:MAX_LABEL]

    def _wait(self, dtypes: Sequence[Any], kind: Kind, *, alike: bool = False) -> list[Any]:
        def wait() -> list[Array]:
            own = self._packs
            found = self._end_stage(kind)
            for pack, each in enumerate(found if alike else []):
                for rank, array in zip(self.met, each, strict=True):
                    if len(array) != len(own[pack]):
                        raise self.unsound(rank, self._what, f"{len(array)} numbers, not {len(own[pack])}")
            return [np.concatenate(each) if kind == "gather" else each[0] for each in found]

        results = tf.numpy_function(wait, [], dtypes, name=MEETING)
        return results if isinstance(results, list) else [results]  # A single one outside of a graph.

    def _end_stage(self, kind: Kind, limit_s: float | None = None) -> list[list[Array]]:
        """The results, one list for each pack: a sum's array, or a gather's by rank. Raises
        ``ExchangeFailed``, ``TimeoutError``."""
        if self._is_broken_off:
            raise _begun_anew()
        try:
            keys = [self._key(pack) for pack in range(len(self._packs))]
            found = self._exchange.wait(keys, limit_s)
            found, self.met = [each if kind == "gather" else [each] for each in found], self.present
        except ExchangeFailed as failure:
            if failure.code != OLD:
                self.failure = failure
                raise
            found, self.met = self._recover(kind)
        self._last = found if self.members > 2 else []
        self._next_stage()
        return found

    # --- after a member left

    def _recover(self, kind: Kind) -> tuple[list[list[Array]], tuple[int, ...]]:
        """After a member has left, the remaining ones report their progress.

        Returns this stage's results and the members that took part, if another member had completed it.
        Raises ``ExchangeFailed`` if the work under way must begin anew.
        """
        while True:
            self._generation, self.present = self._exchange.membership
            try:
                firsts = [int(each[0]) for each in self._gather_arrays(0, np.array([self._first]))]
                newest, given = max(firsts), []
                if min(firsts) < newest:
                    giver = firsts.index(newest)
                    gives = self.present[giver] == self.rank
                    arrays = [array for each in self._last for array in each] if gives else []
                    whole = b"".join(array.tobytes() for array in arrays)
                    given = [
                        self._gather_arrays(1, np.array(self.met if gives else (), np.int64))[giver],
                        self._gather_arrays(2, np.array([array.nbytes for array in arrays], np.int64))[giver],
                        self._gather_arrays(3, np.frombuffer(whole, np.uint8))[giver],
                    ]
                break
            except ExchangeFailed as failure:
                if failure.code != OLD:
                    self.failure = failure
                    raise
        self._attempt, self._resumed = 1, newest
        if self._first < newest:
            try:
                return self._unpacked(kind, *given), tuple(given[0].tolist())
            except (ValueError, IndexError) as error:
                name = self.names[self.present[giver]]
                self.failure = ExchangeFailed(problems.incomprehensible(name, f"a result: {error}"))
                raise self.failure from None
        if not self._is_atomic:
            gone = [name for rank, name in enumerate(self.names) if rank not in self.present]
            self.failure = ExchangeFailed(problems.not_without(gone, self.place()))
            raise self.failure
        self._is_broken_off = True
        raise _begun_anew()

    def _gather_arrays(self, number: int, own: Array) -> list[Array]:
        """The present members' arrays, in rank order, at the beginning of a generation."""
        key = Key(self._generation, 0, number, 0)
        return self._exchange.gather(key, own, label="to go on without the members that left")

    def _unpacked(self, kind: Kind, whose: Array, lengths: Array, data: Array) -> list[list[Array]]:
        """A stage's results. Raises ``ValueError`` or ``IndexError`` if no stage can have had them."""
        left, found = np.split(data, np.cumsum(lengths)[:-1]), []
        for pack in range(len(self._packs)):
            own = self._packs[pack]
            shape = (-1, *own.shape[1:]) if kind == "gather" else own.shape
            parts = [left.pop(0) for _ in range(len(whose) if kind == "gather" else 1)]
            found.append([part.view(own.dtype).reshape(shape) for part in parts])
        return found

    def _next_stage(self) -> None:
        self._stage += 1
        self._packs = {}

    def _key(self, pack: int) -> Key:
        return Key(self._generation, self._attempt, self._stage, pack)


class _Sums(tf.distribute.CrossDeviceOps):
    """Adds up a mirrored strategy's replicas, one of which is in this process."""

    def __init__(self, collectives: ExchangeCollectives) -> None:
        super().__init__()
        self._collectives = collectives

    @property
    def _num_between_graph_workers(self) -> int:
        return self._collectives.members  # with a single replica, TensorFlow would not ask for a sum at all

    def batch_reduce_implementation(self, reduce_op: Any, pairs: Any, options: Any) -> list[Any]:
        assert reduce_op == tf.distribute.ReduceOp.SUM
        return self._collectives.sum_all([value.values[0] for value, _ in pairs])


def _part(pack: int, packs: int) -> str:
    return f", part {pack + 1} of {packs}" if packs > 1 else ""


def _begun_anew() -> ExchangeFailed:
    return ExchangeFailed(problems.begun_anew())


def _wide(tensor: Any) -> Any:
    return tf.float32 if tensor.dtype in _NARROW else tensor.dtype
