"""Turns a TCP connection into one whose other end is a proven member of this run. Blocks.

Each step has a time limit. No exchange data is sent before TLS has checked the certificate.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

import msgspec

from core.exchange.frames import HELLO, MemberHello
from core.exchange.keys import Keyring
from core.exchange.reach import HandshakeRefused, resolve
from core.exchange.state import LIMITS, Address
from core.net.tls_stream import Sockets, TlsStream, secured
from core.session import frames
from core.session.frames import MalformedFrame

CONNECT_S = 5.0


@dataclass(frozen=True, slots=True)
class MemberConnection:
    """A connection whose other end is a proven member."""

    stream: TlsStream
    rank: int
    hello: MemberHello


def accept(
    sock: socket.socket,
    keyring: Keyring,
    mine: MemberHello,
    sockets: Sockets,
    handshake_s: float = LIMITS.handshake_s,
) -> MemberConnection:
    """Answer a caller's hello. Raises ``OSError`` and closes the socket where the caller is no member.
    ``mine``: this member's version, run, and rank."""
    until_s = time.monotonic() + handshake_s
    try:
        stream = secured(sock, keyring.server, sockets, is_server=True, until_s=until_s)
        rank = keyring.rank_of(stream.peer_der)
        if rank is None:
            raise HandshakeRefused("a certificate that is not pinned")
        theirs = _hello(stream)
        _check(theirs, mine, rank)
        answer = MemberHello(
            version=mine.version, run=mine.run, rank=mine.rank, nonce=theirs.nonce, carries=theirs.carries
        )
        stream.write(frames.encode(answer))
        stream.limit(None)
    except BaseException:
        sockets.end(sock)
        raise
    return MemberConnection(stream, rank, theirs)


def dial(
    address: Address,
    rank: int,
    keyring: Keyring,
    mine: MemberHello,
    sockets: Sockets,
    handshake_s: float = LIMITS.handshake_s,
) -> MemberConnection:
    """Call the member ``rank`` at ``address``. Raises ``OSError``."""
    family, kind, protocol, _, full_address = resolve(address, CONNECT_S)
    sock = socket.socket(family, kind, protocol)
    sockets.add(sock)
    try:
        sock.settimeout(CONNECT_S)
        sock.connect(full_address)
        until_s = time.monotonic() + handshake_s
        stream = secured(sock, keyring.client(rank), sockets, is_server=False, until_s=until_s)
        if keyring.rank_of(stream.peer_der) != rank:
            raise HandshakeRefused("another certificate than the pinned one")
        stream.write(frames.encode(mine))
        # TLS 1.3 tells a caller only now that the peer accepted its certificate.
        theirs = _hello(stream)
        _check(theirs, mine, rank)
        if (theirs.nonce, theirs.carries) != (mine.nonce, mine.carries):
            raise HandshakeRefused("an answer to another call")
        stream.limit(None)
    except BaseException:
        sockets.end(sock)
        raise
    return MemberConnection(stream, rank, theirs)


def dial_both(
    address: Address, rank: int, keyring: Keyring, hello: MemberHello, sockets: Sockets, handshake_s: float
) -> tuple[TlsStream, TlsStream]:
    """The sending and the receiving stream; ``hello`` is sent on the first. Raises ``OSError``."""
    sending = dial(address, rank, keyring, hello, sockets, handshake_s).stream
    back = msgspec.structs.replace(hello, carries="to-caller")
    try:
        return sending, dial(address, rank, keyring, back, sockets, handshake_s).stream
    except BaseException:
        sending.end()
        raise


def _hello(stream: TlsStream) -> MemberHello:
    try:
        return frames.read(stream, HELLO)
    except MalformedFrame as error:
        raise HandshakeRefused(f"no hello: {error}") from error


def _check(theirs: MemberHello, mine: MemberHello, rank: int) -> None:
    if (theirs.version, theirs.run) != (mine.version, mine.run):
        raise HandshakeRefused(f"version {theirs.version} of run {theirs.run!r}")
    if theirs.rank != rank:
        raise HandshakeRefused(f"member {rank} says that it is member {theirs.rank}")
