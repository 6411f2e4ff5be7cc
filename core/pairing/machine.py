"""The protocol without sockets or clocks: ``step(pairing, happened, now_s)`` → new pairing and effects. Pure.

Security invariants: no code before the commitment was checked; our nonce is revealed only after the other
side has committed to its own; ``Paired`` comes only out of ``Proved``, and only after our user's *Same*; one
session at a time. At most one ``Tell``, and last, so that its receiver may answer at once.
"""

from __future__ import annotations

from dataclasses import replace

from core.net.address import Address
from core.pairing import problems
from core.pairing.ending import Step, connection_of, ended, name_of
from core.pairing.handshake import (
    on_dialled,
    on_m2,
    on_m3,
    on_m4,
    on_note,
    on_started,
    on_stranger,
)
from core.pairing.messages import REFUSALS, Note, decode, encode
from core.pairing.state import (
    Answered,
    AwaitM2,
    AwaitM3,
    AwaitM4,
    Cancelled,
    Close,
    Comparing,
    ConnectionLost,
    DialFailed,
    Dialled,
    Dialling,
    FrameCame,
    Idle,
    Input,
    Paired,
    PairingState,
    ProofFailed,
    Prove,
    Proved,
    Proving,
    Send,
    Started,
    StrangerSpoke,
    Tell,
    TimePassed,
    Yielded,
)
from core.pairing.throttle import RetryDelay
from core.vocabulary.errors import TandemError
from core.vocabulary.events import PairingAnswered


def step(pairing: PairingState, happened: Input, now_s: float) -> Step:
    """The next state and effects. Late events of a session that is over change nothing."""
    match happened:
        case Started():
            return on_started(pairing, happened, now_s)
        case Answered(same):
            return _on_answered(pairing, same, now_s)
        case StrangerSpoke():
            return on_stranger(pairing, happened, now_s)
        case Dialled(connection):
            return on_dialled(pairing, connection)
        case FrameCame(connection, body) if connection == connection_of(pairing.phase):
            return _on_frame(pairing, body, now_s)
        case Proved(port):
            return _on_proved(pairing, port, now_s)
        case TimePassed():
            return _on_time(pairing, now_s)
        case Cancelled() if not isinstance(pairing.phase, Idle):
            # Our own user's action is no failed guess. But repeatedly rejected calls must pause: a stranger's
            # would otherwise occupy the screen, and the only session.
            match pairing.phase:
                case AwaitM3(outgoing=outgoing) | Comparing(outgoing=outgoing) | Proving(outgoing=outgoing):
                    called = not outgoing
                case _:
                    called = False
            problem = problems.cancelled(True, name_of(pairing.phase))
            return ended(pairing, problem, now_s, "cancelled", counts=called)
        case DialFailed(problem) if isinstance(pairing.phase, Dialling):
            return ended(pairing, problem, now_s)
        case ProofFailed(problem) if isinstance(pairing.phase, Comparing | Proving):
            return ended(pairing, problem, now_s, "refused")
        case ConnectionLost(connection, problem) if connection == connection_of(pairing.phase):
            if isinstance(pairing.phase, Proving):
                return pairing, ()  # the proof has its own connection and its own limit
            return ended(pairing, problem or problems.lost(name_of(pairing.phase)), now_s, "refused")
    return pairing, ()


def _on_frame(pairing: PairingState, body: bytes, now_s: float) -> Step:
    phase = pairing.phase
    try:
        match phase:
            case AwaitM2():
                return on_m2(pairing, phase, body, now_s)
            case AwaitM3():
                return on_m3(pairing, phase, body, now_s)
            case AwaitM4():
                return on_m4(pairing, phase, body, now_s)
        note = decode(body, Note)
        if isinstance(phase, Comparing) and note.note == "same" and not phase.theirs:
            return _proving(replace(pairing, phase=replace(phase, theirs=True)), now_s)
        return on_note(pairing, note, now_s)
    except TandemError as error:
        return ended(pairing, error.problem, now_s, REFUSALS.get(error.code, "refused"))


def _on_answered(pairing: PairingState, same: bool, now_s: float) -> Step:
    phase = pairing.phase
    if not isinstance(phase, Comparing):
        return pairing, ()
    if not same:
        return ended(pairing, problems.different(True, phase.peer.name), now_s, "different")
    if phase.held_until_s is not None:
        return pairing, ()
    held_until_s = now_s + pairing.limits.hold_s
    after, effects = _proving(replace(pairing, phase=replace(phase, held_until_s=held_until_s)), now_s)
    return after, (Send(phase.connection, encode(Note(note="same"))), *effects, Tell(PairingAnswered()))


def _proving(pairing: PairingState, now_s: float) -> Step:
    """Go on to the proof once both said *Same*; only the initiator dials."""
    phase = pairing.phase
    if not isinstance(phase, Comparing) or not phase.theirs or phase.held_until_s is None:
        return pairing, ()
    after = Proving(
        connection=phase.connection,
        peer=phase.peer,
        role=phase.role,
        transcript=phase.transcript,
        deadline_s=min(now_s + pairing.limits.proof_s, phase.held_until_s),
        held_until_s=phase.held_until_s,
        outgoing=phase.outgoing,
    )
    if phase.role == "responder" or phase.peer.port is None:
        return replace(pairing, phase=after), ()
    address = Address(phase.peer.host, phase.peer.port)
    return replace(pairing, phase=after), (Prove(phase.peer, address, phase.transcript.proof),)


def _on_proved(pairing: PairingState, port: int, now_s: float) -> Step:
    peer = pairing.held(now_s)
    connection = connection_of(pairing.phase)
    if peer is None or connection is None:
        return pairing, ()  # too late, or our user never said Same: nothing may be stored
    address = Address(peer.host, port if peer.port is None else peer.port)
    paired = Paired(device=peer.device, cert=peer.cert, name=peer.name, address=address)
    after = replace(pairing, phase=Idle(), calls=RetryDelay(), attempts=RetryDelay())
    return after, (Close(connection), Tell(paired))


def _on_time(pairing: PairingState, now_s: float) -> Step:
    phase = pairing.phase
    if pairing.deadline_s is None or now_s < pairing.deadline_s:
        return pairing, ()
    name, limits = name_of(phase), pairing.limits
    match phase:
        case Dialling(target=target) | AwaitM2(target=target) | Yielded(target=target):
            problem = problems.no_code(name, str(target.address), limits.code_s)
        case AwaitM3(peer=peer) | AwaitM4(peer=peer):
            problem = problems.no_code(name, peer.host, limits.code_s)
        case Comparing():
            problem = problems.no_answer(phase.held_until_s is None, name, limits.answer_s)
        case _:
            problem = problems.no_proof(name, limits.proof_s)
    return ended(pairing, problem, now_s, "timeout")
