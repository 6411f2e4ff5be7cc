"""Drops almost all of root's privileges for good, in a walled trainer whose user is root. Linux.

Otherwise such a trainer could load a kernel module.
"""

from __future__ import annotations

import ctypes
import os
import struct

_DROP = 24
"""PR_CAPBSET_DROP"""
_KEPT = 1 << 0 | 1 << 1 | 1 << 3
"""CAP_CHOWN, CAP_DAC_OVERRIDE and CAP_FOWNER: the run's files may belong to another user. Landlock limits
them."""
_MOST = 64
_VERSION_3 = 0x20080522


def give_up() -> None:
    """Drop the privileges of this thread and everything that it starts from here on. Raises ``OSError``."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = ctypes.create_string_buffer(struct.pack("Ii", _VERSION_3, 0))
    sets = ctypes.create_string_buffer(24)
    _check(libc.capget(header, sets))
    low_effective, low_permitted, _, high_effective, high_permitted, _ = struct.unpack("6I", sets.raw[:24])
    if not low_permitted | high_permitted | low_effective | high_effective:
        return
    for number in range(_MOST):
        if not _KEPT >> number & 1:
            libc.prctl(_DROP, ctypes.c_ulong(number), *map(ctypes.c_ulong, (0, 0, 0)))
    kept = low_permitted & _KEPT
    left = ctypes.create_string_buffer(struct.pack("6I", kept, kept, 0, 0, 0, 0))
    _check(libc.capset(header, left))


def _check(done: int) -> None:
    if done != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
