"""A separate network for this process, with a loopback and nothing else. Linux only; as an ordinary user.

A socket stays in the network in which it was created, whoever holds it. So a process outside can listen and
connect inside with sockets that are created inside and handed out (``give_sockets``).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

if sys.platform == "linux":
    import fcntl

MakeSocket = Callable[[], socket.socket]

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1
_ONE_MORE = b"s"
_IN_EVERY_NETWORK = {
    "lo", "sit0", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6tnl0", "ip6gre0", "ip6_vti0",
}  # fmt: skip
"""All but the first of these lead nowhere: where their modules are loaded, Linux creates them in each network
(net.core.fb_tunnels_only_for_init_net)."""


def enter() -> None:
    """Enters a new network; call it with a single thread. Raises ``OSError`` if the system does not allow it.

    The user stays the same, with all their files and graphics cards; only the network changes.
    """
    if sys.platform == "linux":
        user, group = os.geteuid(), os.getegid()
        try:
            # Root enters its own user namespace, too, and has no rights over the laptop inside.
            _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        except PermissionError:
            _unshare(_CLONE_NEWNET)  # Allowed only to an administrator.
        else:
            # Without this, an ordinary user may not map its own group (user_namespaces(7)).
            Path("/proc/self/setgroups").write_bytes(b"deny")
            Path("/proc/self/uid_map").write_bytes(b"%d %d 1" % (user, user))
            Path("/proc/self/gid_map").write_bytes(b"%d %d 1" % (group, group))
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    else:
        raise OSError(errno.ENOSYS, "Only Linux has network namespaces")


def give_sockets(giving: socket.socket) -> None:
    """Answers each byte received with a new TCP socket of this process's network. Returns when the other end
    closes."""
    with contextlib.suppress(OSError), giving:
        while giving.recv(1):
            with socket.socket() as made:
                if sys.platform != "win32":
                    socket.send_fds(giving, [_ONE_MORE], [made.fileno()])


def socket_maker(asking: socket.socket) -> MakeSocket:
    """Returns a function that gets a new socket from ``give_sockets`` at the other end of ``asking``.

    For one thread at a time. The function raises ``OSError`` once the other end is gone.
    """

    def make() -> socket.socket:
        asking.sendall(_ONE_MORE)
        fds: list[int] = []
        if sys.platform != "win32":
            _, fds, _, _ = socket.recv_fds(asking, 1, 1)
        if not fds:
            raise ConnectionError("the process that makes sockets inside has ended")
        return socket.socket(fileno=fds[0])

    return make


def is_apart(pid: int) -> bool:
    """Whether the process's network differs from ours and has no way out.

    Raises ``OSError`` if it cannot be read.
    """
    theirs, ours = (Path(f"/proc/{each}/ns/net").readlink() for each in (pid, "self"))
    devices = Path(f"/proc/{pid}/net/dev").read_text(encoding="utf-8").splitlines()[2:]
    return theirs != ours and {line.partition(":")[0].strip() for line in devices} <= _IN_EVERY_NETWORK


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
