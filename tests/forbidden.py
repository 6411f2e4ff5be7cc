"""Starts a program without permission for its own namespaces: ``python -m tests.forbidden PROGRAM …``.

Uses a system call filter (seccomp(2)), like containers; it also applies to all child processes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_UNSHARE = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000


def forbid() -> None:
    """Applies to this process and all its children."""
    rules = (
        (_LOAD, 0, 0, 0),  # the call's number
        (_EQUAL, 0, 1, _UNSHARE),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(rules), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter of system calls")


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
