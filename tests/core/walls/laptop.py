"""A laptop's valuables, for `attacks`: a home with secrets, another process, services."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_VICTIM = """
import ctypes, os, sys
if len(sys.argv) > 1:  # the interpreter may lie where another user cannot start it
    os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
    ctypes.CDLL(None).prctl(4, 1)
memory = ctypes.create_string_buffer(8)
print(ctypes.addressof(memory), flush=True)
sys.stdin.read()
"""


@contextmanager
def laptop(folder: Path, *, user: int | None = None) -> Iterator[dict[str, Any]]:
    """Targets, all accessible to their user. They are restored at the end. ``user``: their owner."""
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True)
    files = {
        home / ".ssh/id_ed25519": "secret",
        home / ".bashrc": "mine",
        home / "tandem/identity/key.pem": "key",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if user is not None:
        for path in (home, *home.rglob("*")):
            os.chown(path, user, user)
    with ExitStack() as ends:
        victim = ends.enter_context(
            subprocess.Popen(
                [sys.executable, "-S", "-c", _VICTIM, *([str(user)] if user is not None else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "TOKEN": "secret"},
            )
        )
        ends.callback(victim.kill)
        tcp = ends.enter_context(socket.create_server(("0.0.0.0", 0)))
        udp = ends.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        places = {
            "path": str(folder / "s"),
            "abstract": f"\0walls-{os.getpid()}",
            "datagrams": str(folder / "d"),
        }
        for name, place in places.items():
            kind = socket.SOCK_DGRAM if name == "datagrams" else socket.SOCK_STREAM
            sock = ends.enter_context(socket.socket(socket.AF_UNIX, kind))
            sock.bind(place)
            if kind == socket.SOCK_STREAM:
                sock.listen()
            if place[0] == "/":
                Path(place).chmod(0o777)
        libc = ctypes.CDLL(None)
        numbers = {
            "memory": libc.shmget(0, 8, 0o1666),
            "semaphore": libc.semget(0, 1, 0o1666),
            "messages": libc.msgget(0, 0o1666),
        }
        ends.callback(libc.shmctl, numbers["memory"], 0, None)
        ends.callback(libc.semctl, numbers["semaphore"], 0, 0)
        ends.callback(libc.msgctl, numbers["messages"], 0, None)
        queue = f"/walls-{os.getpid()}"
        opened = libc.mq_open(queue.encode(), os.O_CREAT | os.O_RDONLY, 0o666, None)
        assert opened >= 0
        ends.callback(os.close, opened)
        assert victim.stdout is not None
        yield {
            "home": str(home),
            "key": str(home / "tandem/identity/key.pem"),
            "pid": victim.pid,
            "address": int(victim.stdout.readline()),
            "tcp": tcp.getsockname()[1],
            "lan": _own_address(),
            "udp": udp.getsockname()[1],
            "script": __file__,
            "queue": queue,
            **numbers,
            **places,
        }
        assert libc.mq_unlink(queue.encode()) == 0, "a queue is gone"
        assert victim.poll() is None, "the other process was ended"
        assert {path: path.read_text() for path in files} == files


def _own_address() -> str:
    """In a network, if there is one."""
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.2"
        return str(sock.getsockname()[0])
