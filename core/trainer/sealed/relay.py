"""Connects a trainer's TensorFlow with the other members' over TLS. In a process of its own.

Inside, each member has an address on the loopback, the same in every member's TF_CONFIG. The relay listens at
the other members' addresses and forwards what TensorFlow sends there; connections from their relays go to the
trainer's own address. Outside it listens where the plan says, only for members of this run and generation.
Blocking threads: the trainer has a separate interpreter.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from functools import partial

from core.exchange import handshake
from core.exchange.acceptor import Acceptor
from core.exchange.frames import VERSION, MemberHello
from core.exchange.handshake import MemberConnection
from core.exchange.keys import Keyring, RunPair
from core.exchange.state import LIMITS
from core.net.address import Address, parse
from core.net.tls_stream import Sockets, TlsStream
from core.session.halves import Halves
from core.session.interface import ConnectionPair
from core.supervisor.ports import listen_at
from core.trainer.sealed.carrier import Carrier
from core.trainer.sealed.namespace import MakeSocket
from core.trainer.sealed.proxy import PLACE, Proxy
from core.vocabulary.trainer_messages import Seal

PATIENCE_S = 20.0
"""gRPC gives up an unanswered connection after this long, and opens a new one."""
PAUSE_S = 0.2
MOST_HALVES = 64
"""TensorFlow may open many connections to a member at once."""
_DONT_WAIT: int = getattr(socket, "MSG_DONTWAIT", 0)
_log = logging.getLogger(__name__)


class Relay:
    """``inside`` creates sockets in the trainer's network. ``check`` is called before anybody is connected,
    and raises if the trainer is not sealed.

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
        self._halves = {other: Halves(MOST_HALVES) for other in pins}
        self._reached: set[int] = set()
        """Ranks that were reached before: a member that refuses afterwards has gone."""
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
        """Listens inside and outside. Returns the variables for programs inside. Raises ``OSError``."""
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

    # --- connections of this trainer's TensorFlow ----------------------------------------------------------

    def _listen(self, rank: int, listener: socket.socket) -> None:
        while not self._sockets.is_closed:
            try:
                plain, _ = listener.accept()
                self._sockets.add(plain)
            except OSError as error:
                if not self._sockets.wait_closed(PAUSE_S):
                    _log.warning("TensorFlow's connection was not accepted: %s", error)
                continue
            self._thread("relay-call", partial(self._connect_out, rank, plain))
        self._sockets.end(listener)

    def _connect_out(self, rank: int, plain: socket.socket) -> None:
        self._check()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until_s = time.monotonic() + PATIENCE_S
        while not _is_gone(plain):
            try:
                sending, receiving = handshake.dial_both(
                    _host_port(self._outside[rank]),
                    rank,
                    self._keyring,
                    self._hello(secrets.token_bytes(8)),
                    self._sockets,
                    LIMITS.handshake_s,
                )
            except OSError as error:
                _log.debug("member %d was not reached: %s", rank, error)
                # A member that was never reached is still starting.
                if rank in self._reached or time.monotonic() > until_s or self._sockets.wait_closed(PAUSE_S):
                    break
                continue
            self._reached.add(rank)
            Carrier(plain, sending, receiving, self._sockets).start()
            return
        self._sockets.end(plain)

    # --- connections of the others' TensorFlow -------------------------------------------------------------

    def _on_connection(self, connection: MemberConnection) -> None:
        """Called for each of a pair's two connections, on its own thread."""
        self._check()
        halves, hello = self._halves[connection.rank], connection.hello
        if pair := halves.add(hello.nonce, hello.carries, connection.stream):
            self._thread("relay-answer", partial(self._connect_in, pair))

    def _connect_in(self, pair: ConnectionPair) -> None:
        sending, receiving = pair.sending, pair.receiving
        assert isinstance(sending, TlsStream) and isinstance(receiving, TlsStream)
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
                pair.end()
                return
            break
        self._check()  # Again: only now is TensorFlow sure to listen.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Carrier(plain, sending, receiving, self._sockets).start()

    # --- both ----------------------------------------------------------------------------------------------

    def _new_listener(self, place: tuple[str, int]) -> socket.socket:
        """Opens a listener inside."""
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
    """Whether the other end has hung up without sending anything."""
    try:
        return not sock.recv(1, socket.MSG_PEEK | _DONT_WAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _host_port(at: Address) -> tuple[str, int]:
    return at.host, at.port
