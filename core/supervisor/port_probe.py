"""Why trainers did not meet: a connection is tried to each peer's TensorFlow port. Blocks, with a limit."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from typing import Literal

from core.net.address import parse
from core.vocabulary.errors import Problem, TandemError

Answer = Literal["answers", "refused", "silent", "unreachable"]
"""``refused``: the laptop is there but nothing listens on that port. ``silent``: no answer at all."""


def place(peer: str) -> str:
    """``host:port`` out of ``device name at host:port``."""
    return peer.rpartition(" at ")[2]


def try_peers(peers: dict[str, str], limit_s: float) -> dict[str, Answer]:
    """By task name. All at once, for ``limit_s`` at most."""
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
            if status == errno.EINPROGRESS:
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


def verdict(peers: dict[str, str], answers: dict[str, Answer], waited_s: float) -> Problem:
    """The sentence that names who did not come, where, how long was waited, and what to do."""
    missing = {task: answer for task, answer in answers.items() if answer != "answers"}
    waited = f"within {waited_s:.0f} s"
    if not missing:
        return Problem(
            code="never-met",
            what=f"The trainers did not meet {waited}, though every peer's port answers: "
            f"{_list(peers, peers)}.",
            fix="Press Train again. If it comes again, restart Tandem on the laptops named here.",
        )
    what = "; ".join(f"{task} ({peers[task]}) {_SAYING[answer]}" for task, answer in missing.items())
    reasons = [mend for answer, mend in _MENDS.items() if answer in missing.values()]
    return Problem(
        code="never-met", what=f"The trainers did not meet {waited}: {what}.", fix=" ".join(reasons)
    )


_SAYING: dict[Answer, str] = {
    "refused": "is there, but nothing listens on that port",
    "silent": "did not answer on that port",
    "unreachable": "cannot be reached from here",
}
_MENDS: dict[Answer, str] = {
    "refused": "That laptop's log of the run says more: its trainer did not start, or a firewall rejects it.",
    "silent": "Allow TCP ports 20000–32000 between the laptops in that laptop's firewall.",
    "unreachable": "Put both laptops into the same network.",
}


def _list(peers: dict[str, str], tasks: dict[str, str]) -> str:
    return ", ".join(f"{task} ({peers[task]})" for task in tasks)
