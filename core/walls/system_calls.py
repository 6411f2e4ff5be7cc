"""System calls that a walled trainer may not make: a seccomp(2) program for each of its threads. Linux.

Landlock covers files and ports. This refuses ways around it: sockets with a path, other processes' memory,
changes of modes and owners, ways to open a connection or a file that its checks do not see.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Sequence
from typing import NamedTuple

_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06  # BPF_LD|W|ABS, BPF_ALU|AND, BPF_JMP|JEQ, BPF_RET
_BIGGER_OR_EQUAL = 0x35
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALL = 0xFFFFFFFF
_X32 = 0x40000000
"""From this number on, x86-64's alternative numbers of the same calls (x32)."""
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_NO_NEW_PRIVILEGES = 38

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_KIND = 0xF
_STREAM, _SEQUENCED = 1, 5
_DATAGRAMS = 2
_TCP, _UDP = 6, 17
_FAST_OPEN = 0x20000000
_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME."""
_SIBLING = 0x8000
"""CLONE_PARENT: the node would be the new process' parent, and keep it as a zombie after the run."""


class Argument(NamedTuple):
    """A condition: the lower 32 bits of argument number ``at``, masked, are one of ``values``."""

    at: int
    mask: int
    values: tuple[int, ...]


Way = Sequence[Argument]
"""Conditions under which a call is allowed, if all of them hold."""


class _Machine(NamedTuple):
    audit: int
    calls: int
    """The number of ``seccomp``."""
    numbers: dict[str, int]


_ANYWHERE = {
    "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432,
    "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442,
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
_MACHINES = {
    "x86_64": _Machine(0xC000003E, 317, {
        "shmget": 29, "shmat": 30, "socket": 41, "sendto": 44, "sendmsg": 46, "socketpair": 53, "clone": 56,
        "semget": 64, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "ptrace": 101, "mount": 165, "mq_open": 240,
        "shmctl": 31, "semop": 65, "semctl": 66, "msgctl": 71, "semtimedop": 220, "mq_unlink": 241,
        "setsockopt": 54, "syslog": 103,
        "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
        "prlimit64": 302, "open_by_handle_at": 304, "sendmmsg": 307, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "bpf": 321, "userfaultfd": 323,
        "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "setpgid": 109, "setsid": 112,
        "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
        "fremovexattr": 199, "inotify_init": 253, "fchownat": 260, "fchmodat": 268, "inotify_init1": 294,
        "fanotify_init": 300, "truncate": 76, "ioctl": 16, "fcntl": 72, "open": 2, "openat": 257,
        "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203,
        "ioprio_set": 251, "migrate_pages": 256, "move_pages": 279, "sched_setattr": 314,
    }),
    "aarch64": _Machine(0xC00000B7, 277, {
        "mount": 40, "unshare": 97, "ptrace": 117, "mq_open": 180, "msgget": 186, "msgrcv": 188,
        "msgsnd": 189, "semget": 190, "shmget": 194, "shmat": 196, "socket": 198, "socketpair": 199,
        "mq_unlink": 181, "msgctl": 187, "semctl": 191, "semtimedop": 192, "semop": 193, "shmctl": 195,
        "setsockopt": 208, "syslog": 116,
        "sendto": 206, "sendmsg": 211, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
        "perf_event_open": 241, "prlimit64": 261, "open_by_handle_at": 265, "setns": 268, "sendmmsg": 269,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "bpf": 280, "userfaultfd": 282,
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
        "fremovexattr": 16, "inotify_init1": 26, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55,
        "setpgid": 154, "setsid": 157, "fanotify_init": 262, "truncate": 45,
        "ioctl": 29, "fcntl": 25, "openat": 56,
        "ioprio_set": 30, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
        "setpriority": 140, "migrate_pages": 238, "move_pages": 239, "sched_setattr": 274,
    }),
}  # fmt: skip


def are_filtered() -> bool:
    """Whether this system can refuse system calls."""
    return sys.platform == "linux" and platform.machine() in _MACHINES and sys.byteorder == "little"


def forbid(*, network: bool) -> None:
    """Install the filter for all threads of this process and everything that they start. Setuid programs no
    longer gain privileges, either.

    ``network``: whether it shares the laptop's network, and is limited to TCP there. Raises ``OSError``.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges()
    filters = program(network=network)
    memory = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filters))
    described = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filters), ctypes.addressof(memory)))
    number = _MACHINES[platform.machine()].calls
    done = libc.syscall(
        ctypes.c_long(number), ctypes.c_long(_SET_MODE_FILTER), ctypes.c_long(_ALL_THREADS), described
    )
    if done != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def no_new_privileges() -> None:
    """Raises ``OSError``."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def program(*, network: bool, machine: str = "") -> list[tuple[int, int, int, int]]:
    """Instructions of classic BPF: anything not named is allowed."""
    machine_of = _MACHINES[machine or platform.machine()]
    numbers = _ANYWHERE | machine_of.numbers
    refused = _ERRNO | errno.EPERM
    found = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, machine_of.audit),
        (_RETURN, 0, 0, refused),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_BIGGER_OR_EQUAL, 0, 1, _X32),
        (_RETURN, 0, 0, refused),
    ]
    for name, number in numbers.items():
        error = _ERRNO | _ERRORS.get(name, errno.EPERM)
        bad = _BAD.get(name)
        block = _block(_ways(network).get(name, ()), error) if bad is None else _unless(bad, error)
        found += [(_EQUAL, 0, len(block), number), *block]
    return [*found, (_RETURN, 0, 0, _ALLOW)]


_BAD = {
    # Requests that file systems accept from any reader of a file or folder: attributes, seals against all
    # changes, new folders of btrfs. Identified by the type in bits 8 to 15: f, btrfs' 0x94, v, X, r.
    "ioctl": Argument(1, 0xFF00, (0x6600, 0x9400, 0x7600, 0x5800, 0x7200)),
    # Leases and delegations, which block others that open the file, and notifications of changes in a folder.
    "fcntl": Argument(1, _ALL, (1024, 1026, 1040)),
    # Landlock before level 3 lets a mere reader truncate a file: O_TRUNC without write access.
    "open": Argument(1, 0o1003, (0o1000, 0o1003)),
    "openat": Argument(2, 0o1003, (0o1000, 0o1003)),
    # TCP_ULP: "smc" turns a socket into one that Landlock no longer treats as TCP, and that still connects.
    "setsockopt": Argument(2, _ALL, (31,)),
}
"""Values of an argument for which an otherwise allowed call is refused."""
_NOT_DONE = 0
"""The call reports success, and nothing was changed."""
_ERRORS = {
    **dict.fromkeys(
        ("io_uring_setup", "clone3", "openat2", "inotify_init", "inotify_init1", "fanotify_init"),
        errno.ENOSYS,
    ),
    "socket": errno.EACCES,
    "ioctl": errno.ENOTTY,
    "setsockopt": errno.ENOPROTOOPT,
    # Landlock lets a process change modes, owners and attributes of every file. `shutil.copy` sets modes.
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), _NOT_DONE),
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr", "setxattrat"), errno.EOPNOTSUPP),
    # A process that leaves the trainer's group would not be ended with it.
    **dict.fromkeys(("setsid", "setpgid"), _NOT_DONE),
}
"""ENOSYS: programs then fall back to the older call. ``clone3`` and ``openat2`` keep their flags where no
filter can read them."""


def _ways(network: bool) -> dict[str, tuple[Way, ...]]:
    """Ways in which calls are allowed although their name is on the list."""
    internet = Argument(0, _ALL, (_INET, _INET6))
    tcp: Way = (internet, Argument(1, _KIND, (_STREAM,)), Argument(2, _ALL, (0, _TCP)))
    udp: Way = (internet, Argument(1, _KIND, (_DATAGRAMS,)), Argument(2, _ALL, (0, _UDP)))
    itself: tuple[Way, ...] = ((Argument(0, _ALL, (0,)),),)
    return {
        # Netlink's first protocol is used to list addresses. Other protocols would load their modules.
        "socket": (
            *([tcp] if network else [tcp, udp]),
            (Argument(0, _ALL, (_NETLINK,)), Argument(2, _ALL, (0,))),
        ),
        # A pair of datagram sockets can be turned into a socket with a path. Pairs of another family (TIPC)
        # would load its module, and reach the network.
        "socketpair": ((Argument(0, _ALL, (_UNIX,)), Argument(1, _KIND, (_STREAM, _SEQUENCED))),),
        "clone": ((Argument(0, _NEW_NAMESPACES | _SIBLING, (0,)),),),
        "prlimit64": itself,
        # Landlock lets every program of this user be slowed down: pinned to one core, or to the lowest
        # priority.
        **dict.fromkeys(
            ("sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr", "move_pages"),
            itself,
        ),
        **dict.fromkeys(("setpriority", "ioprio_set"), ((Argument(1, _ALL, (0,)), Argument(0, 3, (0, 1))),)),
        # Landlock does not see a connection that is opened by sending.
        "sendto": ((Argument(3, _FAST_OPEN, (0,)),),),
        "sendmsg": ((Argument(2, _FAST_OPEN, (0,)),),),
        "sendmmsg": ((Argument(3, _FAST_OPEN, (0,)),),),
    }


def _block(ways: Sequence[Way], refused: int) -> list[tuple[int, int, int, int]]:
    block: list[tuple[int, int, int, int]] = []
    for way in ways:
        rest = [(_RETURN, 0, 0, _ALLOW)]
        for at, mask, values in reversed(way):
            to_next = [
                # Equal: skip the other values. Unequal to the last one: skip this way.
                (_EQUAL, len(values) - place, 0 if place < len(values) else len(rest), value)
                for place, value in enumerate(values, 1)
            ]
            rest = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * at), (_AND, 0, 0, mask), *to_next, *rest]
        block += rest
    return [*block, (_RETURN, 0, 0, refused)]


def _unless(bad: Argument, refused: int) -> list[tuple[int, int, int, int]]:
    count = len(bad.values)
    to_the_end = [(_EQUAL, count - place, 0, value) for place, value in enumerate(bad.values)]
    load = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * bad.at), (_AND, 0, 0, bad.mask)]
    return [*load, *to_the_end, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, refused)]
