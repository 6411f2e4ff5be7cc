"""Accepts a member's incoming connections. One thread listens; a few more authenticate callers."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType

from core.exchange import handshake
from core.exchange.frames import MemberHello
from core.exchange.handshake import MemberConnection
from core.exchange.keys import Keyring
from core.net.address import host_of
from core.net.strangers import Guest, Strangers
from core.net.tls_stream import Sockets

AT_ONCE_FROM_ONE = 8
"""Limit of callers from one address that are not in a session yet; further ones are closed at once."""

_log = logging.getLogger(__name__)


class Acceptor:
    """Accepts members' connections; passes each to ``on_connection``, in a thread of its own.

    ``hello``: the answer to callers. ``listener``: a bound, listening socket, which is closed at the end.
    ``hosts``: addresses of the members, by rank. Places are reserved for these addresses, and for those that
    members have called from.
    """

    def __init__(
        self,
        listener: socket.socket,
        keyring: Keyring,
        hello: MemberHello,
        sockets: Sockets,
        on_connection: Callable[[MemberConnection], None],
        handshake_s: float,
        hosts: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._listener, self._keyring, self._hello = listener, keyring, hello
        self._sockets, self._on_connection, self._handshake_s = sockets, on_connection, handshake_s
        self._lock = threading.Lock()
        self._strangers = Strangers(per_address=AT_ONCE_FROM_ONE)
        self._expected = frozenset(hosts.values())
        self._called_from: dict[int, str] = {}
        self._strangers.keep_places(self._expected)
        self._threads: set[threading.Thread] = set()
        self._thread = threading.Thread(target=self._listen, name="exchange-accept", daemon=True)

    def start(self) -> None:
        # Closing a socket does not wake a blocked accept on every system: poll.
        self._listener.settimeout(0.5)
        self._sockets.add(self._listener)
        self._thread.start()

    def join(self) -> None:
        """Call after closing the sockets."""
        if self._thread.ident is None:
            self._listener.close()
            return
        self._thread.join()
        for thread in self._threads:
            thread.join()

    def _listen(self) -> None:
        try:
            while not self._sockets.is_closed:
                try:
                    sock, address = self._listener.accept()
                except TimeoutError:
                    continue
                except OSError as error:
                    if self._sockets.wait_closed(0):
                        return
                    # Too many open files or a caller that went away: neither stops the listener.
                    _log.warning("a caller could not be accepted: %s", error)
                    self._sockets.wait_closed(0.2)
                    continue
                self._admit(sock, host_of(address))
        finally:
            self._sockets.end(self._listener)

    def _admit(self, sock: socket.socket, host: str) -> None:
        with self._lock:
            guest = self._strangers.admit(host)
        if guest is None:
            sock.close()
            return
        thread = threading.Thread(
            target=self._authenticate, args=(sock, host, guest), name="exchange-handshake", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # out of threads for now: a later caller may get one
            _log.warning("a caller could not be accepted: %s", error)
            sock.close()
            with self._lock:
                guest.leave()
            return
        self._threads = {each for each in self._threads if each.is_alive()} | {thread}

    def _authenticate(self, sock: socket.socket, host: str, guest: Guest) -> None:
        try:
            self._sockets.add(sock)
            connection = handshake.accept(sock, self._keyring, self._hello, self._sockets, self._handshake_s)
            self._keep_places(connection.rank, host)
            # A member that keeps calling counts towards the limit, too.
            self._on_connection(connection)
        except OSError as error:
            _log.debug("a caller from %s was refused: %s", host, error)
        except Exception:
            _log.exception("a caller from %s could not be accepted", host)
        finally:
            with self._lock:
                guest.leave()

    def _keep_places(self, rank: int, host: str) -> None:
        """Reserve places at a member's present address, for when it calls again."""
        with self._lock:
            self._called_from[rank] = host
            self._strangers.keep_places(self._expected.union(self._called_from.values()))
