"""A malicious script's attempts on the laptop that runs it: ``attack(targets)`` returns what it got.

Needs only Python: also run as a program behind walls, with the targets as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NONE = "nothing"


def attack(targets: dict[str, Any]) -> dict[str, str]:
    """By the attack's name: ``nothing``, or what it got. ``targets``: see `laptop.Laptop`."""
    home, pid = Path(targets["home"]), targets["pid"]
    libc = ctypes.CDLL(None, use_errno=True)

    ioprio_set = 251 if os.uname().machine == "x86_64" else 30

    def native(done: int) -> str:
        if done < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return f"{done}"

    def memory(call: Any) -> str:
        here = ctypes.create_string_buffer(8)
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(here), 8)
        there = (ctypes.c_size_t * 2)(targets["address"], 8)
        return native(call(pid, ctypes.byref(vector), 1, ctypes.byref(there), 1, 0))

    def connect(kind: int, place: Any, family: int = socket.AF_INET) -> str:
        with socket.socket(family, kind) as sock:
            sock.settimeout(5)
            sock.connect(place)
            sock.send(b"in")
            return "connected"

    def fast_open() -> str:
        with socket.socket() as sock:
            sock.settimeout(5)
            return str(sock.sendto(b"in", socket.MSG_FASTOPEN, ("127.0.0.1", targets["tcp"])))

    def by_mptcp() -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as sock:
            sock.settimeout(5)
            sock.connect(("127.0.0.1", targets["tcp"]))
            return "connected"

    def turned() -> str:
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with one, other:
            one.connect(targets["datagrams"])
            return str(one.send(b"in"))

    def pair_of_another_family() -> str:
        """Any error but a refusal: the kernel has looked for the family, and would load its module."""
        for family in (socket.AF_INET, socket.AF_TIPC):
            if libc.socketpair(family, socket.SOCK_STREAM, 0, (ctypes.c_int * 2)()) == 0:
                return f"a pair of {family}"
            if (error := ctypes.get_errno()) != errno.EPERM:
                return f"{family}: {os.strerror(error)}"
        raise PermissionError

    def listen() -> str:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return str(server.getsockname())

    def child(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        if done.returncode:
            raise OSError(done.stderr)
        return done.stdout or "done"

    def module() -> str:
        with Path(targets["script"]).open("rb") as file:
            return native(libc.syscall(313 if os.uname().machine == "x86_64" else 273, file.fileno(), b"", 0))

    def link() -> str:
        os.link(home / ".ssh/id_ed25519", Path.cwd() / "stolen")
        return Path("stolen").read_text()

    def modes_of(change: Callable[[Path], object]) -> str:
        """``change``: may report success, as long as it had no effect."""
        key = home / ".ssh/id_ed25519"
        before = key.lstat().st_mode
        change(key)
        if (after := key.lstat().st_mode) == before:
            raise PermissionError
        return oct(after)

    def by_descriptor(path: Path) -> None:
        Path(f"/proc/self/fd/{os.open(path, os.O_PATH)}").chmod(0o666)

    def readable() -> int:
        """In the script's own folder: an attack that works on this file would work on any."""
        own = Path.cwd() / "readable"
        own.touch()
        return os.open(own, os.O_RDONLY)

    def signal_by_a_socket() -> None:
        """Delivery is not reported to anybody: the laptop's other process has to survive."""
        one, other = socket.socketpair()
        with one, other:
            fcntl.fcntl(one, 10, signal.SIGTERM)  # F_SETSIG
            fcntl.fcntl(one, fcntl.F_SETOWN, pid)
            fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC)
            other.send(b"in")
        raise PermissionError

    def sibling() -> str:
        """CLONE_PARENT: a zombie that only the parent of this process can remove."""
        number = 56 if os.uname().machine == "x86_64" else 220
        made = libc.syscall(number, 0x8000 | signal.SIGCHLD, *map(ctypes.c_long, (0, 0, 0, 0)))
        if made == 0:
            os._exit(0)
        return native(made)

    def leave_the_group() -> str:
        group = os.getpgrp()
        code = "import os\nfor leave in (os.setsid, os.setpgrp):\n  try: leave()\n  except OSError: pass\n"
        code += "print(os.getpgrp())"
        if (left := int(child(sys.executable, "-S", "-c", code))) == group:
            raise PermissionError
        return str(left)

    tries: dict[str, Callable[[], object]] = {
        "read the identity": Path(targets["key"]).read_bytes,
        "read the ssh key": (home / ".ssh/id_ed25519").read_bytes,
        "list the home": lambda: list(home.iterdir()),
        "write .bashrc": lambda: (home / ".bashrc").write_text("evil"),
        "make a file in the home": lambda: (home / "new").write_text("evil"),
        "remove .bashrc": (home / ".bashrc").unlink,
        "move .bashrc": lambda: (home / ".bashrc").rename("stolen"),
        "cut .bashrc": lambda: os.truncate(home / ".bashrc", 0),
        "link the ssh key": link,
        "read it by a child": lambda: child("/bin/cat", str(home / ".ssh/id_ed25519")),
        "read by another's root": Path(f"/proc/{pid}/root{targets['key']}").read_bytes,
        "read another's environment": Path(f"/proc/{pid}/environ").read_bytes,
        "read another's memory": Path(f"/proc/{pid}/mem").open,
        "open another's descriptors": lambda: os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK),
        "process_vm_readv": lambda: memory(libc.process_vm_readv),
        "process_vm_writev": lambda: memory(libc.process_vm_writev),
        "ptrace": lambda: native(libc.ptrace(16, pid, 0, 0)),
        "send SIGTERM": lambda: os.kill(pid, signal.SIGTERM),
        "send SIGTERM by a descriptor": lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGTERM),
        "send SIGTERM by a socket": signal_by_a_socket,
        "look at shared memory": lambda: native(libc.shmctl(targets["memory"], 2, bytes(256))),
        "read a semaphore": lambda: native(libc.semctl(targets["semaphore"], 0, 12)),
        "look at messages": lambda: native(libc.msgctl(targets["messages"], 2, bytes(256))),
        "remove a queue of messages": lambda: native(libc.mq_unlink(targets["queue"].encode())),
        "take a descriptor": lambda: native(libc.syscall(438, os.pidfd_open(pid), 1, 0)),
        "limit another": lambda: native(libc.prlimit(pid, 7, (ctypes.c_long * 2)(0, 0), None)),
        "a socket with a path": lambda: connect(socket.SOCK_STREAM, targets["path"], socket.AF_UNIX),
        "an abstract socket": lambda: connect(socket.SOCK_STREAM, targets["abstract"], socket.AF_UNIX),
        "a pair turned to a path": turned,
        "a pair of another family": pair_of_another_family,
        "a loopback service": lambda: connect(socket.SOCK_STREAM, ("127.0.0.1", targets["tcp"])),
        "a service in the network": lambda: connect(socket.SOCK_STREAM, (targets["lan"], targets["tcp"])),
        "a service by fast open": fast_open,
        "a service by MPTCP": by_mptcp,
        "a datagram": lambda: connect(socket.SOCK_DGRAM, ("127.0.0.1", targets["udp"])),
        "listen": listen,
        "a namespace of its own": lambda: native(libc.unshare(0x10000000)),
        "mount": lambda: native(libc.mount(b"none", b"/mnt", b"tmpfs", 0, None)),
        "io_uring": lambda: native(libc.syscall(425, 1, ctypes.create_string_buffer(120))),
        "load a kernel module": module,
        "let everybody read the ssh key": lambda: modes_of(lambda key: key.chmod(0o666)),
        "let everybody read it by a descriptor": lambda: modes_of(by_descriptor),
        "mark the ssh key": lambda: os.setxattr(home / ".ssh/id_ed25519", "user.mark", b"1"),
        "give the ssh key away": lambda: os.chown(home / ".ssh/id_ed25519", -1, os.getegid()),
        "watch the home": lambda: native(libc.inotify_add_watch(libc.inotify_init1(0), bytes(home), 0xFFF)),
        "outlive the run": leave_the_group,
        "make the node a parent": sibling,
        "mark a file that may be read": lambda: fcntl.ioctl(readable(), 0x40086602, struct.pack("l", 0x40)),
        "hold up who opens it": lambda: fcntl.fcntl(readable(), fcntl.F_SETLEASE, fcntl.F_RDLCK),
        "keep another to one core": lambda: os.sched_setaffinity(pid, {0}),
        "let another run last": lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
        "slow another down": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
        "let another's disk wait": lambda: native(libc.syscall(ioprio_set, 1, pid, 3 << 13)),
        "become another user": lambda: os.setuid(0 if os.getuid() else 1),
    }
    got: dict[str, str] = {}
    for name, attempt in tries.items():
        try:
            got[name] = f"got {str(attempt())[:200]}"
        except (OSError, subprocess.SubprocessError):
            got[name] = NONE
    return got


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(attack(json.loads(sys.argv[1]))))
