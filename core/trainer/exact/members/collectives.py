"""Sums and gathers over all members. `exchange_ops.py` implements them over TLS.

Every member must call everything here, in the same order. It works inside tf.function, loops, conditions and
gradients alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
import tensorflow as tf

from core.exchange import problems
from core.exchange.problems import ExchangeFailed
from core.exchange.state import Key
from core.vocabulary.errors import TandemError

MOST_BYTES = 2**24
"""Most bytes that one member sends the others at once, unless the caller allows more."""
_T = TypeVar("_T")
_ENCODER = msgspec.msgpack.Encoder()
_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class LeftMidway(Exception):
    """A member left in the middle of an atomic call."""


@dataclass(frozen=True, slots=True)
class PendingGather:
    """A gather that other meetings overlap. ``ranks``: the members whose arrays it yields, in order."""

    key: Key | None
    """None: it yields nothing, since a member left before all had begun it."""
    ranks: tuple[int, ...]


def summed_bytes(tensors: Sequence[Any], members: int) -> int:
    """Bytes that each member sends to sum dense tensors: a ring sends 2 (members - 1) parts of 1/members.

    Tensors of unknown shape are not counted.
    """
    sizes = [(tensor.shape.num_elements() or 0) * tensor.dtype.size for tensor in tensors]
    return 2 * (members - 1) * sum(sizes) // members


def nowhere() -> str:
    return ""


class Collectives(ABC):
    """Sums and gathers over the members of a run.

    ``what``: a meeting's purpose, in which "{}" stands for ``count``, a scalar. ``place()``: where the script
    is. Both are the same on all members.
    """

    place: Callable[[], str] = staticmethod(nowhere)
    names: Sequence[str] = ()
    """Names of the members' laptops, by rank, for failure messages."""
    failure: TandemError | None = None
    """Why no more meetings are possible."""
    meets_between_steps = False
    """Members meet between steps, not in them: see ``Step.meets_between_steps``."""

    def __init__(self, rank: int, members: int) -> None:
        self.rank, self.members = rank, members
        """Rank and number of members as planned: unchanged when members leave."""
        self.present: tuple[int, ...] = tuple(range(members))
        """Ranks of the members present, in order."""
        self.met = self.present
        """Ranks of the members that took part in the last meeting."""

    def atomically(self, run: Callable[[], _T]) -> _T:
        """Returns `run()`; either all of its meetings count or none. Atomic calls must not nest.

        Raises ``LeftMidway``: the caller must undo what `run` did, and repeat it with the remaining members.
        """
        return run()

    @abstractmethod
    def sum(self, value: Any, what: str = "numbers", count: Any = None) -> Any:
        """The sum over all members of dense tensors (one, or a list) of equal shapes; no gradient.

        Each tensor of a list travels separately, the last one first, and leaves as soon as it is ready.
        """

    def gather(self, value: Any, what: str = "numbers") -> Any:
        """All members' tensors joined along axis 0 in rank order; their lengths may differ."""
        return self.gather_all([value], what)[0]

    @abstractmethod
    def gather_all(self, values: Sequence[Any], what: str, count: Any = None) -> list[Any]:
        """``gather`` for each tensor. With a ``count``, all members' tensors must be equally long."""

    @abstractmethod
    def sum_without_strategy(self, tensors: Sequence[Any], what: str) -> list[Any]:
        """The sum of each tensor over all members. Opens no strategy, so it works inside any other one."""

    def begin_gather(self, own: np.ndarray, what: str) -> PendingGather:
        """Begins to gather `own`, which must not change any more. Returns at once; other meetings may come
        before ``end_gather``. Only outside of graphs and atomic calls.

        Ends an earlier gather first that was never ended, because the script caught an error.
        """
        raise NotImplementedError

    def end_gather(self, begun: PendingGather, what: str) -> list[np.ndarray] | None:
        """The arrays of the members that ``begun`` names. None, on every member, if one of them left and some
        member lacks an array: then none may use any."""
        raise NotImplementedError

    def gather_objects(self, own: _T, decoder: msgspec.msgpack.Decoder[_T], what: str) -> list[_T]:
        """The struct of every member present, in rank order, decoded within ``decoder``'s bounds.

        Raises ``TandemError``.

        Security invariant: a member may run a modified Tandem, so nothing it sends is used before it is
        checked.
        """
        found = []
        for rank, data in zip(self.met, self.gather_bytes(_ENCODER.encode(own), what), strict=True):
            try:
                found.append(decoder.decode(data))
            except _MALFORMED as error:
                raise self.unsound(rank, what, str(error)) from None
        return found

    def gather_bytes(self, data: bytes, what: str = "bytes", most: int = MOST_BYTES) -> list[bytes]:
        """The bytes of every member present, in rank order. Raises ``TandemError`` if one sends more than
        ``most``."""
        lengths = {}
        for rank, received in self._gather_each(np.array([len(data)], np.int64), what):
            if received.shape != (1,) or not 0 <= received[0] <= most:
                raise self.unsound(rank, what, f"more than {most} bytes")
            lengths[rank] = int(received[0])
        words = -(-max(lengths.values()) // 4)
        if words == 0:
            return [b""] * len(lengths)
        padded = np.zeros(words, np.int32)
        padded.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
        found = []
        for rank, received in self._gather_each(padded, what):
            if received.shape != (words,):
                raise self.unsound(rank, what, "not as many bytes as announced")
            found.append(received.tobytes()[: lengths[rank]])
        return found

    def bytes_from_chief(self, data: bytes, what: str = "the chief's bytes", most: int = MOST_BYTES) -> bytes:
        """The chief's bytes, on every member. Raises ``TandemError`` if the chief has more than ``most``.

        Every member passes its own, since it becomes the chief if those before it leave meanwhile.
        """
        while True:
            size = self._gather_each(np.array([len(data)], np.int64), what)[0][1]
            giver = self.met[0]
            if size.shape != (1,) or not 0 <= size[0] <= most:
                raise self.unsound(giver, what, f"more than {most} bytes")
            own = np.zeros(-(-int(size[0]) // 4), np.int32)
            if self.rank == giver:
                own.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
            received = self._gather_each(own, what)[0][1] if len(own) else own
            if self.met[0] != giver:
                continue
            if received.shape != own.shape:
                raise self.unsound(giver, what, "not as many bytes as announced")
            return received.tobytes()[: int(size[0])]

    def arrays_from_chief(self, arrays: Sequence[np.ndarray], what: str) -> list[np.ndarray]:
        """The chief's arrays, on every member; each passes its own, of equal shapes. Not the first meeting.

        One sum per array, of the chief's numbers and the others' zeros: exact, as x + 0 = x.
        """
        while True:
            giver, found = self.met[0], []
            for own in arrays:
                given = own if self.rank == giver else np.zeros_like(own)
                found.append(self.sum(tf.constant(given), what).numpy())
                if self.met[0] != giver:
                    break
            else:
                return found

    @property
    def is_chief(self) -> bool:
        """Whether this is the first member present, whose state the others adopt."""
        return self.rank == self.present[0]

    def unsound(self, rank: int, what: str, why: str) -> TandemError:
        """The error for data that Tandem never sends. Ends the run, even if a script catches it."""
        self.failure = ExchangeFailed(problems.incomprehensible(self.named(rank), f"{what}: {why}"))
        return self.failure

    def named(self, rank: int) -> str:
        return self.names[rank] if rank < len(self.names) else f"member {rank}"

    def gather_ints(self, ints: Sequence[int], what: str = "words") -> list[list[int]]:
        """Every present member's list of 32-bit integers, all equally long, in rank order; one small sum."""
        return self._gather_row(ints, np.int64, what)

    def gather_numbers(self, numbers: Sequence[float], what: str = "numbers") -> list[list[float]]:
        """Like ``gather_ints``, for finite numbers; the same bits on each member."""
        return self._gather_row(numbers, np.float64, what)

    def any(self, flags: Sequence[bool], what: str = "decisions") -> list[bool]:
        """For each flag, whether it is set on any member."""
        sums = self.sum(tf.constant([float(flag) for flag in flags]), what)
        return [bool(x > 0) for x in sums.numpy()]

    def _gather_each(self, own: np.ndarray, what: str) -> list[tuple[int, np.ndarray]]:
        """Every present member's rank and array, each as long as ``own``."""
        parts = np.split(self.gather(tf.constant(own), what).numpy(), len(self.met))
        return list(zip(self.met, parts, strict=True))

    def _gather_row(self, own: Sequence[float], kind: type[np.generic], what: str) -> Any:
        rows = np.zeros((self.members, len(own)), kind)
        rows[self.rank] = own
        summed = self.sum(tf.constant(rows), what).numpy().tolist()
        return [summed[rank] for rank in self.met]


class NoCollectives(Collectives):
    """Stands in for the exchange, only inside a step: a trace made with it reaches no other member."""

    def sum(self, value: Any, what: str = "", count: Any = None) -> Any:
        return tf.nest.map_structure(lambda tensor: tf.stop_gradient(tf.identity(tensor)), value)

    def sum_without_strategy(self, tensors: Sequence[Any], what: str) -> list[Any]:
        return list(self.sum(list(tensors)))

    def gather_all(self, values: Sequence[Any], what: str, count: Any = None) -> list[Any]:
        return list(self.sum(list(values)))
