"""Unsent data is kept."""

from __future__ import annotations

import socket
import threading
import time

from core.exchange import keys
from core.exchange.keys import Keyring
from core.net.tls_stream import TlsStream

LIMIT_S = 30.0
MANY = 4 * 2**20
"""Bytes: more than the sockets between the two hold."""


def test_what_the_network_does_not_take_at_once_goes_before_what_is_written_next() -> None:
    own, peer = keys.make(), keys.make()
    near, far = socket.socketpair()
    sending = TlsStream(near, Keyring(own, {1: peer.cert_der}).client(1), is_server=False)
    receiving = TlsStream(far, Keyring(peer, {0: own.cert_der}).server, is_server=True)
    until_s = time.monotonic() + LIMIT_S
    answering = threading.Thread(target=receiving.handshake, args=(until_s,))
    answering.start()
    sending.handshake(until_s)
    answering.join()
    came = bytearray(MANY + 5)
    try:
        sending.write_at_once(b"a" * MANY)
        behind = sending.is_behind
        reading = threading.Thread(target=receiving.read_exactly, args=(memoryview(came),))
        reading.start()
        sending.write(b"after")
        reading.join(LIMIT_S)
        assert (behind, sending.is_behind) == (True, False)
    finally:
        sending.end()
        receiving.end()
    assert came == b"a" * MANY + b"after"
