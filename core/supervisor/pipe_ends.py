"""The ends of a trainer's pipes on each system, for the run thread to wait for, read and write.

POSIX: the pipes' own descriptors. Windows, where only sockets can be waited for: the descriptor of a socket,
with `pumps` carrying the bytes between it and the pipe. Untested on Windows.
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
        """A child's numbers for ``fds``, and the arguments of ``Popen`` that pass them on."""
        handles = [msvcrt.get_osfhandle(fd) for fd in fds]
        for handle in handles:
            os.set_handle_inheritable(handle, True)
        startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": handles})
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        return handles, {"startupinfo": startup, "creationflags": flags}

    def pair() -> tuple[int, int]:
        """Two ends; bytes written to the second can be read from the first."""
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
        """Bytes accepted. Raises ``BlockingIOError``; ``BrokenPipeError`` where nobody reads any more."""
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
        # A new object each time: it must not close the borrowed descriptor.
        end = socket.socket(fileno=fd)
        try:
            yield end
        finally:
            end.detach()

else:

    def handed_on(fds: Sequence[int]) -> tuple[list[int], dict[str, Any]]:
        """A child's numbers for ``fds``, and the arguments of ``Popen`` that pass them on."""
        return list(fds), {"pass_fds": tuple(fds), "start_new_session": True}

    def set_nonblocking(fd: int) -> None:
        os.set_blocking(fd, False)

    pair, read, write, close = os.pipe, os.read, os.write, os.close
