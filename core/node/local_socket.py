"""Lets a second process on the same home talk to this node: JSON lines, this user only.

Over a Unix socket; where Python has none (Windows), over the loopback (`loopback_socket`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator

from core.home import socket_path
from core.home.home import Home
from core.node import json_lines, loopback_socket
from core.node.conversation import Conversation
from core.runtime.background import Background
from core.supervisor import kinship
from core.vocabulary.answers import Refused
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.node import NodeFace

CLIENTS = 32
CHUNK = 64 * 1024
LAST_WORDS_S = 1.0
OF_A_TRAINER = Problem(
    code="script-commands",
    what="Tandem takes no commands from a script that it is training, or from its programs.",
    fix="Type the command into a terminal of your own.",
)
_log = logging.getLogger(__name__)


class LocalSocket:
    """Listens from ``open`` to ``close``."""

    def __init__(
        self,
        home: Home,
        node: NodeFace,
        *,
        most_clients: int = CLIENTS,
        loopback: bool = sys.platform == "win32",
    ) -> None:
        self._home = home
        self._node = node
        self._most_clients = most_clients
        self._loopback = loopback
        self._secret = b""
        self._server: asyncio.Server | None = None
        self._clients = Background()

    async def open(self) -> None:
        """Raises ``TandemError``: the node works without it, but no second process can reach it."""
        try:
            if self._loopback or sys.platform == "win32":
                listening, self._secret = await asyncio.to_thread(loopback_socket.listen, self._home)
                self._server = await asyncio.start_server(self._on_client, sock=listening, limit=CHUNK)
            else:
                listening = await asyncio.to_thread(_listen, self._home)
                self._server = await asyncio.start_unix_server(self._on_client, sock=listening, limit=CHUNK)
        except OSError as error:
            raise TandemError(
                code="no-local-socket",
                what=f"The socket for other commands on this home can't be made ({error.strerror or error}).",
                fix="Make the home writable, or choose one on an ordinary disk with --home DIR.",
            ) from error

    async def reopen(self) -> None:
        """The socket's file was deleted: listen at a new one. Existing connections continue."""
        if self._server is not None:
            self._server.close()
        await self.open()

    async def close(self) -> None:
        """Clients get the node's last event, within ``LAST_WORDS_S``."""
        if self._server is None:
            return
        self._server.close()
        await self._clients.settle(LAST_WORDS_S if self._node.state.stopped else 0)
        await self._server.wait_closed()
        self._server = None
        release = loopback_socket.release if self._loopback else socket_path.release
        await asyncio.to_thread(release, self._home)

    def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Over the loopback, the first line shows which user it is.
        if not self._loopback and not same_user(writer.get_extra_info("socket")):
            _log.warning("refused another user on the local socket")
            writer.close()
        elif len(self._clients) >= self._most_clients:
            _log.warning("more than %d processes on the local socket", self._most_clients)
            writer.close()
        else:
            self._clients.start("a client on the local socket", self._converse(reader, writer))

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(line: bytes) -> None:
            writer.write(line)
            await writer.drain()

        try:
            if self._loopback and not await loopback_socket.knows_secret(reader, self._secret):
                _log.warning("refused a loopback connection without the home's secret")
                return
            if await asyncio.to_thread(is_trainers, writer.get_extra_info("socket")):
                _log.warning("refused a command from a script that is being trained")
                await write(json_lines.write_reply(None, Refused(problem=OF_A_TRAINER)))
                return
            await Conversation(self._node, write).run(_chunks(reader))
        except Exception:
            _log.exception("a conversation on the local socket broke off")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


if sys.platform != "win32":

    def _listen(home: Home) -> socket.socket:
        path = socket_path.choose(home)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # The folder is 0700; still set the mode before anybody could connect.
            listening.bind(str(path))
            path.chmod(0o600)
            listening.listen(CLIENTS)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
        return listening


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while data := await reader.read(CHUNK):
        yield data


if sys.platform == "linux":

    def _peer(connection: socket.socket) -> tuple[int, int]:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, uid, _ = struct.unpack("3i", credentials)
        return pid, uid

    def peer_uid(connection: socket.socket) -> int:
        """Raises ``OSError`` where the system cannot tell."""
        return _peer(connection)[1]

    def peer_pid(connection: socket.socket) -> int:
        """The process that connected. Raises ``OSError`` where the system cannot tell."""
        return _peer(connection)[0]

elif sys.platform == "darwin":

    def peer_pid(connection: socket.socket) -> int:
        """The process that connected. Raises ``OSError`` where the system cannot tell."""
        # LOCAL_PEERPID of sys/un.h, at the level SOL_LOCAL.
        return int(struct.unpack("i", connection.getsockopt(0, 0x002, 4))[0])

    def peer_uid(connection: socket.socket) -> int:
        """Raises ``OSError`` where the system cannot tell."""
        # struct xucred {version, uid, …} of sys/ucred.h; Python has no name for LOCAL_PEERCRED.
        return int(struct.unpack_from("2I", connection.getsockopt(0, 0x001, 76))[1])

else:

    def peer_uid(connection: socket.socket) -> int:
        """Raises ``OSError``: this system does not tell."""
        raise OSError("this system does not tell who is at the other end of a socket")

    def peer_pid(connection: socket.socket) -> int:
        """Raises ``OSError``: this system does not tell."""
        raise OSError("this system does not tell who is at the other end of a socket")


def is_trainers(connection: socket.socket) -> bool:
    """Whether a script that is being trained is at the other end; True where that cannot be known.

    Security invariant: a script without network access must not make the node use the network for it, nor
    answer this user's questions.
    """
    try:
        over_loopback = connection.family == socket.AF_INET
        find = loopback_socket.peer_pid if over_loopback else peer_pid
        return kinship.is_of_a_trainer(find(connection))
    except OSError:
        return True


def same_user(connection: socket.socket) -> bool:
    """Whether the other process belongs to the user of this one; False where that cannot be known."""
    try:
        return sys.platform != "win32" and peer_uid(connection) == os.geteuid()
    except OSError:
        return False
