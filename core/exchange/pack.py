"""One member's arrays of a meeting: buffers for the others' numbers, and their addition. Thread-safe.

Every member ends with the same bits: an element's owner adds all members' numbers in rank order, in float32
if they travel narrower. It narrows its own numbers too, and keeps the narrowed total that the others receive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from core.exchange.frames import PackHead
from core.exchange.problems import unsendable
from core.exchange.state import (
    DTYPE_NAMES,
    MAX_DIMENSIONS,
    MAX_LABEL,
    MAX_PACK_BYTES,
    Call,
    DTypeName,
    Key,
    Kind,
    Limits,
    Phase,
    State,
    Wire,
    message_bytes,
    share,
    travelling,
)

Array = npt.NDArray[Any]

CHUNK = 64 * 1024
"""Elements added at a time: few enough to stay in the processor's cache until the sum is written."""
_FP16_EDGE = float(np.finfo(np.float16).max)


def narrowed(numbers: Array, wire: Wire) -> Array:
    """float32 numbers in wire format (float16, or bfloat16 as uint16), rounded to nearest even. Infinities
    and NaN stay; other numbers are clamped to float16's range."""
    if wire == "fp16":
        clamped = np.clip(numbers, -_FP16_EDGE, _FP16_EDGE)
        np.copyto(clamped, numbers, where=np.isinf(numbers))
        return clamped.astype(np.float16)
    bits = numbers.view(np.uint32)
    rounded = bits >> 16
    rounded &= 1
    rounded += 0x7FFF
    rounded += bits
    rounded >>= 16
    short = rounded.astype(np.uint16)
    is_nan = np.isnan(numbers)
    if is_nan.any():
        # Rounding may carry a NaN over into infinity or zero: keep its top bits, and set one of its own.
        short[is_nan] = (bits[is_nan] >> 16).astype(np.uint16) | 0x40
    return short


def widened(numbers: Array, wire: Wire) -> Array:
    """Numbers in wire format, converted to float32."""
    if wire == "fp16":
        return numbers.astype(np.float32)
    bits = numbers.astype(np.uint32)
    bits <<= 16
    return bits.view(np.float32)


def call_for(kind: Kind, array: Array, wire: Wire = "f32", label: str = "") -> Call:
    """Raises ``TandemError`` for an array that can't be sent."""
    name = array.dtype.name
    if name not in DTYPE_NAMES or not array.dtype.isnative:
        raise unsendable(f"numbers of type {array.dtype}")
    if kind == "gather" and array.ndim == 0:
        raise unsendable("a single number can't be gathered along its first dimension")
    if array.ndim > MAX_DIMENSIONS:
        raise unsendable(f"{array.ndim} dimensions, more than {MAX_DIMENSIONS}")
    if array.nbytes > MAX_PACK_BYTES:
        raise unsendable(f"{array.nbytes} bytes in one array, more than {MAX_PACK_BYTES}")
    if len(label) > MAX_LABEL:
        raise unsendable(f"a label of {len(label)} characters, more than {MAX_LABEL}")
    return Call(kind=kind, dtype=cast(DTypeName, name), shape=array.shape, wire=wire, label=label)


@dataclass(slots=True)
class Landing:
    """The buffer for one message. ``received``: bytes that have arrived, in whole pieces."""

    data: npt.NDArray[np.uint8]
    received: int = 0


@dataclass(frozen=True, slots=True)
class Payload:
    """A message's bytes, made piece by piece when sent, and again when resent."""

    size: int
    piece: Callable[[int, int], Array]


class Pack:
    """This member's part in one meeting. ``members``: ranks of the meeting's members."""

    def __init__(self, rank: int, members: Sequence[int]) -> None:
        self._rank, self._members = rank, members
        self._others = [each for each in members if each != rank]
        self._lock = threading.Lock()
        self._own: Array | None = None
        self._call: Call | None = None
        self._landings: dict[tuple[int, Phase], tuple[Landing, Call]] = {}
        self._total: Array | None = None
        """Flat, with all elements."""
        self._total_on_wire: Array | None = None
        """A copy of this member's share as sent: the caller may write into the sum."""
        self._added = 0

    def bring(self, array: Array, call: Call) -> None:
        """Set this member's own numbers, which must not change until all members have received them."""
        with self._lock:
            self._own, self._call = np.ascontiguousarray(array).reshape(-1), call
            if call.kind == "gather" or not self._others:
                return
            if len(self._others) > 1 or call.is_narrowed:
                self._total = np.empty(call.elements, call.dtype)
            if len(self._others) > 1:
                self._total_on_wire = np.empty(_length(self._share), call.wire_dtype)

    def land(self, rank: int, phase: Phase, call: Call) -> Landing:
        """The buffer for a message that was announced with ``call``."""
        size = message_bytes(call, phase, rank, self._rank, self._members)
        with self._lock:
            if phase == "total" and self._total is not None and not call.is_narrowed:
                part = travelling(call, phase, rank, self._rank, self._members)
                landing = Landing(self._total[part].view(np.uint8))
            else:
                landing = Landing(np.empty(size, np.uint8))
            self._landings[rank, phase] = landing, call
        return landing

    def take(self, rank: int, phase: Phase) -> None:
        """More, or all, of a message has arrived: add what can be added."""
        if phase == "part":
            self.advance()
            return
        with self._lock:
            landing, call = self._landings[rank, phase]
            if call.is_narrowed and self._total is not None and landing.received == landing.data.size:
                part = travelling(call, phase, rank, self._rank, self._members)
                self._total[part] = widened(landing.data.view(call.wire_dtype), call.wire)

    def early_bytes(self) -> int:
        """Bytes that arrived before this member's own."""
        with self._lock:
            return sum(landing.received for landing, _ in self._landings.values())

    def advance(self) -> None:
        """Add up to the point where everybody's numbers have arrived."""
        with self._lock:
            call = self._call
            if call is None or call.kind == "gather" or not self._others:
                return
            parts = [self._landings.get((rank, "part")) for rank in self._others]
            if any(each and not call.fits(each[1]) for each in parts):
                return  # a mismatch that came early; the machine reports it
            item = call.wire_dtype.itemsize
            ready = min(each[0].received // item if each else 0 for each in parts)
            if ready and self._total is None:
                # Sum of two: the other's buffer becomes the sum.
                self._total = self._landing(self._others[0]).view(call.dtype)
            with np.errstate(all="ignore"):
                for begin in range(self._added, ready, CHUNK):
                    self._add(call, begin, min(begin + CHUNK, ready))
            self._added = max(self._added, ready)

    def payload(self, receiver: int, phase: Phase) -> Payload:
        """The message that this member sends to another."""
        assert self._call is not None and self._own is not None
        call, wire = self._call, self._call.wire
        part = travelling(call, phase, self._rank, receiver, self._members)
        numbers = self._own[part]
        if phase == "total":
            assert self._total_on_wire is not None
            numbers = self._total_on_wire
        size = message_bytes(call, phase, self._rank, receiver, self._members)
        if phase == "part" and call.is_narrowed:
            item = call.wire_dtype.itemsize
            return Payload(size, lambda b, e: narrowed(numbers[b // item : e // item], wire).view(np.uint8))
        flat = numbers.view(np.uint8)
        return Payload(size, lambda begin, end: flat[begin:end])

    def result(self) -> Array | list[Array]:
        """The sum, or all members' arrays in rank order. Read-only, since one may be the caller's own."""
        assert self._call is not None and self._own is not None
        if self._call.kind == "sum":
            if not self._others:
                return _read_only(self._own.reshape(self._call.shape))
            total = np.empty(0, self._call.dtype) if self._total is None else self._total
            return _read_only(total.reshape(self._call.shape))
        arrays = []
        for rank in self._members:
            if rank == self._rank:
                arrays.append(_read_only(self._own.reshape(self._call.shape)))
            else:
                landing, call = self._landings[rank, "part"]
                arrays.append(_read_only(landing.data.view(call.dtype).reshape(call.shape)))
        return arrays

    def progress(self, rank: int) -> tuple[int, int]:
        """Bytes received from a member, and the total expected so far."""
        with self._lock:
            come = total = 0
            phases: tuple[Phase, ...] = ("part", "total")
            for phase in phases:
                if found := self._landings.get((rank, phase)):
                    come += found[0].received
                    total += found[0].data.size
                elif (
                    (call := self._call) and call.kind == "sum" and (phase == "part" or len(self._others) > 1)
                ):
                    total += message_bytes(call, phase, rank, self._rank, self._members)
            return come, total

    @property
    def _share(self) -> slice:
        assert self._call is not None
        return share(self._call.elements, self._members, self._rank)

    def _landing(self, rank: int) -> npt.NDArray[np.uint8]:
        return self._landings[rank, "part"][0].data

    def _add(self, call: Call, begin: int, end: int) -> None:
        assert self._own is not None and self._total is not None
        target = self._total[self._share][begin:end]

        def term(rank: int) -> Array:
            assert self._own is not None
            if rank == self._rank:
                own: Array = self._own[self._share][begin:end]
                return widened(narrowed(own, call.wire), call.wire) if call.is_narrowed else own
            theirs = self._landing(rank).view(call.wire_dtype)[begin:end]
            return widened(theirs, call.wire) if call.is_narrowed else theirs

        first, second, *rest = self._members
        np.add(term(first), term(second), out=target)
        for rank in rest:
            np.add(target, term(rank), out=target)
        if self._total_on_wire is None:
            return
        if call.is_narrowed:
            short = narrowed(target, call.wire)
            target[:] = widened(short, call.wire)
            self._total_on_wire[begin:end] = short
        else:
            self._total_on_wire[begin:end] = target


def has_room(packs: Mapping[Key, Pack], state: State, rank: int, head: PackHead, limits: Limits) -> bool:
    """Whether to accept another member's pack: there are limits for meetings this one has not reached."""
    if state.meetings[head.key].call is not None:
        return True
    early = [
        pack.progress(rank)[1]
        for other, pack in packs.items()
        if (known := state.meetings.get(other)) and known.call is None and (rank, "part") in known.announced
    ]
    return len(early) < limits.early_meetings and sum(early) + head.call.nbytes <= limits.early_bytes


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
