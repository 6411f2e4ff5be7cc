"""The data about meetings that frames, machine and driver share. No I/O.

A *pack* is one array that each member brings; a *meeting* is the collective operation on the packs of one
key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
import numpy as np

from core.session.state import SessionLimits
from core.vocabulary.errors import Problem
from core.vocabulary.text import plain

Kind = Literal["sum", "gather"]
Wire = Literal["f32", "bf16", "fp16"]
"""How float32 travels in a sum: unchanged, or narrowed. Every other type travels unchanged."""
Phase = Literal["part", "total"]
"""``part``: a member's own numbers, sent to their owner; ``total``: their sum, sent to everybody."""
DTypeName = Literal[
    "float16", "float32", "float64", "complex64", "complex128", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

Address = tuple[str, int]
"""Host and port."""
DTYPE_NAMES: frozenset[str] = frozenset(get_args(DTypeName))
MAX_DIMENSIONS = 16
MAX_PACK_BYTES = 2**34
MAX_LABEL = 400
GATHER_BYTES, GATHER_TIMES = 2**30, 64
"""Another member's pack for a gather may have this many bytes, or this many times the size of this member's,
whichever is more."""
_U32 = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
_U63 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Key(NamedTuple):
    """Identifies a meeting: the attempt of a generation, the step of an attempt, the pack of a step."""

    generation: _U32
    attempt: _U32
    step: _U63
    pack: _U32


class Call(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a member requests in a meeting: equal on all members, except for a gather's first dimension.

    ``label``: the caller's own label, shown to people: the purpose, and, after its last " in ", the place in
    its program.
    """

    kind: Kind
    dtype: DTypeName
    shape: Annotated[tuple[_U63, ...], msgspec.Meta(max_length=MAX_DIMENSIONS)]
    wire: Wire = "f32"
    label: Annotated[str, msgspec.Meta(max_length=MAX_LABEL)] = ""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def is_narrowed(self) -> bool:
        return self.kind == "sum" and self.dtype == "float32" and self.wire != "f32"

    @property
    def wire_dtype(self) -> np.dtype[np.generic]:
        """The type of the numbers on the wire; bfloat16 as its 16 bits."""
        if self.is_narrowed:
            return np.dtype(np.uint16 if self.wire == "bf16" else np.float16)
        return np.dtype(self.dtype)

    @property
    def nbytes(self) -> int:
        """Size of the whole array on the wire."""
        return self.elements * self.wire_dtype.itemsize

    def fits(self, other: Call) -> bool:
        """Whether another member's call is compatible. A gather may be longer there, within limits: even a
        member must not be able to fill this one's memory."""
        if other.kind == "gather" and other.nbytes > max(GATHER_BYTES, GATHER_TIMES * self.nbytes):
            return False
        if self.kind == "gather" == other.kind and self.shape and other.shape:
            ours, theirs = (msgspec.structs.replace(each, shape=each.shape[1:]) for each in (self, other))
            return ours == theirs
        return self == other

    @property
    def purpose(self) -> str:
        return self.label[: -len(" in " + self.place)] if self.place else self.label

    @property
    def place(self) -> str:
        return self.label.rpartition(" in ")[2] if " in " in self.label else ""

    @property
    def numbers(self) -> str:
        narrowed = f" as {self.wire}" if self.is_narrowed else ""
        return f"{self.kind} of {self.dtype} {list(self.shape)}{narrowed}"

    def __str__(self) -> str:
        return f"{plain(self.label, MAX_LABEL)} ({self.numbers})" if self.label else f"a {self.numbers}"


def share(elements: int, members: Sequence[int], rank: int) -> slice:
    """The elements that ``rank`` adds: all with one or two ``members`` (ranks), else a part."""
    if len(members) <= 2:
        return slice(0, elements)
    place, count = members.index(rank), len(members)
    return slice(elements * place // count, elements * (place + 1) // count)


def travelling(call: Call, phase: Phase, sender: int, receiver: int, members: Sequence[int]) -> slice:
    """The elements of a flat pack that one message carries."""
    if call.kind == "gather":
        return slice(0, call.elements)
    return share(call.elements, members, receiver if phase == "part" else sender)


def message_bytes(call: Call, phase: Phase, sender: int, receiver: int, members: Sequence[int]) -> int:
    part = travelling(call, phase, sender, receiver, members)
    return int((part.stop - part.start) * call.wire_dtype.itemsize)


@dataclass(frozen=True, slots=True)
class Limits(SessionLimits):
    """Limits of one member's patience and memory. No limit ends a wait for a member that is merely slow."""

    handshake_s: float = 5.0
    """Time for a caller, who may be anybody, to prove that it is a member."""
    missed_s: float = 8.0
    """How long to wait for the node's order to go on without a member that left through no fault of the
    others."""
    early_bytes: int = 256 * 2**20
    """Bytes kept of what a peer sends ahead of this member; the rest waits at the sender."""
    early_meetings: int = 1024
    """Limit of meetings sent ahead: even an empty one takes memory."""


LIMITS = Limits()

Connection = Literal["connected", "dialling", "closed"]


Trouble = Literal["refused", "silent", "unreachable", "no-name", "stranger", "hung-up"]
"""Why a call failed. ``stranger``: one of the two ends rejects the other's certificate as not of this run.
``hung-up``: the peer closed the connection."""


@dataclass(frozen=True, slots=True)
class Calls:
    """How calling a peer went since it was last connected. ``address``: None if it can't be called.

    ``since_s``: when the first of the ``tried`` calls ended (``time.monotonic``); ``trouble``: why the newest
    call failed, except that "stranger" is kept.
    """

    address: Address | None
    tried: int = 0
    since_s: float = 0.0
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """``address``: None if it can't be called. ``name``: its laptop's, for people."""

    rank: int
    address: Address | None
    name: str = ""


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """``session``: the newest session's number; ``heard_s``: seconds since anything arrived; ``unconfirmed``:
    messages kept for this peer until it confirms them."""

    rank: int
    connection: Connection
    session: int
    heard_s: float
    unconfirmed: int
    calls: Calls


@dataclass(frozen=True, slots=True)
class Waiting:
    """A peer that a current wait still needs something from.

    ``since_s``: seconds waited; ``bytes_total``: expected bytes, as far as known (a gather's sizes are known
    when they are announced); ``heard_s``: seconds since anything arrived from it, keep-alives included.
    """

    rank: int
    since_s: float
    bytes_come: int
    bytes_total: int
    connection: Connection
    heard_s: float


class Meeting(msgspec.Struct, frozen=True):
    """``call``: None until this member hands its pack over."""

    call: Call | None = None
    announced: Mapping[tuple[int, Phase], Call] = {}
    arrived: frozenset[tuple[int, Phase]] = frozenset()
    adding: bool = False
    added: bool = False
    is_over: bool = False
    """Complete or failed: accepts nothing more."""


class State(msgspec.Struct, frozen=True):
    """One member's whole state. ``floor``: (generation, attempt) below which everything is old."""

    rank: int
    members: int
    names: tuple[str, ...] = ()
    """The members' laptops, by rank."""
    floor: tuple[int, int] = (0, 0)
    meetings: Mapping[Key, Meeting] = {}
    taken: frozenset[Key] = frozenset()
    """Finished keys of the newest steps, to detect repetitions."""
    newest: tuple[int, int, int] = (0, 0, 0)
    """(generation, attempt, step) of the newest that was taken."""
    left: Mapping[int, Problem] = {}
    """Members that said goodbye: meetings that need them fail."""
    gone: frozenset[int] = frozenset()
    """Members that no longer take part since the newest generation."""
    closed: Problem | None = None

    @property
    def present(self) -> tuple[int, ...]:
        """Ranks of the members that take part, in order."""
        return tuple(rank for rank in range(self.members) if rank not in self.gone)

    def name(self, rank: int) -> str:
        return self.names[rank] if self.names else f"member {rank}"


# Events


class HandedOver(msgspec.Struct, frozen=True):
    """This member brought its pack."""

    key: Key
    call: Call


class Announced(msgspec.Struct, frozen=True):
    """The head of a peer's message arrived; its bytes will follow."""

    rank: int
    key: Key
    phase: Phase
    call: Call


class Arrived(msgspec.Struct, frozen=True):
    """All bytes of an accepted message have arrived."""

    rank: int
    key: Key
    phase: Phase


class Added(msgspec.Struct, frozen=True):
    """This member's share is added up."""

    key: Key


class Taken(msgspec.Struct, frozen=True):
    """The caller has the result, or the problem."""

    key: Key


class Regrouped(msgspec.Struct, frozen=True):
    """Everything before (generation, attempt) is old, and ``gone`` no longer take part."""

    generation: int
    attempt: int
    gone: frozenset[int] = frozenset()


class Left(msgspec.Struct, frozen=True):
    """A peer said goodbye, or its messages can't be read any more."""

    rank: int
    problem: Problem


class Closed(msgspec.Struct, frozen=True):
    problem: Problem


Event = HandedOver | Announced | Arrived | Added | Taken | Regrouped | Left | Closed

# Effects


class Send(msgspec.Struct, frozen=True):
    rank: int
    key: Key
    phase: Phase


class Take(msgspec.Struct, frozen=True):
    """Keep the bytes of the announced message; otherwise they are discarded."""

    rank: int
    key: Key
    phase: Phase


class Add(msgspec.Struct, frozen=True):
    """All parts of this member's share have arrived."""

    key: Key


class Complete(msgspec.Struct, frozen=True):
    key: Key


class Fail(msgspec.Struct, frozen=True):
    key: Key
    problem: Problem


class Discard(msgspec.Struct, frozen=True):
    """Free the arrays of a meeting that nobody will ask for any more."""

    key: Key


Effect = Send | Take | Add | Complete | Fail | Discard
