"""How a pairing under way fails: tells the other side and the user, and may count the attempt. Pure."""

from __future__ import annotations

from dataclasses import replace

from core.pairing.messages import Note, NoteWord, encode
from core.pairing.state import (
    AwaitM2,
    AwaitM3,
    AwaitM4,
    Close,
    Comparing,
    Connection,
    Dialling,
    Effect,
    Idle,
    OtherSide,
    PairingState,
    Phase,
    Proving,
    Send,
    Tell,
    Yielded,
)
from core.vocabulary.errors import IllegalTransition, Problem
from core.vocabulary.events import PairingEnded

Step = tuple[PairingState, tuple[Effect, ...]]


def ended(
    pairing: PairingState,
    problem: Problem,
    now_s: float,
    note: NoteWord | None = None,
    *,
    counts: bool = True,
) -> Step:
    """End the session without a pair. ``note``: sent to the other side. ``counts``: this failure counts
    towards the pause.

    Every failure after M2 counts, whoever caused it: a man in the middle sees both codes and would abort
    quietly until they happen to agree.
    """
    phase = pairing.phase
    if isinstance(phase, Idle):
        raise IllegalTransition("no pairing to end")
    effects: list[Effect] = []
    if (connection := connection_of(phase)) is not None:
        if note is not None:
            effects.append(Send(connection, encode(Note(note=note))))
        effects.append(Close(connection))
    peer = peer_of(phase)
    effects.append(Tell(PairingEnded(device=peer.device if peer else None, problem=problem)))
    after = replace(pairing, phase=Idle())
    match phase:
        case AwaitM4() if counts:
            after = replace(after, attempts=pairing.attempts.after_failure(now_s))
        case AwaitM3() | Comparing() | Proving() if counts:
            if phase.outgoing:
                after = replace(after, attempts=pairing.attempts.after_failure(now_s))
            else:
                after = replace(after, calls=pairing.calls.after_failure(now_s))
    return after, tuple(effects)


def connection_of(phase: Phase) -> Connection | None:
    match phase:
        case Idle() | Dialling() | Yielded():
            return None
    return phase.connection


def peer_of(phase: Phase) -> OtherSide | None:
    match phase:
        case AwaitM4(peer=peer) | AwaitM3(peer=peer) | Comparing(peer=peer) | Proving(peer=peer):
            return peer
    return None


def name_of(phase: Phase) -> str:
    """The other side's name, as the user knows it."""
    match phase:
        case Dialling(target=target) | AwaitM2(target=target) | Yielded(target=target):
            return target.name or str(target.address)
    peer = peer_of(phase)
    return peer.name if peer else "the other device"
