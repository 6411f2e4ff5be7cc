"""The handshake from the click to the code: M1 to M4 on either side, and which side leads when both clicked
at once. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from core.home.certificate import check_peer_certificate, out_of_date
from core.net.address import plain_host
from core.pairing import problems
from core.pairing.code import Transcript, commitment, equal, shown
from core.pairing.ending import Step, ended, name_of
from core.pairing.messages import (
    M1,
    M2,
    REFUSALS,
    Note,
    decode,
    decode_m2_or_note,
    decode_nonce_or_note,
    encode,
)
from core.pairing.state import (
    AwaitM2,
    AwaitM3,
    AwaitM4,
    Close,
    Comparing,
    Connection,
    Dial,
    Dialling,
    Effect,
    Idle,
    OtherSide,
    PairingState,
    Refuse,
    Role,
    Send,
    Started,
    StrangerSpoke,
    Target,
    Tell,
    Yielded,
)
from core.vocabulary.errors import IllegalTransition, TandemError
from core.vocabulary.events import PairingBegan, PairingCodeShown


def on_started(pairing: PairingState, started: Started, now_s: float) -> Step:
    if not isinstance(pairing.phase, Idle) or pairing.attempts.left_s(now_s):
        raise IllegalTransition(f"no pairing can start in {pairing.phase}")
    target = started.target
    phase = Dialling(target, started.sid, started.nonce, now_s + pairing.limits.code_s)
    began = PairingBegan(incoming=False, name=target.name, address=str(target.address))
    return replace(pairing, phase=phase), (Dial(target.address), Tell(began))


def on_dialled(pairing: PairingState, connection: Connection) -> Step:
    phase = pairing.phase
    if not isinstance(phase, Dialling):
        return pairing, (Close(connection),)
    body = encode(M1(sid=phase.sid, cert=pairing.me.cert, name=pairing.me.name))
    m1 = hashlib.sha256(body).digest()
    after = AwaitM2(phase.target, connection, phase.sid, phase.nonce, m1, phase.deadline_s)
    return replace(pairing, phase=after), (Send(connection, body),)


def on_m2(pairing: PairingState, phase: AwaitM2, body: bytes, now_s: float) -> Step:
    """The responder introduces itself and commits to its nonce; now ours may be revealed."""
    m2 = decode_m2_or_note(body)
    if isinstance(m2, Note):
        return _on_note_before_m2(pairing, phase, m2, now_s)
    if m2.sid != phase.sid:
        raise TandemError.of(problems.malformed("an answer to another question"))
    peer = _checked_peer(pairing, m2, phase.target.address.host, phase.target.address.port)
    after = AwaitM4(
        connection=phase.connection,
        peer=peer,
        nonce=phase.nonce,
        m1=phase.m1,
        m2=hashlib.sha256(body).digest(),
        commit=m2.commit,
        deadline_s=phase.deadline_s,
    )
    return replace(pairing, phase=after), (Send(phase.connection, phase.nonce),)


def on_m4(pairing: PairingState, phase: AwaitM4, body: bytes, now_s: float) -> Step:
    """The responder reveals its nonce, which must match its commitment."""
    nonce = decode_nonce_or_note(body)
    if isinstance(nonce, Note):
        return on_note(pairing, nonce, now_s)
    me, peer = pairing.me.fp, phase.peer.fp
    if not equal(commitment(peer, me, nonce, phase.m1), phase.commit):
        problem = problems.attack(f"{phase.peer.name} sent a number that breaks its commitment.")
        return ended(pairing, problem, now_s, "refused")
    transcript = Transcript(me, peer, phase.nonce, nonce, phase.m1, phase.m2)
    return _show(pairing, phase, "initiator", transcript, True, now_s)


def on_m3(pairing: PairingState, phase: AwaitM3, body: bytes, now_s: float) -> Step:
    """The initiator reveals its nonce; ours follows, too late for either to influence the code."""
    nonce = decode_nonce_or_note(body)
    if isinstance(nonce, Note):
        return on_note(pairing, nonce, now_s)
    transcript = Transcript(phase.peer.fp, pairing.me.fp, nonce, phase.nonce, phase.m1, phase.m2)
    after, effects = _show(pairing, phase, "responder", transcript, phase.outgoing, now_s)
    return after, (Send(phase.connection, phase.nonce), *effects)


def on_stranger(pairing: PairingState, spoke: StrangerSpoke, now_s: float) -> Step:
    """Handle a caller. A stranger's nonsense is refused and logged; it never reaches the screen."""
    try:
        m1 = decode(spoke.body, M1)
        peer = _checked_peer(pairing, m1, spoke.host)
    except TandemError as error:
        return pairing, (Refuse(spoke.connection, REFUSALS.get(error.code, "refused"), error.what),)
    match pairing.phase:
        case Idle():
            if pairing.calls.left_s(now_s):
                return pairing, (Refuse(spoke.connection, "paused", "pairing pauses after failures"),)
            return _answer(pairing, spoke, m1, peer, now_s, outgoing=False)
        case Dialling(target=target) | AwaitM2(target=target) | Yielded(target=target) if _same(target, peer):
            # Both clicked at once: the lower fingerprint leads.
            if pairing.me.fp < peer.fp:
                return pairing, (Refuse(spoke.connection, "glare", "both sides called; this side leads"),)
            after, effects = _answer(pairing, spoke, m1, peer, now_s, outgoing=True)
            ours = pairing.phase.connection if isinstance(pairing.phase, AwaitM2) else None
            return after, effects if ours is None else (Close(ours), *effects)
    return pairing, (Refuse(spoke.connection, "busy", f"a pairing is under way ({name_of(pairing.phase)})"),)


def on_note(pairing: PairingState, note: Note, now_s: float) -> Step:
    """The other side gives up."""
    name = name_of(pairing.phase)
    match note.note:
        case "different":
            problem = problems.different(False, name)
        case "cancelled":
            problem = problems.cancelled(False, name)
        case "timeout":
            problem = problems.gave_up_waiting(name)
        case "refused" | "version":
            problem = problems.refused(name)
        case _:
            raise TandemError.of(problems.malformed(f"the word {note.note!r} at the wrong time"))
    return ended(pairing, problem, now_s)


def _on_note_before_m2(pairing: PairingState, phase: AwaitM2, note: Note, now_s: float) -> Step:
    name = name_of(phase)
    match note.note:
        case "glare":
            return replace(pairing, phase=Yielded(phase.target, phase.deadline_s)), (Close(phase.connection),)
        case "busy":
            return ended(pairing, problems.busy(name), now_s)
        case "paused":
            return ended(pairing, problems.paused(f"on {name}"), now_s)
        case "self":
            return ended(pairing, problems.itself(), now_s)
    return on_note(pairing, note, now_s)


def _answer(
    pairing: PairingState, spoke: StrangerSpoke, m1: M1, peer: OtherSide, now_s: float, *, outgoing: bool
) -> Step:
    """Act as the responder: send M2, committing to a nonce that stays secret until the initiator's
    arrives."""
    hash_of_m1 = hashlib.sha256(spoke.body).digest()
    commit = commitment(pairing.me.fp, peer.fp, spoke.nonce, hash_of_m1)
    body = encode(M2(sid=m1.sid, cert=pairing.me.cert, name=pairing.me.name, commit=commit))
    phase = AwaitM3(
        connection=spoke.connection,
        peer=peer,
        nonce=spoke.nonce,
        m1=hash_of_m1,
        m2=hashlib.sha256(body).digest(),
        deadline_s=now_s + pairing.limits.code_s,
        outgoing=outgoing,
    )
    effects: list[Effect] = [Send(spoke.connection, body)]
    if not outgoing:
        began = PairingBegan(incoming=True, name=peer.name, address=peer.host, device=peer.device)
        effects.append(Tell(began))
    return replace(pairing, phase=phase), tuple(effects)


def _show(
    pairing: PairingState,
    phase: AwaitM3 | AwaitM4,
    role: Role,
    transcript: Transcript,
    outgoing: bool,
    now_s: float,
) -> Step:
    peer = phase.peer
    after = Comparing(phase.connection, peer, role, transcript, now_s + pairing.limits.answer_s, outgoing)
    code = PairingCodeShown(device=peer.device, name=peer.name, code=shown(transcript.code))
    return replace(pairing, phase=after), (Tell(code),)


def _checked_peer(pairing: PairingState, message: M1 | M2, host: str, port: int | None = None) -> OtherSide:
    check_peer_certificate(message.cert)
    peer = OtherSide(cert=message.cert, name=message.name, host=host, port=port)
    if peer.fp == pairing.me.fp:
        raise TandemError.of(problems.itself())
    if late := out_of_date(message.cert, f"{message.name}'s"):
        raise TandemError.of(late)
    return peer


def _same(target: Target, peer: OtherSide) -> bool:
    """Whether the caller is the device that our user clicked, as far as anyone can tell before the code."""
    return plain_host(target.address.host) == plain_host(peer.host) or target.name == peer.name
