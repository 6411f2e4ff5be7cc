"""Every Python with this folder on its path runs this first: Tandem's own modules then see a Windows.

They find neither POSIX' modules nor its names, and `sys.platform` is `win32` for them; Linux equivalents
replace Windows' own. All other modules (Python's library, Qt, TensorFlow) see Linux.
"""

from __future__ import annotations

import asyncio
import builtins
import ctypes
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

OURS = {"app", "core", "tandem_laptops"}
MISSING = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
_POSIX = {
    os: (
        "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK chown fchmod fork forkpty getegid geteuid getgid "
        "getloadavg getpgid getpgrp getuid killpg mkfifo nice pidfd_open sched_getaffinity "
        "sched_setaffinity set_blocking setpgid setsid statvfs uname wait3 wait4 waitid"
    ),
    signal: (
        "SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGSTOP SIGUSR1 SIGUSR2 pause pthread_kill"
    ),
    socket: "AF_NETLINK AF_UNIX SO_PEERCRED SOCK_NONBLOCK recv_fds send_fds",
    select: "epoll kqueue poll",
    asyncio: "open_unix_connection start_unix_server",
    subprocess: "",
    ctypes: "",
    sys: "",
}


class Seen(types.ModuleType):
    """A module as Tandem sees it."""

    def __init__(self, real: types.ModuleType, hidden: Sequence[str], instead: Mapping[str, Any]) -> None:
        super().__init__(real.__name__)
        vars(self).update(_real=real, _hidden=frozenset(hidden), **instead)

    def __getattr__(self, name: str) -> Any:
        mine = vars(self)
        if name in mine["_hidden"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(mine["_real"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_real"], name, value)


class StartupInfo:
    def __init__(self, *, lpAttributeList: dict[str, Any]) -> None:
        self.handles = tuple(lpAttributeList["handle_list"])


def popen(*arguments: Any, **options: Any) -> subprocess.Popen[Any]:
    """A process group stands in for the job object, the one thing without an equivalent here."""
    startup = options.pop("startupinfo", None)
    options.pop("creationflags", 0)
    if options.get("pass_fds"):
        raise ValueError("pass_fds is not supported on Windows")
    if startup is not None:
        options |= {"pass_fds": startup.handles, "start_new_session": True}
    return subprocess.Popen(*arguments, **options)


def no_library(name: str, **_: Any) -> None:
    raise OSError(f"no {name} here")


def not_on_windows(*_: Any) -> None:
    raise NotImplementedError


def locking(fd: int, mode: int, count: int) -> None:
    fcntl.lockf(fd, mode, count, os.lseek(fd, 0, os.SEEK_CUR))


MSVCRT = types.ModuleType("msvcrt")
vars(MSVCRT).update(
    LK_NBLCK=fcntl.LOCK_EX | fcntl.LOCK_NB,
    locking=locking,
    get_osfhandle=lambda fd: fd,
    open_osfhandle=lambda handle, flags: handle,
)
_INSTEAD: dict[types.ModuleType, dict[str, Any]] = {
    os: {"name": "nt", "set_handle_inheritable": os.set_inheritable},
    subprocess: {
        "STARTUPINFO": StartupInfo,
        "CREATE_NEW_PROCESS_GROUP": 0,
        "CREATE_NO_WINDOW": 0,
        "Popen": popen,
    },
    ctypes: {"WinDLL": no_library},
    sys: {"platform": "win32"},
}
SEEN = {real.__name__: Seen(real, names.split(), _INSTEAD.get(real, {})) for real, names in _POSIX.items()}
_import = builtins.__import__


def imported(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> types.ModuleType:
    if name == "psutil" and not hasattr(psutil := _import(name), "BELOW_NORMAL_PRIORITY_CLASS"):
        psutil.BELOW_NORMAL_PRIORITY_CLASS = 10  # type: ignore[attr-defined]
    if str((globals or {}).get("__name__")).partition(".")[0] in OURS and level == 0:
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name == "msvcrt":
            return MSVCRT
        if name in SEEN:
            _import(name, globals, locals, fromlist)  # what it has of submodules
            return SEEN[name]
    return _import(name, globals, locals, fromlist, level)


builtins.__import__ = imported
# Windows' loop waits for sockets only by completed reads, and for no signals.
for _method in ("add_reader", "add_writer", "add_signal_handler"):
    setattr(asyncio.SelectorEventLoop, _method, not_on_windows)
