"""The node's socket on the loopback, protected by a secret: for systems without Unix sockets (Windows).

Port and secret are in a file that only this user can read; the first line of a connection is the secret. A
process of another user reaches the port and no further. Nothing here is specific to Windows, so it is tested
on every system.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket

import psutil

from core.home import private_file
from core.home.home import Home

HOST = "127.0.0.1"
SECRET_BYTES = 32
BACKLOG = 32
SECRET_LIMIT_S = 5.0


def listen(home: Home) -> tuple[socket.socket, bytes]:
    """The listening socket, recorded in the home, and the secret. Blocks. Raises ``OSError``."""
    secret = secrets.token_hex(SECRET_BYTES).encode()
    listening = socket.create_server((HOST, 0), backlog=BACKLOG)
    try:
        listening.setblocking(False)
        port = listening.getsockname()[1]
        private_file.write_atomically(home.loopback, b"%d %s\n" % (port, secret))
    except BaseException:
        listening.close()
        raise
    return listening, secret


def release(home: Home) -> None:
    home.loopback.unlink(missing_ok=True)


async def connect(home: Home, limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the node of ``home``. Raises ``OSError``; ``TandemError`` where others can read the
    secret."""
    told = await asyncio.to_thread(private_file.read_private, home.loopback)
    try:
        port, secret = told.split()
        reader, writer = await asyncio.open_connection(HOST, int(port), limit=limit)
    except ValueError as error:
        raise OSError(f"{home.loopback} names no port") from error
    writer.write(secret + b"\n")
    return reader, writer


def peer_pid(connection: socket.socket) -> int:
    """The process on this laptop that connected. Raises ``OSError`` where the system cannot tell."""
    ends = connection.getpeername(), connection.getsockname()
    try:
        known = psutil.net_connections("tcp4")
    except psutil.Error as error:
        raise OSError(str(error)) from error
    for each in known:
        if (each.laddr, each.raddr) == ends and each.pid is not None:
            return each.pid
    raise OSError("no process is known at the other end")


async def knows_secret(
    reader: asyncio.StreamReader, secret: bytes, *, limit_s: float = SECRET_LIMIT_S
) -> bool:
    """Whether the first line is the secret, within ``limit_s``."""
    try:
        async with asyncio.timeout(limit_s):
            line = await reader.readline()
    except (TimeoutError, ValueError, OSError):
        return False
    return hmac.compare_digest(line.rstrip(b"\n"), secret)
