"""Landlock (landlock(7)): limits what this thread, and everything it starts, may open and call. Linux.

It needs no privilege, and applies to root as well. For what each kernel can refuse see `levels`.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Self

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, the same on every architecture."""
_GIVE_VERSION = 1
_BENEATH, _PORT = 1, 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_FIRST = (1 << 13) - 1
"""All rights of the first level."""
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
READ = _EXECUTE | _READ_FILE | _READ_FOLDER
WRITE = _FIRST | _REFER | _TRUNCATE | _IOCTL
LISTEN, CALL = 1 << 0, 1 << 1
_OTHERS_SOCKETS, _OTHERS_PROCESSES = 1 << 0, 1 << 1


def level() -> int:
    """The kernel's Landlock ABI; 0: no Landlock."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE, None, 0, _GIVE_VERSION)
    except OSError:
        return 0


class Ruleset:
    """The accesses to allow; ``restrict`` refuses all others. Raises ``OSError``.

    ``ports``: whether connecting and listening need a rule. ``level``: the highest ABI to use.
    """

    def __init__(self, *, ports: bool, level: int) -> None:
        self._level = level
        files = _FIRST
        for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
            files |= right if self._level >= since else 0
        self._files = files
        self._ports = LISTEN | CALL if ports and self._level >= 4 else 0
        scoped = _OTHERS_SOCKETS | _OTHERS_PROCESSES if self._level >= 6 else 0
        attributes = struct.pack("QQQ", files, self._ports, scoped)
        self._fd = _call(_CREATE, attributes, len(attributes), 0)

    def allow(self, paths: Iterable[str], rights: int, *, links: bool = True, real: bool = False) -> None:
        """Allow each path with everything beneath it. Skips missing and inaccessible paths.

        ``links``: whether a path may be a link. ``real``: none of its parent folders may be one, either.
        """
        if sys.platform != "linux":
            return
        for path in paths:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
            except OSError:
                continue
            try:
                mode, allowed = os.fstat(fd).st_mode, rights & self._files
                if stat.S_ISLNK(mode) or (real and str(Path(f"/proc/self/fd/{fd}").readlink()) != path):
                    continue
                if not stat.S_ISDIR(mode):
                    allowed &= _OF_A_FILE
                self._add(_BENEATH, struct.pack("=Qi", allowed, fd))
            finally:
                os.close(fd)

    def allow_ports(self, ports: Iterable[int], rights: int) -> None:
        if self._ports:
            for port in ports:
                self._add(_PORT, struct.pack("QQ", rights, port))

    def restrict(self) -> None:
        """Apply the rules from here on. The thread needs *no new privileges* first."""
        _call(_RESTRICT, self._fd, 0)

    def _add(self, kind: int, rule: bytes) -> None:
        _call(_ADD, self._fd, kind, rule, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        os.close(self._fd)


def _call(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    widened = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    done = int(libc.syscall(ctypes.c_long(number), *widened))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
