"""Where user namespaces are forbidden: TensorFlow's libraries listen on the loopback alone.

TensorFlow listens on every address, and nothing can tell it otherwise. So what its libraries call ``bind`` is
another function from here on, in this process's own tables of called functions (System V ABI, AMD64
supplement, 5.2: the global offset table): it puts an address of the loopback where every address was meant.
Linux on x86-64. Other users of the laptop still reach the loopback.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import socket
import struct
import sys
from collections.abc import Iterator
from typing import Any

_LIBRARIES = ("tensorflow", "grpc")
_PT_DYNAMIC = 2
_DT_PLTRELSZ, _DT_STRTAB, _DT_SYMTAB, _DT_RELA, _DT_RELASZ, _DT_JMPREL = 2, 5, 6, 7, 8, 23
_RELA, _SYMBOL = struct.Struct("<QQq"), struct.Struct("<IBBHQQ")
_GLOB_DAT, _JUMP_SLOT = 6, 7


class _Header(ctypes.Structure):
    """Elf64_Phdr."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("offset", "vaddr", "paddr", "filesz", "memsz", "align")),
    ]


class _Loaded(ctypes.Structure):
    """The beginning of dl_phdr_info (dl_iterate_phdr(3))."""

    _fields_ = [
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.POINTER(_Header)),
        ("count", ctypes.c_uint16),
    ]


def is_possible() -> bool:
    return sys.platform == "linux" and platform.machine() == "x86_64"


def listen_at(host: str) -> int:
    """From here on TensorFlow's libraries listen at ``host`` where they would at every address.

    Call it once they are loaded. In how many places it was put; 0: TensorFlow is as open as it was.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    places = [place for base, dynamic in _libraries(libc) for place in _calls_of_bind(base, dynamic)]
    if places:
        code = _put_down(libc, _code(host, ctypes.cast(libc.bind, ctypes.c_void_p).value or 0))
        for place in places:
            page = place & ~(mmap.PAGESIZE - 1)
            if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), 3) != 0:
                raise OSError(ctypes.get_errno(), "TensorFlow's table of functions cannot be written")
            ctypes.c_uint64.from_address(place).value = code
    return len(places)


def _code(host: str, bind: int) -> bytes:
    """``int (int fd, struct sockaddr *address, socklen_t)``, which ends in ``bind``. No Python in it: the
    interpreter's lock may be held by who waits for it."""
    place = socket.inet_aton(host)
    four = b"\x83\x7e\x04\x00" + b"\x75\x2a" + b"\xc7\x46\x04" + place + b"\xeb\x21"  # 0.0.0.0
    six = (  # ::, which becomes ::ffff:host
        b"\x48\x83\x7e\x08\x00" + b"\x75\x14" + b"\x48\x83\x7e\x10\x00" + b"\x75\x0d"
        b"\x66\xc7\x46\x12\xff\xff" + b"\xc7\x46\x14" + place
    )
    return (
        b"\x66\x83\x3e\x02\x75" + bytes([len(four)]) + four  # AF_INET
        + b"\x66\x83\x3e\x0a\x75" + bytes([len(six)]) + six  # AF_INET6
        + b"\x48\xb8" + struct.pack("<Q", bind) + b"\xff\xe0"
    )  # fmt: skip


def _put_down(libc: ctypes.CDLL, code: bytes) -> int:
    """Where it lies from here on, to be run and not to be written."""
    libc.mmap.restype = ctypes.c_void_p
    size = ctypes.c_size_t(mmap.PAGESIZE)
    at = libc.mmap(None, size, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if at is None or at == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "no memory for a function")
    ctypes.memmove(at, code, len(code))
    if libc.mprotect(ctypes.c_void_p(at), size, 5) != 0:
        raise OSError(ctypes.get_errno(), "memory cannot be made to be run")
    return int(at)


def _libraries(libc: ctypes.CDLL) -> list[tuple[int, int]]:
    """Of each of TensorFlow's: where it is loaded, and its dynamic section."""
    found: list[tuple[int, int]] = []

    def look(loaded: Any, size: int, data: object) -> int:
        info = loaded.contents
        name = (info.name or b"").decode(errors="replace")
        if any(word in name for word in _LIBRARIES):
            headers = (info.headers[number] for number in range(info.count))
            found.extend((info.base, info.base + each.vaddr) for each in headers if each.type == _PT_DYNAMIC)
        return 0

    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Loaded), ctypes.c_size_t, ctypes.c_void_p)
    libc.dl_iterate_phdr(call(look), None)
    return found


def _calls_of_bind(base: int, dynamic: int) -> Iterator[int]:
    """Addresses of the entries through which the library calls ``bind``."""
    tags: dict[int, int] = {}
    while (tag := ctypes.c_uint64.from_address(dynamic).value) != 0:
        tags[tag] = ctypes.c_uint64.from_address(dynamic + 8).value
        dynamic += 16
    for table, size in ((_DT_JMPREL, _DT_PLTRELSZ), (_DT_RELA, _DT_RELASZ)):
        if table not in tags or size not in tags:
            continue
        entries = ctypes.string_at(tags[table], tags[size])
        for offset, info, _ in _RELA.iter_unpack(entries):
            if info & 0xFFFFFFFF not in (_GLOB_DAT, _JUMP_SLOT):
                continue
            symbol = ctypes.string_at(tags[_DT_SYMTAB] + (info >> 32) * _SYMBOL.size, _SYMBOL.size)
            if ctypes.string_at(tags[_DT_STRTAB] + _SYMBOL.unpack(symbol)[0]) == b"bind":
                yield base + offset
