"""Drives the pairing machine on the core thread: connections, time, the proof over TLS. Owned by a node.

The listener passes it plain connections (``accept_plain``) and, while ``held`` returns a certificate, TLS
connections of that certificate (``accept_proof``). On ``Paired``, the node stores the pin.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Literal

from msgspec import structs

from core.home.identity import Identity
from core.net.address import Address, host_of
from core.net.strangers import Guest, Strangers
from core.net.tls import Streams, client_context, connect, peer_der, reason, unreachable
from core.pairing import problems
from core.pairing.code import NONCE_BYTES
from core.pairing.connection import PlainConnection, answer_proof, prove
from core.pairing.ending import name_of
from core.pairing.machine import step
from core.pairing.messages import MAX_FRAME_BYTES, SID_BYTES, Note, encode
from core.pairing.state import (
    LIMITS,
    Answered,
    Cancelled,
    Close,
    Comparing,
    ConnectionLost,
    Dial,
    DialFailed,
    Dialled,
    Dialling,
    Effect,
    Event,
    FrameCame,
    Idle,
    Input,
    Limits,
    OwnSide,
    PairingState,
    ProofFailed,
    Prove,
    Proved,
    Proving,
    Refuse,
    Send,
    Started,
    StrangerSpoke,
    Target,
    Tell,
    TimePassed,
)
from core.pairing.throttle import Refusals
from core.runtime.background import Background
from core.runtime.timers import Clock, Timers
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import PairingCodeShown
from core.vocabulary.ids import DeviceId
from core.vocabulary.lookalikes import alphabets
from core.vocabulary.text import fit_name

log = logging.getLogger(__name__)


class PairingDriver:
    """All pairing of one node; one session at a time."""

    def __init__(
        self,
        identity: Identity,
        name: str,
        port: Callable[[], int],
        *,
        on_event: Callable[[Event], None],
        on_held: Callable[[], None] = lambda: None,
        known_as: Callable[[str], Collection[DeviceId]] = lambda name: (),
        strangers: Strangers | None = None,
        clock: Clock | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        """``port``: where this node listens. ``on_event`` is called on the loop, and may answer at once.

        ``on_held``: the result of ``held`` has changed. ``known_as``: the trusted devices of that name.
        """
        self.strangers = strangers or Strangers()
        self._clock: Clock = clock or asyncio.get_running_loop()
        self._identity, self._port = identity, port
        self._on_event, self._on_held, self._known_as = on_event, on_held, known_as
        self._state = PairingState(OwnSide(identity.cert_der, fit_name(name)), limits=limits)
        self._refusals = Refusals(self._clock.time, log.info)
        self._sessions: dict[int, PlainConnection] = {}
        self._last_number = 0
        self._background = Background(lambda name, error: self._step(Cancelled()))
        self._dialling: asyncio.Task[None] | None = None
        self._proof: asyncio.Task[None] | None = None
        self._timers: Timers[Literal["deadline"]] = Timers(self._clock, lambda name: self._step(TimePassed()))
        self._held_before: bytes | None = None

    # --- the node's side -----------------------------------------------------------------------------------

    def start(self, address: Address, name: str = "") -> None:
        """Our user clicked Pair. Raises ``TandemError`` while a pairing is under way, or must pause."""
        if not isinstance(self._state.phase, Idle):
            raise problems.pairing_under_way(name_of(self._state.phase))
        if left_s := self._state.attempts.left_s(self._clock.time()):
            raise TandemError.of(problems.paused("here", left_s))
        self._step(Started(Target(address, name), os.urandom(SID_BYTES), os.urandom(NONCE_BYTES)))

    def answer(self, same: bool) -> None:
        """Our user compared the codes. Raises ``TandemError`` where there is nothing to compare."""
        if not isinstance(self._state.phase, Comparing):
            raise problems.nothing_to_answer()
        self._step(Answered(same))

    def cancel(self) -> None:
        """Our user gave up; does nothing without a pairing."""
        self._step(Cancelled())

    def rename(self, name: str) -> None:
        """Use this name from the next pairing on."""
        self._state = replace(self._state, me=OwnSide(self._identity.cert_der, fit_name(name)))

    def held(self) -> bytes | None:
        """A certificate (DER) that TLS must accept besides the trusted ones, for ``accept_proof`` only."""
        peer = self._state.held(self._clock.time())
        return peer.cert if peer else None

    async def close(self) -> None:
        """Cancel the pairing under way and wait until its connections are closed."""
        self._step(Cancelled())
        await self._background.cancel()

    # --- the listener's side -------------------------------------------------------------------------------

    def accept_plain(self, sock: socket.socket, guest: Guest | None = None) -> None:
        """Take over a connection whose first byte (peeked, not read) is 0x00. ``guest``: its place so far."""
        guest = guest or self.strangers.admit(_host(sock))
        if guest is None:
            sock.close()
            return
        self._background.start("answering a stranger", self._answer_stranger(sock, guest))

    async def accept_proof(self, streams: Streams) -> None:
        """Take over a TLS connection whose certificate is ``held``. Closes it before returning."""
        writer = streams[1]
        try:
            phase = self._state.phase
            if (
                self._proof is None
                and isinstance(phase, Comparing | Proving)
                and phase.role == "responder"
                and self.held() == peer_der(writer)
            ):
                self._proof = self._background.start(
                    "answering a proof", self._answer_proof(streams, phase.transcript.proof)
                )
                await asyncio.wait([self._proof])
        finally:
            writer.close()

    # --- the driver ----------------------------------------------------------------------------------------

    def _step(self, happened: Input) -> None:
        self._state, effects = step(self._state, happened, self._clock.time())
        self._set_alarm()
        if self._dialling is not None and not isinstance(self._state.phase, Dialling):
            self._dialling.cancel()  # otherwise it would serve the next attempt
            self._dialling = None
        if self._proof is not None and isinstance(self._state.phase, Idle):
            if self._proof is not asyncio.current_task():
                self._proof.cancel()
            self._proof = None
        if (held := self.held()) != self._held_before:
            self._held_before = held
            self._on_held()
        for effect in effects:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send(number, body):
                if session := self._sessions.get(number):
                    session.send(body)
            case Close(number):
                if session := self._sessions.pop(number, None):
                    session.close()
            case Refuse(number, note, why):
                log.debug("refused a pairing call: %s (%s)", note, why)
                if session := self._sessions.pop(number, None):
                    self._refusals.add(session.host, f"pairing, {note}")
                    session.send(encode(Note(note=note)))
                    session.close()
            case Dial(address):
                self._dialling = self._background.start("dialling for a pairing", self._dial(address))
            case Prove(peer, address, proof):
                self._proof = self._background.start("proving", self._prove(peer.cert, address, proof))
            case Tell(event):
                self._on_event(self._with_warning(event))

    def _with_warning(self, event: Event) -> Event:
        if isinstance(event, PairingCodeShown):
            known = self._known_as(event.name)
            if known and event.device not in known:
                return structs.replace(event, warning=problems.new_key(event.name))
            if not known and (mixed := alphabets(event.name)):
                return structs.replace(event, warning=problems.mixed_name(event.name, mixed))
        return event

    async def _dial(self, address: Address) -> None:
        try:
            streams = await asyncio.open_connection(address.host, address.port, limit=MAX_FRAME_BYTES)
        except (OSError, ValueError) as error:  # ValueError: a host that no resolver accepts
            self._dialling = None
            self._step(DialFailed(unreachable(str(address), reason(error))))
            return
        self._dialling = None
        session = self._session(streams)
        self._background.start("reading a pairing connection", self._read_messages(session))
        self._step(Dialled(session.number))

    async def _answer_stranger(self, sock: socket.socket, guest: Guest) -> None:
        try:
            session = self._session(await asyncio.open_connection(sock=sock, limit=MAX_FRAME_BYTES))
            await self._read_messages(session, guest)
        except OSError:
            sock.close()
        finally:
            guest.leave()

    async def _read_messages(self, session: PlainConnection, guest: Guest | None = None) -> None:
        """Pass a connection's frames to the machine for as long as the machine keeps it."""
        problem: Problem | None = None
        try:
            if guest is not None:
                async with asyncio.timeout(self._state.limits.handshake_s):
                    body = await session.read()
                self._step(StrangerSpoke(session.number, session.host, body, os.urandom(NONCE_BYTES)))
                if session.number in self._sessions:
                    guest.leave()  # no stranger any more: it is the session
            while session.number in self._sessions:
                self._step(FrameCame(session.number, await session.read()))
        except TandemError as error:
            problem = error.problem
        except (OSError, EOFError, TimeoutError) as error:
            log.debug("a pairing connection with %s ended: %r", session.host, error)
        finally:
            self._step(ConnectionLost(session.number, problem))
            self._sessions.pop(session.number, None)
            await session.wait_closed()

    async def _prove(self, pin: bytes, address: Address, proof: bytes) -> None:
        writer: asyncio.StreamWriter | None = None
        try:
            streams = await connect(address.host, address.port, client_context(self._identity, pin), pin)
            writer = streams[1]
            self._step(Proved(await prove(streams, proof, self._port())))
        except TandemError as error:
            problem = error.problem
            if error.code == "wrong-certificate":
                problem = problems.attack("the other device could not prove the key that was compared.")
            self._step(ProofFailed(problem))
        except (OSError, EOFError) as error:
            limit_s = self._state.limits.proof_s
            self._step(ProofFailed(problems.no_proof("The other device", limit_s, repr(error))))
        finally:
            if writer is not None:
                writer.close()

    async def _answer_proof(self, streams: Streams, proof: bytes) -> None:
        try:
            self._step(Proved(await answer_proof(streams, proof, self._port())))
        except TandemError as error:
            if error.code == "pairing-attack":
                self._step(ProofFailed(error.problem))
            else:
                log.info("the device that is being paired connected without a valid proof: %s", error)
        except (OSError, EOFError) as error:
            log.info("the connection for a proof broke: %r", error)
        finally:
            if self._proof is asyncio.current_task():
                self._proof = None

    def _session(self, streams: Streams) -> PlainConnection:
        self._last_number += 1
        session = PlainConnection(self._last_number, *streams)
        self._sessions[session.number] = session
        return session

    def _set_alarm(self) -> None:
        self._timers.cancel("deadline")
        if (deadline_s := self._state.deadline_s) is not None:
            self._timers.set("deadline", deadline_s - self._clock.time())


def _host(sock: socket.socket) -> str:
    try:
        return host_of(sock.getpeername())
    except OSError:
        return ""
