"""Carries bytes between pipes and sockets, a thread each, where a selector can wait for sockets only.

That is Windows; nothing here is Windows' own, so that the tests of trainers run with it on every system.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable

_CHUNK = 65536


def from_pipe(fd: int, name: str) -> int:
    """The descriptor of a socket that says what comes out of the pipe ``fd``, which is ours from now on."""
    return _start(_carry_out, fd, name)


def to_pipe(fd: int, name: str) -> int:
    """The descriptor of a socket that takes what is for the pipe ``fd``, which is ours from now on."""
    return _start(_carry_in, fd, name)


def death_of(process: subprocess.Popen[bytes]) -> int:
    """The descriptor of a socket that ends when ``process`` does."""

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
            end.sendall(data)  # waits while nobody reads: the pipe fills, as it would without us
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
