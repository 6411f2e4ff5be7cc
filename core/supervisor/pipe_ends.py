"""The ends of a trainer's pipes, as each system has them: what the run thread waits for, reads and writes.

POSIX: the pipes' own descriptors. Windows, where only sockets can be waited for: the descriptor of a socket,
and `pumps` carries the bytes between it and the pipe. Windows is not tried.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

if sys.platform == "win32":
    import msvcrt

    def handed_on(fds: Sequence[int]) -> tuple[list[int], dict[str, Any]]:
        """By which numbers a child knows ``fds``, and what hands them on: more arguments of ``Popen``."""
        handles = [msvcrt.get_osfhandle(fd) for fd in fds]
        for handle in handles:
            os.set_handle_inheritable(handle, True)
        startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": handles})
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        return handles, {"startupinfo": startup, "creationflags": flags}

    def pair() -> tuple[int, int]:
        """Two ends; what is written to the second can be read from the first."""
        reading, writing = socket.socketpair()
        return reading.detach(), writing.detach()

    def read(fd: int, most: int) -> bytes:
        """``b""`` at the end. Raises ``BlockingIOError`` where nothing has come."""
        with _borrowed(fd) as end:
            try:
                return end.recv(most)
            except ConnectionError:
                return b""

    def write(fd: int, data: bytes) -> int:
        """How much was taken. Raises ``BlockingIOError``; ``BrokenPipeError`` where nobody reads any more."""
        with _borrowed(fd) as end:
            try:
                return end.send(data)
            except ConnectionError as error:
                raise BrokenPipeError(*error.args) from error

    def close(fd: int) -> None:
        socket.close(fd)

    def set_nonblocking(fd: int) -> None:
        with _borrowed(fd) as end:
            end.setblocking(False)

    @contextmanager
    def _borrowed(fd: int) -> Iterator[socket.socket]:
        # Made anew each time: the object must not close what is only lent to it.
        end = socket.socket(fileno=fd)
        try:
            yield end
        finally:
            end.detach()

else:

    def handed_on(fds: Sequence[int]) -> tuple[list[int], dict[str, Any]]:
        """By which numbers a child knows ``fds``, and what hands them on: more arguments of ``Popen``."""
        return list(fds), {"pass_fds": tuple(fds), "start_new_session": True}

    def set_nonblocking(fd: int) -> None:
        os.set_blocking(fd, False)

    pair, read, write, close = os.pipe, os.read, os.write, os.close
