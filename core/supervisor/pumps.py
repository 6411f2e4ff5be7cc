"""Carries bytes between pipes and sockets, a thread each, where a selector can wait for sockets only.

That is Windows, but nothing here is specific to it, so tests of trainers can use this on every system.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable

_CHUNK = 65536


def from_pipe(fd: int, name: str) -> int:
    """A socket's descriptor that delivers the output of the pipe ``fd``. Takes ownership of ``fd``."""
    return _start(_carry_out, fd, name)


def to_pipe(fd: int, name: str) -> int:
    """A socket's descriptor that accepts input for the pipe ``fd``. Takes ownership of ``fd``."""
    return _start(_carry_in, fd, name)


def death_of(process: subprocess.Popen[bytes]) -> int:
    """A socket's descriptor that reaches its end when ``process`` does."""

    def wait(fd: int, end: socket.socket) -> None:
        with end:
            process.wait()

    return _start(wait, -1, "death")


def _start(carry: Callable[[int, socket.socket], None], fd: int, name: str) -> int:
    ours, theirs = socket.socketpair()
    threading.Thread(target=carry, args=(fd, theirs), name=f"pump {name}", daemon=True).start()
    return ours.detach()


def _carry_out(fd: int, end: socket.socket) -> None:
    try:
        while data := os.read(fd, _CHUNK):
            end.sendall(data)  # blocks while nobody reads: the pipe fills, as it would without us
    except OSError:
        pass  # The other side is gone.
    finally:
        end.close()
        os.close(fd)


def _carry_in(fd: int, end: socket.socket) -> None:
    try:
        while data := end.recv(_CHUNK):
            while data:
                data = data[os.write(fd, data) :]
    except OSError:
        pass  # The trainer died.
    finally:
        end.close()
        os.close(fd)
