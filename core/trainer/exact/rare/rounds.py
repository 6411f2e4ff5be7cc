"""Rounds of one model's training: some steps by each member alone, then a meeting.

At a meeting members exchange how far their weights moved since the last one, in 4 bits; all then take the
same outer step from the same weights. A large model's meeting overlaps the next steps, and ends before a step
whose number is the same on all members, however fast the network is; what a member's steps changed meanwhile
is added on top. A flush waits for the meeting, and makes members equal in everything else, too: they take the
mean of what steps write from own rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.members.collectives import PendingGather
from core.trainer.exact.members.fewer_bits import LARGE_ELEMENTS
from core.trainer.exact.members.sketches import FAULT
from core.trainer.exact.rare import codec, outer, vectors
from core.trainer.exact.rare.codec import Floats
from core.trainer.exact.steps.calibration import measurements
from core.trainer.exact.steps.engine import Engine
from core.vocabulary.errors import TandemError
from core.vocabulary.options import LEAST_STEPS, MOST_STEPS

USUAL_STEPS = 16
"""Steps between two meetings, unless the user or a measurement sets them."""
_TRIALS = 2
"""Meetings tried: the first one warms up for the second."""
_AUDIT_EVERY = 64
"""The mean is checked at every meeting whose number is a multiple of this, or a power of two."""
_COST = 0.1
"""Largest share of the time for meetings, if their interval follows from a measurement."""
_OVERLAP_DIVISOR = 4
"""A meeting overlaps this fraction of an interval. If shorter, slow networks would stall steps; if longer,
the outer step would be staler."""


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A meeting that overlaps steps. ``steps``: those before it, since the last meeting."""

    gather: PendingGather
    weights: Floats
    """This member's weights when the meeting began."""
    shares: list[int]
    steps: int


class Rounds:
    """Every member must call the same methods between the same steps."""

    portion_s = 1.0
    """Length of a portion. Members wait for each other after each, to sum metrics, so portions are long."""

    def __init__(self, engine: Engine, model: Any, every: int) -> None:
        """``every``: steps between two meetings; 0: chosen by a measurement."""
        self._engine = engine
        self._model = model
        self._is_chosen = every > 0
        self.every = every or USUAL_STEPS
        self.since = 0
        """Steps since the last meeting began."""
        self._under_way: _UnderWay | None = None
        self._weights: Floats | None = None
        """The weights after the last outer step, equal on all members; None until the next step."""
        self._unsent: Floats | None = None
        """What rounding has lost from this member's messages so far; None: nothing."""
        self._is_large = False
        """Whether meetings overlap steps. That costs a call into TensorFlow, and pays only for large
        models."""
        self._unequal = self._unequal_slots = False
        """Whether there were steps since the last flush, and since the last whole flush."""
        self._written: set[int] = set()
        """Ids of the handles that steps write."""
        self._spent_s, self._sent, self._steps = 0.0, 0, 0
        self._meetings = 0

    # --- what meetings cost

    @property
    def meeting_s(self) -> float:
        return self._spent_s / max(1, self._steps)

    @property
    def meeting_bytes(self) -> int:
        return round(self._sent / max(1, self._steps))

    @property
    def met_every(self) -> int:
        """Steps between two meetings; at most an epoch's, since members always meet at its end."""
        steps = self._engine.steps_in_epoch
        return self.every if steps is None else max(1, min(self.every, steps))

    def rehearse(self, step_s: float) -> tuple[float, int]:
        """Tries a meeting, without effect, and chooses how often to meet.

        Returns the seconds and the bytes that meetings add to a step of ``step_s`` on average.
        """
        collectives, took_s, sent = self._engine.collectives, [], self._sent
        for _ in range(_TRIALS):
            collectives.gather_ints([0], "to rehearse a meeting")  # Members begin it together.
            began_s = time.perf_counter()
            data = codec.encode(own := vectors.flat(self._trainable))
            encoded_s = time.perf_counter()
            gathered = self._gathered(data)
            came_s = time.perf_counter()
            found = self._decoded(gathered, collectives.met, len(own))
            outer.stepped(own, own.copy(), outer.mean(found, self._shares(collectives.met)))
            vectors.assign(self._trainable, own)
            took_s.append((came_s - encoded_s, time.perf_counter() - came_s + encoded_s - began_s))
        self._sent = sent
        measured = measurements(self._engine, [*min(took_s, key=sum), step_s])
        wire_s, own_s, together_s, *_ = (max(numbers) for numbers in zip(*measured, strict=True))
        known = self._engine.steps_in_epoch
        if not self._is_chosen and together_s > 0:
            wanted = (wire_s + own_s) / (_COST * together_s)
            self.every = int(min(max(LEAST_STEPS, wanted), MOST_STEPS))
            if known and known > self.every:
                # An epoch ends with a meeting, so an interval that does not divide it would cost another one.
                self.every = -(-known // max(known // self.every, -(-known // MOST_STEPS)))
        # It overlaps at most a portion, whose metrics are summed after it, and nothing at an epoch's end.
        overlapped_s = min(self.overlap * together_s, max(self.portion_s, together_s))
        meeting_s = own_s + max(0.0, wire_s - overlapped_s)
        steps, last_s = (known, own_s + wire_s) if known else (self.every, meeting_s)
        count, sent = -(-steps // self.every), (len(collectives.met) - 1) * len(data)
        return ((count - 1) * meeting_s + last_s) / steps, count * sent // steps

    # --- rounds

    def prepare(self, graph: Any = None) -> None:
        """Call once the model has its variables. ``graph``: that of a traced step."""
        size = vectors.size(self._trainable)
        self._is_large = size >= LARGE_ELEMENTS
        known = model_state.outer_momentum.get(self._model)
        if known is None or known.shape != (size,):
            with tf.device("CPU:0"):
                model_state.outer_momentum[self._model] = tf.Variable(
                    tf.zeros([size]), trainable=False, name="outer_momentum"
                )
        if graph is not None:
            self._written |= {id(handle) for handle in local_state.written_handles(graph)}

    def begin(self) -> None:
        """Call when a fit begins: members are equal then."""
        # If the script caught an error of the last fit, a meeting may be under way: the next one ends it.
        self._weights = self._unsent = self._under_way = None
        self.since, self._unequal, self._unequal_slots = 0, False, False
        self._spent_s, self._sent, self._steps = 0.0, 0, 0

    def step_begins(self) -> None:
        if self._weights is None:
            self._weights = vectors.flat(self._trainable)

    def passed(self, steps: int) -> None:
        self.since += steps
        self._steps += steps
        self._unequal = self._unequal_slots = True

    @property
    def overlap(self) -> int:
        """Steps that a meeting overlaps; 0: they wait for it. The network's speed must not change the
        result."""
        return self.every // _OVERLAP_DIVISOR if self._is_large else 0

    @property
    def left(self) -> int:
        """Steps until a meeting has to begin or end."""
        return (self.every if self._under_way is None else self.overlap) - self.since

    def meet_if_due(self) -> None:
        if self._under_way is not None and self.since >= self.overlap:
            self._end_meeting()
        if self.since >= self.every:
            if self.overlap:
                self._begin_meeting()
            else:
                self._meet()

    def _begin_meeting(self) -> None:
        began_s = time.perf_counter()
        weights = vectors.flat(self._trainable)
        sent = np.frombuffer(codec.encode(self._difference(weights)), np.uint8)
        gather = self._engine.collectives.begin_gather(sent, "differences of weights")
        self._sent += (len(gather.ranks) - 1) * len(sent)
        self._under_way = _UnderWay(gather, weights, self._shares(gather.ranks), self.since)
        self.since = 0
        self._spent_s += time.perf_counter() - began_s

    def _end_meeting(self) -> None:
        """Takes the outer step. If a member has left and another lacks an array, the meeting has no effect,
        and its steps count for the next meeting."""
        begun, self._under_way = self._under_way, None
        assert begun is not None
        began_s = time.perf_counter()
        gathered = self._engine.collectives.end_gather(begun.gather, "that a meeting is over")
        if gathered is None:
            self.since += begun.steps
        else:
            ranks, own = begun.gather.ranks, self._difference(begun.weights)
            found = self._decoded([each.tobytes() for each in gathered], ranks, len(own))
            mine = found[ranks.index(self._engine.rank)]
            self._unsent = np.subtract(own, mine, out=own)
            own_steps = vectors.flat(self._trainable) - begun.weights if self.since else None
            self._take_outer_step(self._mean(found, mine, begun.shares), own_steps)
        self._spent_s += time.perf_counter() - began_s

    def _meet(self) -> None:
        began_s = time.perf_counter()
        own = self._difference(vectors.flat(self._trainable))
        sent = codec.encode(own)
        gathered, ranks = self._gathered(sent), self._engine.collectives.met
        found = self._decoded(gathered, ranks, len(own))
        mine = found[ranks.index(self._engine.rank)]
        self._unsent = np.subtract(own, mine, out=own)
        self._take_outer_step(self._mean(found, mine, self._shares(ranks)))
        self._spent_s += time.perf_counter() - began_s

    def flush(self, *, whole: bool) -> None:
        """Makes members equal, except for optimizers' variables unless ``whole``.

        A whole flush is in float32, and leaves nothing unsent.
        """
        whole = whole or bool(getattr(self._model.optimizer, "use_ema", False))
        if not (self._unequal_slots if whole else self._unequal):
            return
        if self._under_way is not None:
            self._end_meeting()
        if self.since and not whole:
            self._meet()
        began_s, collectives = time.perf_counter(), self._engine.collectives
        own = self._difference(vectors.flat(self._trainable)) if self.since else np.zeros(0, np.float32)
        others = self._diverging(slots=whole)
        numbers = np.concatenate([own, vectors.flat(others)])
        if len(numbers):
            gathered = self._gathered_floats(numbers)
            mean = self._mean(gathered, numbers, self._shares(collectives.met))
            if self.since:
                self._take_outer_step(mean[: len(own)])
            vectors.assign(others, mean[len(own) :])
        self._unequal = False
        if whole:
            self._unsent, self._unequal_slots = None, False
            model_state.equalise(self._model, collectives)  # For what is not averaged, such as counters.
        self._spent_s += time.perf_counter() - began_s

    def _mean(self, found: Sequence[Floats], own: Floats, shares: Sequence[int]) -> Floats:
        """The mean of the members' arrays. At some meetings members exchange marks of their `own` to audit
        it: raises TandemError if it is wrong."""
        collectives = self._engine.collectives
        with np.errstate(invalid="ignore", over="ignore"):
            mean = outer.mean(found, shares)
        self._meetings += 1
        is_due = self._meetings.bit_count() == 1 or self._meetings % _AUDIT_EVERY == 0
        if is_due and all(vectors.counts(array) for array in found):
            gathered = np.array(collectives.gather_numbers(outer.marks(own).tolist(), "to check a mean"))
            if len(gathered) == len(shares) and not outer.is_mean(outer.marks(mean), gathered, shares):
                collectives.failure = _wrong_mean()
                raise collectives.failure
        return mean

    def _difference(self, weights: Floats) -> Floats:
        """From the weights after the last outer step to these, plus what earlier messages lost."""
        self.step_begins()
        assert self._weights is not None
        return vectors.difference(weights, self._weights, self._unsent)

    def _take_outer_step(self, difference: Floats, own_steps: Floats | None = None) -> None:
        """Takes the outer step, the same on all members. ``own_steps``: how far this member's steps moved its
        weights since the meeting began."""
        momentum = model_state.outer_momentum[self._model]
        assert self._weights is not None
        with np.errstate(invalid="ignore", over="ignore"):
            weights, next_momentum = outer.stepped(self._weights, momentum.numpy(), difference)
        momentum.assign(next_momentum)
        if own_steps is None:
            self._assign_within_constraints(weights)
            self._weights, self.since = None, 0
            return
        if self._constrained or any(v.dtype != tf.float32 for v in self._trainable):
            # What constraints and narrow types change must not be part of the next difference.
            self._assign_within_constraints(weights)
            weights = vectors.flat(self._trainable)
        self._weights = weights
        with np.errstate(invalid="ignore", over="ignore"):
            moved = weights + own_steps
        self._assign_within_constraints(moved)

    def _assign_within_constraints(self, weights: Floats) -> None:
        vectors.assign(self._trainable, weights)
        for variable in self._constrained:
            variable.assign(variable.constraint(variable))

    # --- what is sent

    def _gathered(self, data: bytes) -> list[bytes]:
        collectives = self._engine.collectives
        found = collectives.gather_bytes(data, "differences of weights", most=len(data))
        self._sent += (len(found) - 1) * len(data)
        return found

    def _decoded(self, gathered: Sequence[bytes], ranks: Sequence[int], size: int) -> list[Floats]:
        """The differences of the members with these ranks. Raises TandemError for malformed ones."""
        found: dict[int, Floats] = {}
        broken = []
        for rank, data in zip(ranks, gathered, strict=True):
            try:
                found[rank] = codec.decode(data, size)
            except codec.Unbounded:
                broken.append(rank)
            except ValueError as error:
                raise self._engine.collectives.unsound(rank, "differences of weights", str(error)) from None
        return self._sound(found, broken, ranks, size)

    def _gathered_floats(self, own: Floats) -> list[Floats]:
        """Every member's ``own``, sent in float32. Raises TandemError for malformed ones."""
        gathered = self._gathered(own.astype("<f4").tobytes())
        found: dict[int, Floats] = {}
        broken, ranks = [], self._engine.collectives.met
        for rank, data in zip(ranks, gathered, strict=True):
            if len(data) != own.nbytes:
                what = f"{len(data)} bytes for {len(own)} numbers"
                raise self._engine.collectives.unsound(rank, "differences of weights", what)
            numbers = np.frombuffer(data, "<f4").astype(np.float32)
            if not vectors.counts(numbers):
                broken.append(rank)
            found[rank] = numbers
        return self._sound(found, broken, ranks, len(own))

    def _sound(
        self, found: dict[int, Floats], broken: Sequence[int], ranks: Sequence[int], size: int
    ) -> list[Floats]:
        """The members' arrays, by ``ranks``. Raises TandemError if only some members have numbers that do not
        count: all may, as a training may diverge."""
        if broken and len(broken) < len(ranks):
            collectives = self._engine.collectives
            collectives.failure = _not_finite(collectives.named(broken[0]))
            raise collectives.failure
        return [found[rank] if rank in found else np.full(size, np.nan, np.float32) for rank in ranks]

    # --- which variables, which shares

    def _shares(self, ranks: Sequence[int]) -> list[int]:
        found = [self._engine.share_numbers[rank] for rank in ranks]
        return found if any(found) else [1] * len(ranks)

    @property
    def _trainable(self) -> list[Any]:
        return [v for v in local_state.values_of(self._model.trainable_variables) if v.dtype.is_floating]

    @property
    def _constrained(self) -> list[Any]:
        return [v for v in self._model.trainable_variables if getattr(v, "constraint", None) is not None]

    def _diverging(self, *, slots: bool) -> list[Any]:
        """State besides weights that steps write from own rows, such as BatchNormalization's statistics.
        ``slots``: optimizers' variables, too."""
        every = [*self._model.non_trainable_variables, *model_state.outside_keras(self._model)]
        if slots:
            every += [v for optimizer in model_state.optimizers(self._model) for v in optimizer.variables]
        known = {id(v) for v in [*self._trainable, *local_state.metric_variables(self._model)]}
        return [
            v
            for v in local_state.values_of(every)
            if v.dtype.is_floating and id(v.handle) in self._written and id(v) not in known
        ]


def _not_finite(name: str) -> TandemError:
    return TandemError(
        code="weights-not-finite",
        what=f"The weights became NaN, infinite or larger than 10³⁰ only on {name}, between two meetings.",
        fix="Use a smaller learning rate or clip gradients (clipnorm). Laptops that meet in every step "
        "(--sync exact) see such a step together.",
    )


def _wrong_mean() -> TandemError:
    what = "At a meeting, the mean of the laptops' weights was not that of what they sent."
    return TandemError(code="wrong-sums", what=what, fix=FAULT)
