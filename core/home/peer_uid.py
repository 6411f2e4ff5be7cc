"""Which user is at the other end of a Unix socket, as the system says it."""

from __future__ import annotations

import os
import socket
import struct
import sys

if sys.platform == "linux":

    def peer_uid(connection: socket.socket) -> int:
        """Raises ``OSError`` where the system cannot tell."""
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[1])

elif sys.platform == "darwin":

    def peer_uid(connection: socket.socket) -> int:
        """Raises ``OSError`` where the system cannot tell."""
        # struct xucred {version, uid, …} of sys/ucred.h; Python has no name for LOCAL_PEERCRED.
        return int(struct.unpack_from("2I", connection.getsockopt(0, 0x001, 76))[1])

else:

    def peer_uid(connection: socket.socket) -> int:
        """Raises ``OSError``: this system does not tell."""
        raise OSError("this system does not tell who is at the other end of a socket")


def same_user(connection: socket.socket) -> bool:
    """Whether the other process belongs to the user of this one; False where that cannot be known."""
    try:
        return peer_uid(connection) == os.geteuid()
    except (OSError, AttributeError):
        return False
