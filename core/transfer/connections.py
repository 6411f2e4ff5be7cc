"""Turns a TCP connection into one with a paired device at its other end. Blocks; each step has a limit."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Collection

from core.net.address import Address
from core.net.tls import CONNECT_S, HANDSHAKE_S
from core.net.tls_stream import Sockets, TlsStream, secured
from core.session import frames
from core.session.frames import MalformedFrame
from core.transfer.words import LANE_CALL, VERSION, LaneCall

FIRST_BYTE = b"\x01"
"""Sent before TLS begins, so that the node's port can tell it from a link."""


def dial(
    address: Address, context: ssl.SSLContext, certificate: bytes, call: LaneCall, sockets: Sockets
) -> TlsStream:
    """Call the device with this ``certificate``. Raises ``OSError``. Returns before the device has accepted
    the call: only the session's start shows that."""
    sock = socket.create_connection((address.host, address.port), CONNECT_S)
    sockets.add(sock)
    try:
        sock.sendall(FIRST_BYTE)
        until_s = time.monotonic() + HANDSHAKE_S
        stream = secured(sock, context, sockets, is_server=False, until_s=until_s)
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
    """Answer a paired device, which ``TlsStream.peer_der`` identifies. Raises ``OSError`` and closes the
    socket for anybody else."""
    sockets.add(sock)
    try:
        sock.settimeout(HANDSHAKE_S)
        if sock.recv(1) != FIRST_BYTE:
            raise ConnectionError("another first byte")
        until_s = time.monotonic() + HANDSHAKE_S
        stream = secured(sock, context, sockets, is_server=True, until_s=until_s)
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


def _check(stream: TlsStream, pins: Collection[bytes]) -> None:
    """Security invariant: OpenSSL's chain building alone does not make a certificate trusted."""
    if stream.peer_der not in pins:
        raise ConnectionError("the certificate is not pinned")
