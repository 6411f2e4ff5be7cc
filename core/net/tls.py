"""Mutual TLS 1.3 between devices that pinned each other's certificate. No authority, no names, no resumption.

Security invariant: after every handshake the peer's certificate is compared, byte by byte, with the pins;
OpenSSL's chain building alone is not enough.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Collection, Iterable
from typing import Protocol

from core.vocabulary import units
from core.vocabulary.errors import Problem, TandemError

HANDSHAKE_S = 5.0
CONNECT_S = 5.0
NOBODY_LISTENS = "nobody-listens"
"""Code of the problem where the other machine itself refused the call."""


class KeyPair(Protocol):
    """A certificate (DER) and its private key, wherever that is kept."""

    @property
    def cert_der(self) -> bytes: ...

    def load_into(self, context: ssl.SSLContext) -> None: ...


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def server_context(own: KeyPair, pins: Iterable[bytes]) -> ssl.SSLContext:
    """For accepting the devices with the certificates (DER) ``pins``; with none it accepts nobody."""
    return _context(ssl.PROTOCOL_TLS_SERVER, own, pins)


def client_context(own: KeyPair, pin: bytes) -> ssl.SSLContext:
    """For reaching the one device with the certificate (DER) ``pin``."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, own, [pin])


def _context(protocol: int, own: KeyPair, pins: Iterable[bytes]) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the whole certificate is compared; addresses prove nothing
    context.verify_mode = ssl.CERT_REQUIRED
    # Without it OpenSSL finds a self-signed pin only by its name.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        # Resumption would skip the certificates; and tickets lose a one-way stream's last bytes at close.
        context.num_tickets = 0
    own.load_into(context)
    for pin in pins:
        context.load_verify_locations(cadata=pin)
    return context


def peer_der(tls: ssl.SSLObject | ssl.SSLSocket | asyncio.StreamWriter) -> bytes:
    """The other end's authenticated certificate (DER). Raises ``TandemError`` if there is none."""
    spoken = tls.get_extra_info("ssl_object") if isinstance(tls, asyncio.StreamWriter) else tls
    der: bytes | None = spoken.getpeercert(binary_form=True) if spoken is not None else None
    if not der:
        raise TandemError(
            code="no-certificate",
            what="The other device showed no certificate.",
            fix="Check that the other device runs Tandem, then try again.",
        )
    return der


async def accept(
    sock: socket.socket,
    context: ssl.SSLContext,
    pins: Collection[bytes],
    *,
    handshake_s: float = HANDSHAKE_S,
) -> Streams:
    """Be the TLS server on an accepted socket, for one of ``pins`` (``peer_der`` tells which).

    Raises ``TandemError`` where the handshake fails or takes too long, and closes the socket.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    try:
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            sock,
            ssl=context,
            ssl_handshake_timeout=handshake_s,
            ssl_shutdown_timeout=handshake_s,
        )
    except (OSError, EOFError) as error:
        sock.close()
        raise _refused("A device", error) from error
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    if peer_der(writer) not in pins:
        transport.abort()
        raise _refused("A device", "another certificate than a pinned one")
    return reader, writer


async def connect(
    host: str, port: int, context: ssl.SSLContext, pin: bytes, *, handshake_s: float = HANDSHAKE_S
) -> Streams:
    """Connect to the device with the certificate ``pin`` at an address.

    With TLS 1.3 this returns before the other end has checked our certificate: say *connected* only after its
    first message. Raises ``TandemError``.
    """
    address = f"{host} port {port}"
    try:
        async with asyncio.timeout(CONNECT_S + handshake_s):
            reader, writer = await asyncio.open_connection(
                host,
                port,
                ssl=context,
                server_hostname="",
                ssl_handshake_timeout=handshake_s,
                ssl_shutdown_timeout=handshake_s,
            )
    except TimeoutError as error:
        raise TandemError(
            code="unreachable",
            what=f"No answer from {address} within {units.duration(CONNECT_S + handshake_s)}.",
            fix="Check that Tandem is open there and that both laptops are on the same network.",
        ) from error
    except ssl.SSLError as error:
        raise _refused(f"The device at {address}", error) from error
    except ConnectionRefusedError as error:
        raise TandemError(
            code=NOBODY_LISTENS,
            what=f"Tandem is not open at {address}: nothing listens there.",
            fix="Open Tandem there; if it is open, check the firewall.",
        ) from error
    except (OSError, EOFError) as error:
        raise TandemError.of(unreachable(address, reason(error))) from error
    if peer_der(writer) != pin:
        writer.transport.abort()
        raise _refused(f"The device at {address}", "another certificate than the pinned one")
    return reader, writer


def reason(error: Exception) -> str:
    """Why a connection could not be made: ``No route to host``."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    # asyncio replaces the system's words by its own, with the address as a tuple.
    if error.errno is not None and error.strerror.startswith("Connect call failed"):
        return os.strerror(error.errno)
    return error.strerror


def unreachable(address: str, why: str) -> Problem:
    return Problem(
        code="unreachable",
        what=f"{address} can't be reached ({why}).",
        fix="Check that Tandem is open there, that both share a network, and that no firewall blocks it.",
    )


def _refused(who: str, why: object) -> TandemError:
    return TandemError(
        code="wrong-certificate",
        what=f"{who} is not the paired device, or has not paired with this one.",
        fix="If both are yours, pair them again.",
        detail=str(why),
    )
