"""Turns a TCP connection into one with a paired device at its other end. Blocks; each step has a limit."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Collection

from core.net.address import Address
from core.net.tls import CONNECT_S, HANDSHAKE_S
from core.net.tls_stream import Sockets, TlsStream
from core.session import frames
from core.session.frames import MalformedFrame
from core.transfer.words import LANE_CALL, VERSION, LaneCall

FIRST_BYTE = b"\x01"
"""Sent before TLS begins, so that the node's port can tell it from a link."""


def dial(
    address: Address, context: ssl.SSLContext, certificate: bytes, call: LaneCall, sockets: Sockets
) -> TlsStream:
    """Raises ``OSError``. Only the session's start shows whether the call was accepted."""
    sock = socket.create_connection((address.host, address.port), CONNECT_S)
    sockets.add(sock)
    try:
        sock.sendall(FIRST_BYTE)
        stream = _secured(sock, context, sockets, is_server=False)
        _check(stream, [certificate])
        stream.write(frames.encode(call))
        stream.limit(None)
    except BaseException:
        sockets.end(sock)
        raise
    return stream


def accept(
    sock: socket.socket, context: ssl.SSLContext, pins: Collection[bytes], sockets: Sockets
) -> tuple[TlsStream, LaneCall]:
    """Raises ``OSError`` and closes the socket. ``TlsStream.peer_der`` identifies the caller."""
    sockets.add(sock)
    try:
        sock.settimeout(HANDSHAKE_S)
        if sock.recv(1) != FIRST_BYTE:
            raise ConnectionError("another first byte")
        stream = _secured(sock, context, sockets, is_server=True)
        _check(stream, pins)
        try:
            call = frames.read(stream, LANE_CALL)
        except MalformedFrame as error:
            raise ConnectionError(f"no call: {error}") from error
        if call.version != VERSION:
            raise ConnectionError(f"version {call.version}")
        stream.limit(None)
    except BaseException:
        sockets.end(sock)
        raise
    return stream, call


def _secured(sock: socket.socket, context: ssl.SSLContext, sockets: Sockets, *, is_server: bool) -> TlsStream:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = TlsStream(sock, context, is_server=is_server, close=sockets.end)
    stream.handshake(time.monotonic() + HANDSHAKE_S)
    return stream


def _check(stream: TlsStream, pins: Collection[bytes]) -> None:
    """Security invariant: OpenSSL's chain building alone does not make a certificate trusted."""
    if stream.peer_der not in pins:
        raise ConnectionError("the certificate is not pinned")
