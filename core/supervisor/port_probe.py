"""Tries each peer's TensorFlow port after trainers failed to meet. Blocks, with a limit."""

from __future__ import annotations

import errno
import selectors
import socket
import time

from core.net.address import parse
from core.supervisor.state import Answer
from core.vocabulary.errors import TandemError

_UNDER_WAY = (errno.EINPROGRESS, errno.EWOULDBLOCK)
"""Results of a connection that is still being made; the second is Windows'."""


def place(peer: str) -> str:
    """``host:port`` out of ``device name at host:port``."""
    return peer.rpartition(" at ")[2]


def try_peers(peers: dict[str, str], limit_s: float) -> dict[str, Answer]:
    """Results by task name. Tries all at once, for ``limit_s`` at most."""
    answers: dict[str, Answer] = {}
    waiting = selectors.DefaultSelector()
    sockets: list[socket.socket] = []
    try:
        for task, peer in peers.items():
            try:
                address = parse(place(peer), 0)
                found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
                family, kind, number, _, where = found[0]
                sock = socket.socket(family, kind, number)
                sockets.append(sock)
                sock.setblocking(False)
                status = sock.connect_ex(where)
            except (OSError, TandemError):
                answers[task] = "unreachable"
                continue
            if status in _UNDER_WAY:
                waiting.register(sock, selectors.EVENT_WRITE, task)
            else:
                answers[task] = _answer(status)
        until_s = time.monotonic() + limit_s
        while waiting.get_map() and (left_s := until_s - time.monotonic()) > 0:
            for key, _ in waiting.select(left_s):
                sock = next(each for each in sockets if each.fileno() == key.fd)
                answers[key.data] = _answer(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
                waiting.unregister(sock)
    finally:
        waiting.close()
        for sock in sockets:
            sock.close()
    return {task: answers.get(task, "silent") for task in peers}


def _answer(status: int) -> Answer:
    if status == 0:
        return "answers"
    if status == errno.ECONNREFUSED:
        return "refused"
    return "silent" if status == errno.ETIMEDOUT else "unreachable"
