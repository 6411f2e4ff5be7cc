"""Joins a trainer's TensorFlow with those of the run's other members over TLS. In a process of its own.

Inside, each member has an address on the loopback, the same in every member's TF_CONFIG. The relay listens at
those of the others and carries on what TensorFlow calls there; what the others' relays bring, it takes to the
trainer's own address. Outside it listens where the plan says, for members of this run and generation alone.
Threads that block: the trainer's interpreter is another one.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from core.exchange import duplex
from core.exchange.acceptor import Acceptor
from core.exchange.frames import VERSION, MemberHello
from core.exchange.handshake import MemberConnection, Sockets
from core.exchange.keys import Keyring, RunPair
from core.exchange.state import LIMITS
from core.net.address import Address, parse
from core.supervisor.ports import listen_at
from core.trainer.sealed.carrier import Carrier
from core.trainer.sealed.namespace import MakeSocket
from core.trainer.sealed.proxy import PLACE, Proxy
from core.vocabulary.trainer_messages import Seal

PATIENCE_S = 20.0
"""gRPC gives up on a call that is not answered after so long, and makes a new one."""
PAUSE_S = 0.2
_DONT_WAIT: int = getattr(socket, "MSG_DONTWAIT", 0)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Half:
    """The first of the two connections that a peer dials for one of TensorFlow's."""

    connection: MemberConnection
    since_s: float


class Relay:
    """``inside`` makes sockets in the trainer's network. ``check`` is called before anybody is joined, and
    raises where the trainer is not sealed.

    Raises ``TandemError`` for keys that do not fit, ``OSError`` for a taken port.
    """

    def __init__(
        self, run: str, rank: int, seal: Seal, inside: MakeSocket, check: Callable[[], None]
    ) -> None:
        keys = seal.keys
        pins = {other: der for other, der in enumerate(keys.certificates) if other != rank}
        self._keyring = Keyring(RunPair(keys.certificates[rank], keys.private_key), pins)
        self._run, self._rank = run, rank
        self._outside = [parse(text) for text in seal.outside]
        self._places = [parse(text) for text in seal.inside]
        self._downloads = seal.downloads
        self._inside, self._check = inside, check
        self._sockets = Sockets()
        self._lock = threading.Lock()
        self._halves: dict[tuple[int, bytes], _Half] = {}
        self._met: set[int] = set()
        """Ranks that were reached before: who refuses afterwards has gone."""
        self._acceptor = Acceptor(
            listen_at(self._outside[rank]),
            self._keyring,
            self._hello(b"\0" * 8),
            self._sockets,
            self._on_connection,
            LIMITS.handshake_s,
            {other: at.host for other, at in enumerate(self._outside) if other != rank},
        )

    def start(self) -> dict[str, str]:
        """Listen inside and outside. By which programs inside find their way out. Raises ``OSError``."""
        proxy = Proxy(self._new_listener(PLACE), self._sockets) if self._downloads else None
        if proxy is not None:
            proxy.start()
        for rank, place in enumerate(self._places):
            if rank == self._rank:
                continue
            listener = self._new_listener((place.host, place.port))
            self._thread(f"relay-{rank}", partial(self._listen, rank, listener))
        self._acceptor.start()
        return {} if proxy is None else proxy.environment

    def close(self) -> None:
        self._sockets.close()

    # --- what TensorFlow here calls ------------------------------------------------------------------------

    def _listen(self, rank: int, listener: socket.socket) -> None:
        while not self._sockets.is_closed:
            try:
                plain, _ = listener.accept()
                self._sockets.add(plain)
            except OSError as error:
                if not self._sockets.wait_closed(PAUSE_S):
                    _log.warning("TensorFlow's call was not taken: %s", error)
                continue
            self._thread("relay-call", partial(self._carry_on, rank, plain))
        self._sockets.end(listener)

    def _carry_on(self, rank: int, plain: socket.socket) -> None:
        self._check()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until_s = time.monotonic() + PATIENCE_S
        while not _is_gone(plain):
            try:
                session = duplex.dial(
                    _plain(self._outside[rank]),
                    rank,
                    self._keyring,
                    self._hello(secrets.token_bytes(8)),
                    self._sockets,
                    LIMITS.handshake_s,
                )
            except OSError as error:
                _log.debug("member %d was not reached: %s", rank, error)
                # One that was never there is still starting.
                if rank in self._met or time.monotonic() > until_s or self._sockets.wait_closed(PAUSE_S):
                    break
                continue
            self._met.add(rank)
            Carrier(plain, session.sending, session.receiving, self._sockets).start()
            return
        self._sockets.end(plain)

    # --- what the others' TensorFlow calls -----------------------------------------------------------------

    def _on_connection(self, connection: MemberConnection) -> None:
        """Each of the two that belong together comes once, in a thread of its own."""
        self._check()
        key = connection.rank, connection.hello.nonce
        now_s = time.monotonic()
        with self._lock:
            late = [key for key, half in self._halves.items() if now_s - half.since_s > PATIENCE_S]
            lost = [self._halves.pop(each) for each in late]
            other = self._halves.pop(key, None)
            if other is None:
                self._halves[key] = _Half(connection, now_s)
        for half in lost:
            self._sockets.end(half.connection.stream.sock)
        if other is None:
            return
        both = {each.hello.carries: each for each in (other.connection, connection)}
        if len(both) < 2:
            for each in (other.connection, connection):
                self._sockets.end(each.stream.sock)
            return
        self._thread("relay-answer", partial(self._take_in, both["from-caller"], both["to-caller"]))

    def _take_in(self, receiving: MemberConnection, sending: MemberConnection) -> None:
        until_s = time.monotonic() + PATIENCE_S
        place = self._places[self._rank]
        while True:
            plain = self._new_socket()
            try:
                plain.connect((place.host, place.port))
                self._sockets.add(plain)
            except OSError as error:
                plain.close()
                # TensorFlow may not listen yet.
                if time.monotonic() < until_s and not self._sockets.wait_closed(PAUSE_S):
                    continue
                _log.debug("TensorFlow does not answer: %s", error)
                for each in (receiving, sending):
                    self._sockets.end(each.stream.sock)
                return
            break
        # Now that TensorFlow listens for sure.
        self._check()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Carrier(plain, sending.stream, receiving.stream, self._sockets).start()

    # --- both ----------------------------------------------------------------------------------------------

    def _new_listener(self, place: tuple[str, int]) -> socket.socket:
        """Inside."""
        listener = self._new_socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen()
        self._sockets.add(listener)
        return listener

    def _new_socket(self) -> socket.socket:
        with self._lock:
            return self._inside()

    def _hello(self, nonce: bytes) -> MemberHello:
        return MemberHello(
            version=VERSION, run=self._run, rank=self._rank, nonce=nonce, carries="from-caller"
        )

    def _thread(self, name: str, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name=name, daemon=True).start()


def _is_gone(sock: socket.socket) -> bool:
    """Whether the other end has hung up, without having said anything."""
    try:
        return not sock.recv(1, socket.MSG_PEEK | _DONT_WAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _plain(at: Address) -> tuple[str, int]:
    return at.host, at.port
