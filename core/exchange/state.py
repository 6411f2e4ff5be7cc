"""What members say and know of their meetings: the data that frames, machine and driver share. No I/O.

A *pack* is one array that each member brings; a *meeting* is what becomes of the packs of one key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
import numpy as np

from core.vocabulary.errors import Problem
from core.vocabulary.text import plain

Kind = Literal["sum", "gather"]
Wire = Literal["f32", "bf16", "fp16"]
"""How float32 travels in a sum: as it is, or narrowed. Every other type travels as it is."""
Phase = Literal["part", "total"]
"""A member's own numbers on the way to who adds them; what was added on the way to everybody."""
DTypeName = Literal[
    "float16", "float32", "float64", "complex64", "complex128", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

Address = tuple[str, int]
"""Host and port."""
DTYPE_NAMES: frozenset[str] = frozenset(get_args(DTypeName))
MAX_DIMENSIONS = 16
MAX_PACK_BYTES = 2**34
MAX_WORD = 400
GATHER_BYTES, GATHER_TIMES = 2**30, 64
"""What another member brings to a gather may take so many bytes, or so many times this one's own."""
_U32 = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
_U63 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Key(NamedTuple):
    """Which meeting: the attempt of a generation, the step of an attempt, the pack of a step."""

    generation: _U32
    attempt: _U32
    step: _U63
    pack: _U32


class Call(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a member wants of a meeting: it must be the same on all, but for a gather's first dimension.

    ``word``: the caller's own, which is shown to people: for what, and, after its last " in ", where in its
    program.
    """

    kind: Kind
    dtype: DTypeName
    shape: Annotated[tuple[_U63, ...], msgspec.Meta(max_length=MAX_DIMENSIONS)]
    wire: Wire = "f32"
    word: Annotated[str, msgspec.Meta(max_length=MAX_WORD)] = ""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def is_narrowed(self) -> bool:
        return self.kind == "sum" and self.dtype == "float32" and self.wire != "f32"

    @property
    def wire_dtype(self) -> np.dtype[np.generic]:
        """Of the numbers as they travel; bfloat16 as its 16 bits."""
        if self.is_narrowed:
            return np.dtype(np.uint16 if self.wire == "bf16" else np.float16)
        return np.dtype(self.dtype)

    @property
    def nbytes(self) -> int:
        """As it travels, whole."""
        return self.elements * self.wire_dtype.itemsize

    def fits(self, other: Call) -> bool:
        """Whether another's can be met. A gather may be longer there, but not beyond all measure: whoever
        has a key of this run must not fill this member's memory."""
        if other.kind == "gather" and other.nbytes > max(GATHER_BYTES, GATHER_TIMES * self.nbytes):
            return False
        if self.kind == "gather" == other.kind and self.shape and other.shape:
            ours, theirs = (msgspec.structs.replace(each, shape=each.shape[1:]) for each in (self, other))
            return ours == theirs
        return self == other

    @property
    def purpose(self) -> str:
        return self.word[: -len(" in " + self.place)] if self.place else self.word

    @property
    def place(self) -> str:
        return self.word.rpartition(" in ")[2] if " in " in self.word else ""

    @property
    def numbers(self) -> str:
        narrowed = f" as {self.wire}" if self.is_narrowed else ""
        return f"{self.kind} of {self.dtype} {list(self.shape)}{narrowed}"

    def __str__(self) -> str:
        return f"{plain(self.word, MAX_WORD)} ({self.numbers})" if self.word else f"a {self.numbers}"


def share(elements: int, members: int, rank: int) -> slice:
    """The elements that ``rank`` adds: with one or two members all of them, else about 1/members."""
    if members <= 2:
        return slice(0, elements)
    return slice(elements * rank // members, elements * (rank + 1) // members)


def travelling(call: Call, phase: Phase, sender: int, receiver: int, members: int) -> slice:
    """Which of a flat pack's elements one message carries."""
    if call.kind == "gather":
        return slice(0, call.elements)
    return share(call.elements, members, receiver if phase == "part" else sender)


def message_bytes(call: Call, phase: Phase, sender: int, receiver: int, members: int) -> int:
    part = travelling(call, phase, sender, receiver, members)
    return int((part.stop - part.start) * call.wire_dtype.itemsize)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one member's patience and memory. None of them ends a wait for a member that is merely slow."""

    handshake_s: float = 5.0
    """For all that a caller, who may be anybody, does until it has proved to be a member."""
    alive_s: float = 1.0
    silent_s: float = 10.0
    """After so long without a sign another session is dialled beside the present one."""
    worn_bytes: int = 2**38
    """AES-GCM must not encrypt more than 2^24.5 records of 16 KiB with a key (RFC 8446, 5.5)."""
    early_bytes: int = 256 * 2**20
    """A peer may be ahead: so much of what this member has not come to yet is kept; more waits on the way."""
    early_meetings: int = 1024
    """And of so many meetings, since even an empty one takes room."""


LIMITS = Limits()

Connection = Literal["connected", "dialling", "closed"]


Trouble = Literal["refused", "silent", "unreachable", "no-name", "stranger", "hung-up"]
"""What came of a call. ``stranger``: whoever answers there, or this member in its eyes, has no certificate of
this run. ``hung-up``: it closed the connection."""


@dataclass(frozen=True, slots=True)
class Calls:
    """How calling a peer went since it was connected. ``address`` None: it can't be called, it calls.

    ``since_s``: when the first of the ``tried`` ended, as ``time.monotonic`` counts; ``trouble``: of the
    newest, but a stranger's is kept.
    """

    address: Address | None
    tried: int = 0
    since_s: float = 0.0
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """``session``: the number of the newest one; ``heard_s``: since anything came; ``unconfirmed``: messages
    that are kept for this peer until it confirms them."""

    rank: int
    connection: Connection
    session: int
    heard_s: float
    unconfirmed: int
    calls: Calls


@dataclass(frozen=True, slots=True)
class Waiting:
    """A peer of which a present wait still needs something; all as of when it was asked for.

    ``since_s``: for so long; ``bytes_total``: as far as it is known what will come (a gather's sizes are
    known when they are announced); ``heard_s``: since anything came from it, keep-alives included.
    """

    rank: int
    since_s: float
    bytes_come: int
    bytes_total: int
    connection: Connection
    heard_s: float


@dataclass(frozen=True, slots=True)
class Meeting:
    """``call`` None: others are early, this member has not handed its pack over yet."""

    call: Call | None = None
    announced: Mapping[tuple[int, Phase], Call] = field(default_factory=dict)
    arrived: frozenset[tuple[int, Phase]] = frozenset()
    adding: bool = False
    added: bool = False
    is_over: bool = False
    """Complete or failed: nothing more is taken for it."""


@dataclass(frozen=True, slots=True)
class State:
    """All that one member knows. ``floor``: (generation, attempt) below which everything is old."""

    rank: int
    members: int
    names: tuple[str, ...] = ()
    """Of the members' laptops, by rank."""
    floor: tuple[int, int] = (0, 0)
    meetings: Mapping[Key, Meeting] = field(default_factory=dict)
    taken: frozenset[Key] = frozenset()
    """Of the newest steps: what came to its end, so that a repetition is known as one."""
    newest: tuple[int, int, int] = (0, 0, 0)
    """(generation, attempt, step) of the newest that was taken."""
    left: Mapping[int, Problem] = field(default_factory=dict)
    closed: Problem | None = None

    def name(self, rank: int) -> str:
        return self.names[rank] if self.names else f"member {rank}"


# Events


@dataclass(frozen=True, slots=True)
class HandedOver:
    """This member brought its pack."""

    key: Key
    call: Call


@dataclass(frozen=True, slots=True)
class Announced:
    """The head of a peer's message came; its bytes will follow."""

    rank: int
    key: Key
    phase: Phase
    call: Call


@dataclass(frozen=True, slots=True)
class Arrived:
    """All bytes of a message that was taken are there."""

    rank: int
    key: Key
    phase: Phase


@dataclass(frozen=True, slots=True)
class Added:
    """This member's share is added up."""

    key: Key


@dataclass(frozen=True, slots=True)
class Taken:
    """The caller has the result, or the problem."""

    key: Key


@dataclass(frozen=True, slots=True)
class Regrouped:
    """From here on everything of an earlier (generation, attempt) is old."""

    generation: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Left:
    """A peer said goodbye, or can't be listened to any longer."""

    rank: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class Closed:
    problem: Problem


Event = HandedOver | Announced | Arrived | Added | Taken | Regrouped | Left | Closed

# Effects


@dataclass(frozen=True, slots=True)
class Send:
    rank: int
    key: Key
    phase: Phase


@dataclass(frozen=True, slots=True)
class Take:
    """Keep the bytes of the message that was announced. Without it they are read and thrown away."""

    rank: int
    key: Key
    phase: Phase


@dataclass(frozen=True, slots=True)
class Add:
    """All parts of this member's share are there."""

    key: Key


@dataclass(frozen=True, slots=True)
class Complete:
    key: Key


@dataclass(frozen=True, slots=True)
class Fail:
    key: Key
    problem: Problem


@dataclass(frozen=True, slots=True)
class Forget:
    """Nobody will ask for this meeting any more: its arrays can go."""

    key: Key


Effect = Send | Take | Add | Complete | Fail | Forget
