"""Where members meet: sums and gathers over all of them, by the strategy's own all-reduce and all-gather.

`exchange_ops.py` does the same without TensorFlow's own cluster.

Everything here must be called by every member, in the same order. Uses only tf.distribute's public API, so it
works inside tf.function, loops, conditions and gradients alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from core.vocabulary.errors import TandemError

_UNPACKED = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1)
"""By default TensorFlow copies all tensors of a list into one, and waits for the last of them."""


def summed_bytes(tensors: Sequence[Any], members: int) -> int:
    """Bytes that each member sends to sum dense tensors: a ring sends 2 (members - 1) parts of 1/members.

    Shapes are known, but for which nothing is counted.
    """
    sizes = [(tensor.shape.num_elements() or 0) * tensor.dtype.size for tensor in tensors]
    return 2 * (members - 1) * sum(sizes) // members


def nowhere() -> str:
    return ""


class Collectives:
    """Sums and gathers over the members of a MultiWorkerMirroredStrategy with one device each.

    ``what`` and ``place()`` say what a meeting is for and where the script is, alike on all members; "{}" in
    ``what`` stands for ``count``, a scalar. TensorFlow's collectives have no use for them.
    """

    place: Callable[[], str] = staticmethod(nowhere)

    gathers_any_length = False
    """Within a traced step: TensorFlow keeps the lengths of the first time."""

    def __init__(self, strategy: Any, rank: int, members: int) -> None:
        devices = len(strategy.extended.worker_devices)
        if devices != 1 or strategy.num_replicas_in_sync != members:
            raise TandemError(
                code="replicas",
                what=f"Each member trains on one device; this one offers {devices}.",
                fix="Let TensorFlow see one GPU in each trainer; a laptop may have several of those.",
            )
        self.strategy = strategy
        self.rank = rank
        self.members = members
        self._eager_sum = tf.function(self._sum, reduce_retracing=True)
        self._eager_gather = tf.function(self._gather, reduce_retracing=True)

    def sum(self, value: Any, what: str = "numbers", count: Any = None) -> Any:
        """The sum over all members of dense tensors (one, or a list) of equal shapes on each; no gradient.

        Each tensor of a list travels on its own, the last one first, and leaves as soon as it is there.
        """
        value = tf.nest.map_structure(tf.stop_gradient, value)
        return self._eager_sum(value) if tf.executing_eagerly() else self._sum(value)

    def add_up(self, tensors: Sequence[Any], what: str) -> list[Any]:
        """Of each tensor, the sum over all members, for a strategy that the script opened itself."""
        return list(self.sum(list(tensors), what))

    def gather(self, value: Any, what: str = "numbers") -> Any:
        """All members' tensors joined along axis 0 in rank order; their lengths may differ."""
        value = tf.stop_gradient(value)
        return self._eager_gather(value) if tf.executing_eagerly() else self._gather(value)

    def gather_bytes(self, data: bytes, what: str = "bytes") -> list[bytes]:
        """Every member's bytes, in rank order."""
        lengths = self.gather(tf.constant([len(data)], tf.int64), what).numpy()
        longest = int(lengths.max())
        if longest == 0:
            return [b""] * self.members
        words = -(-longest // 4)
        padded = np.zeros(words, np.int32)
        padded.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
        joined = self.gather(tf.constant(padded), what).numpy().reshape(self.members, words)
        return [joined[rank].tobytes()[: int(lengths[rank])] for rank in range(self.members)]

    def from_chief(self, data: bytes, what: str = "the chief's bytes") -> bytes:
        """The chief's bytes, on every member."""
        return self.gather_bytes(data if self.rank == 0 else b"", what)[0]

    def gather_words(self, words: Sequence[int], what: str = "words") -> list[list[int]]:
        """Every member's list of as many 32-bit words, in rank order; one small all-reduce."""
        return self._gather_row(words, np.int64, what)

    def gather_numbers(self, numbers: Sequence[float], what: str = "numbers") -> list[list[float]]:
        """Every member's list of as many finite numbers, in rank order; the same bits on each member."""
        return self._gather_row(numbers, np.float64, what)

    def any(self, flags: Sequence[bool], what: str = "decisions") -> list[bool]:
        """For each flag: whether it is set on any member."""
        sums = self.sum(tf.constant([float(flag) for flag in flags]), what)
        return [bool(x > 0) for x in sums.numpy()]

    def _gather_row(self, own: Sequence[float], kind: type[np.generic], what: str) -> Any:
        rows = np.zeros((self.members, len(own)), kind)
        rows[self.rank] = own
        return self.sum(tf.constant(rows), what).numpy().tolist()

    def _sum(self, value: Any) -> Any:
        def in_replica(own: Any) -> Any:
            # The identity gives the tensor this replica's device, without which the all-reduce has no place.
            context = tf.distribute.get_replica_context()
            own = tf.nest.map_structure(tf.identity, own)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, own, _UNPACKED)

        return self.strategy.run(in_replica, args=(value,))

    def _gather(self, value: Any) -> Any:
        def in_replica(own: Any) -> Any:
            return tf.distribute.get_replica_context().all_gather(tf.identity(own), axis=0)

        return self.strategy.run(in_replica, args=(value,))


class NoCollectives(Collectives):
    """Stands in for the other members, inside a step only: what is traced with it meets nobody."""

    def __init__(self, rank: int, members: int) -> None:
        self.rank = rank
        self.members = members

    def sum(self, value: Any, what: str = "", count: Any = None) -> Any:
        return tf.nest.map_structure(lambda tensor: tf.stop_gradient(tf.identity(tensor)), value)

    def gather(self, value: Any, what: str = "") -> Any:
        return tf.stop_gradient(tf.identity(value))
