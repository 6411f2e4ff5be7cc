"""Two pairing machines at one table: the test carries frames and proofs by hand; the clock stands still."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from core.net.address import Address
from core.pairing import problems
from core.pairing.machine import step
from core.pairing.messages import Note, encode
from core.pairing.state import (
    Answered,
    Close,
    ConnectionLost,
    Dial,
    Dialled,
    Effect,
    Event,
    FrameCame,
    Input,
    OwnSide,
    Paired,
    PairingState,
    ProofFailed,
    Prove,
    Proved,
    Refuse,
    Send,
    Started,
    StrangerSpoke,
    Target,
    Tell,
    TimePassed,
)
from core.vocabulary.errors import Problem
from core.vocabulary.events import PairingCodeShown, PairingEnded
from tests.core.certificates import device_certificate

_CERTIFICATES = sorted(
    (device_certificate(number) for number in range(1, 4)), key=lambda der: OwnSide(der, "").fp
)
LOW, HIGH, OTHER = _CERTIFICATES
"""Certificates in the order of their fingerprints."""

NAMES = {LOW: "Anna's laptop", HIGH: "Bert's laptop", OTHER: "Eve's laptop"}


def nonces() -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        yield number.to_bytes(32, "big")


@dataclass
class Side:
    """One machine with its recorded requests and events."""

    cert: bytes
    host: str
    nonce: Iterator[bytes]
    state: PairingState = field(init=False)
    events: list[Event] = field(default_factory=list)
    refusals: list[Refuse] = field(default_factory=list)
    said_same: bool = False
    now_s: float = 1000.0

    def __post_init__(self) -> None:
        self.state = PairingState(OwnSide(self.cert, NAMES[self.cert]))

    def step(self, happened: Input) -> tuple[Effect, ...]:
        before = self.state
        self.state, effects = step(before, happened, self.now_s)
        assert step(before, happened, self.now_s) == (self.state, effects), "the machine must be pure"
        tells = [effect for effect in effects if isinstance(effect, Tell)]
        assert len(tells) <= 1
        assert not tells or effects[-1] is tells[0], "whoever is told may answer at once"
        self.events += [effect.event for effect in tells]
        self.refusals += [effect for effect in effects if isinstance(effect, Refuse)]
        return effects

    def started(self, other: Side) -> Started:
        target = Target(Address(other.host, 27600), NAMES[other.cert])
        return Started(target, next(self.nonce)[:16], next(self.nonce))

    @property
    def codes(self) -> list[str]:
        return [event.code for event in self.events if isinstance(event, PairingCodeShown)]

    @property
    def paired(self) -> list[Paired]:
        return [event for event in self.events if isinstance(event, Paired)]

    @property
    def failures(self) -> list[Problem]:
        return [event.problem for event in self.events if isinstance(event, PairingEnded) and event.problem]


class Table:
    """Carries each side's requests to the other. ``waiting``: those under way, oldest first."""

    def __init__(self) -> None:
        nonce = nonces()
        self.low, self.high = Side(LOW, "10.0.0.1", nonce), Side(HIGH, "10.0.0.2", nonce)
        self.waiting: list[tuple[Side, Input]] = []
        self._connections = 0
        self._spoken: set[int] = set()

    def other(self, side: Side) -> Side:
        return self.high if side is self.low else self.low

    def give(self, side: Side, happened: Input) -> None:
        if isinstance(happened, Answered) and happened.same:
            side.said_same = True
        for effect in side.step(happened):
            self.carry(side, effect)

    def carry(self, side: Side, effect: Effect) -> None:
        other = self.other(side)
        match effect:
            case Dial():
                self._connections += 1
                self.waiting.append((side, Dialled(self._connections)))
            case Send(connection, body) if connection in self._spoken:
                self.waiting.append((other, FrameCame(connection, body)))
            case Send(connection, body):
                self._spoken.add(connection)
                self.waiting.append((other, StrangerSpoke(connection, side.host, body, next(side.nonce))))
            case Refuse(connection, note):
                self.waiting.append((other, FrameCame(connection, encode(Note(note=note)))))
                self.waiting.append((other, ConnectionLost(connection)))
            case Close(connection):
                self.waiting.append((other, ConnectionLost(connection)))
            case Prove():
                self._prove(side, other, effect)

    def _prove(self, side: Side, other: Side, prove: Prove) -> None:
        """Mutual TLS: each must hold the other's certificate; then both must mean the same pairing."""
        held, mine = other.state.held(other.now_s), side.state.held(side.now_s)
        assert mine is not None
        assert mine.cert == prove.peer.cert
        if held is None or held.cert != side.cert or prove.peer.cert != other.cert:
            self.waiting.append((side, ProofFailed(problems.attack("wrong key"))))
            return
        self.waiting.append((other, Proved(27601)))
        self.waiting.append((side, Proved(27602)))

    def carry_all(self) -> None:
        while self.waiting:
            side, happened = self.waiting.pop(0)
            self.give(side, happened)

    def show_codes(self, leader: Side) -> None:
        self.give(leader, leader.started(self.other(leader)))
        self.carry_all()

    def pass_time(self, seconds: float) -> None:
        for side in (self.low, self.high):
            side.now_s += seconds
        for side in (self.low, self.high):
            self.give(side, TimePassed())
        self.carry_all()
