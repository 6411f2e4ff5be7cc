"""Unsent data is kept, and reading ends in time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from core.exchange import keys
from core.exchange.keys import Keyring
from core.net.tls_stream import TlsStream

LIMIT_S = 30.0
MANY = 4 * 2**20
"""Bytes: more than the sockets between the two hold."""


@contextmanager
def both_ends() -> Iterator[tuple[TlsStream, TlsStream]]:
    own, peer = keys.make(), keys.make()
    near, far = socket.socketpair()
    sending = TlsStream(near, Keyring(own, {1: peer.cert_der}).client(1), is_server=False)
    receiving = TlsStream(far, Keyring(peer, {0: own.cert_der}).server, is_server=True)
    until_s = time.monotonic() + LIMIT_S
    answering = threading.Thread(target=receiving.handshake, args=(until_s,))
    answering.start()
    sending.handshake(until_s)
    answering.join()
    try:
        yield sending, receiving
    finally:
        sending.end()
        receiving.end()


def test_neither_a_deadline_nor_a_limit_of_silence_prolongs_the_other() -> None:
    with both_ends() as (_, receiving):
        began_s = time.monotonic()
        for patience_s, deadline_s in ((0.01, LIMIT_S), (LIMIT_S, 0.01)):
            receiving.limit_silence(patience_s)
            receiving.limit(time.monotonic() + deadline_s)
            with pytest.raises(TimeoutError):
                receiving.read_some(memoryview(bytearray(1)))
        assert time.monotonic() - began_s < LIMIT_S


def test_bytes_not_sent_at_once_go_before_what_is_written_next() -> None:
    came = bytearray(MANY + 5)
    with both_ends() as (sending, receiving):
        sending.write_at_once(b"a" * MANY)
        behind = sending.is_behind
        reading = threading.Thread(target=receiving.read_exactly, args=(memoryview(came),))
        reading.start()
        sending.write(b"after")
        reading.join(LIMIT_S)
        assert (behind, sending.is_behind) == (True, False)
    assert came == b"a" * MANY + b"after"
