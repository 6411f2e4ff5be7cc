"""One pairing: its phases with their data, its events and effects. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from core.home.certificate import fingerprint
from core.net.address import Address
from core.pairing.code import Transcript
from core.pairing.messages import NoteWord
from core.pairing.throttle import RetryDelay
from core.vocabulary.errors import Problem
from core.vocabulary.events import PairingAnswered, PairingBegan, PairingCodeShown, PairingEnded
from core.vocabulary.ids import DeviceId

Role = Literal["initiator", "responder"]
Connection = int
"""The driver's number for one plain connection."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each step may take, in seconds."""

    handshake_s: float = 5.0
    """A stranger that has not identified itself by then is disconnected."""
    code_s: float = 10.0
    """Time from the click to the code."""
    answer_s: float = 60.0
    """For both people to compare."""
    hold_s: float = 120.0
    """How long TLS accepts the peer's certificate after our *Same*."""
    proof_s: float = 20.0


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class OwnSide:
    """This device, as it introduces itself."""

    cert: bytes
    name: str

    @property
    def fp(self) -> bytes:
        return fingerprint(self.cert)


@dataclass(frozen=True, slots=True)
class OtherSide:
    """The other device, as it introduced itself. ``port`` is None where it called us."""

    cert: bytes
    name: str
    host: str
    port: int | None = None

    @property
    def fp(self) -> bytes:
        return fingerprint(self.cert)

    @property
    def device(self) -> DeviceId:
        return DeviceId(self.fp.hex())


@dataclass(frozen=True, slots=True)
class Target:
    """The device that the user clicked. ``name`` is a hint until the other side has introduced itself."""

    address: Address
    name: str


@dataclass(frozen=True, slots=True)
class Idle:
    """No pairing under way."""


@dataclass(frozen=True, slots=True)
class Dialling:
    """Initiator: the plain connection is being opened."""

    target: Target
    sid: bytes
    nonce: bytes
    deadline_s: float


@dataclass(frozen=True, slots=True)
class AwaitM2:
    """Initiator: M1 is sent."""

    target: Target
    connection: Connection
    sid: bytes
    nonce: bytes
    m1: bytes
    deadline_s: float


@dataclass(frozen=True, slots=True)
class Yielded:
    """Both clicked at once and the other side has the lower fingerprint: wait for its call."""

    target: Target
    deadline_s: float


@dataclass(frozen=True, slots=True)
class AwaitM4:
    """Initiator: M3 is sent; the responder's nonce must match ``commit``."""

    connection: Connection
    peer: OtherSide
    nonce: bytes
    m1: bytes
    m2: bytes
    commit: bytes
    deadline_s: float


@dataclass(frozen=True, slots=True)
class AwaitM3:
    """Responder: M2 is sent; our nonce stays secret until the initiator's is here."""

    connection: Connection
    peer: OtherSide
    nonce: bytes
    m1: bytes
    m2: bytes
    deadline_s: float
    outgoing: bool
    """Our user clicked too (glare): failures count as our own attempts."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """The code is on both screens. ``held_until_s``: set by our *Same*; the peer's pin is held until then."""

    connection: Connection
    peer: OtherSide
    role: Role
    transcript: Transcript
    deadline_s: float
    outgoing: bool
    theirs: bool = False
    held_until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Proving:
    """Both said *Same*: the initiator opens mutual TLS, each side sends PAIR_OK."""

    connection: Connection
    peer: OtherSide
    role: Role
    transcript: Transcript
    deadline_s: float
    held_until_s: float
    outgoing: bool


Phase = Idle | Dialling | AwaitM2 | Yielded | AwaitM4 | AwaitM3 | Comparing | Proving


@dataclass(frozen=True, slots=True)
class PairingState:
    """The whole machine: one session at a time, and the pauses after failures.

    Calls from strangers and our user's own attempts are counted separately, or a stranger could lock our user
    out.
    """

    me: OwnSide
    phase: Phase = Idle()
    calls: RetryDelay = field(default_factory=RetryDelay)
    attempts: RetryDelay = field(default_factory=RetryDelay)
    limits: Limits = LIMITS

    @property
    def deadline_s(self) -> float | None:
        return None if isinstance(self.phase, Idle) else self.phase.deadline_s

    def held(self, now_s: float) -> OtherSide | None:
        """The peer whose certificate TLS accepts for the proof, before it is stored."""
        match self.phase:
            case Comparing(peer=peer, held_until_s=until_s) | Proving(peer=peer, held_until_s=until_s):
                return peer if until_s is not None and now_s < until_s else None
        return None


# --- events -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """Our user clicked Pair. ``sid`` and ``nonce`` are fresh from the system's generator."""

    target: Target
    sid: bytes
    nonce: bytes


@dataclass(frozen=True, slots=True)
class Dialled:
    connection: Connection


@dataclass(frozen=True, slots=True)
class DialFailed:
    problem: Problem


@dataclass(frozen=True, slots=True)
class StrangerSpoke:
    """The first frame of an incoming connection. ``nonce`` is fresh, used if this becomes a session."""

    connection: Connection
    host: str
    body: bytes
    nonce: bytes


@dataclass(frozen=True, slots=True)
class FrameCame:
    """A later frame of any connection."""

    connection: Connection
    body: bytes


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """A connection closed, broke, or sent an invalid frame (``problem``)."""

    connection: Connection
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """Our user compared the codes."""

    same: bool


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Our user gave up."""


@dataclass(frozen=True, slots=True)
class Proved:
    """PAIR_OK was sent and an equal one received, over mutual TLS. ``port``: where the peer listens."""

    port: int


@dataclass(frozen=True, slots=True)
class ProofFailed:
    problem: Problem


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A deadline may have passed."""


Input = (
    Started
    | Dialled
    | DialFailed
    | StrangerSpoke
    | FrameCame
    | ConnectionLost
    | Answered
    | Cancelled
    | Proved
    | ProofFailed
    | TimePassed
)


# --- events for people; the node stores the pin of ``Paired`` and passes the others on --------------------


@dataclass(frozen=True, slots=True)
class Paired:
    """Authenticated: now, and only now, ``cert`` (DER) may be stored as a pin."""

    device: DeviceId
    cert: bytes
    name: str
    address: Address


Event = PairingBegan | PairingCodeShown | PairingAnswered | Paired | PairingEnded


# --- effects ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a plain connection."""

    address: Address


@dataclass(frozen=True, slots=True)
class Send:
    connection: Connection
    body: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """Close after queued data has gone out."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class Refuse:
    """Tell a stranger why not, and close. Only the log records it."""

    connection: Connection
    note: NoteWord
    why: str


@dataclass(frozen=True, slots=True)
class Prove:
    """Open mutual TLS to ``address`` with ``peer`` as the only pin, and exchange PAIR_OK."""

    peer: OtherSide
    address: Address
    proof: bytes


@dataclass(frozen=True, slots=True)
class Tell:
    """An event for the user."""

    event: Event


Effect = Dial | Send | Close | Refuse | Prove | Tell
