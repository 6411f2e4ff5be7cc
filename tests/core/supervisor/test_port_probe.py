from __future__ import annotations

import errno
import socket
import time
from types import SimpleNamespace

import pytest

from core.supervisor import port_probe
from core.supervisor.port_probe import place, try_peers
from tests.core.trainer.attended import free_ports

PEERS = {"chief:0": "Anna's laptop at 10.0.0.2:20001", "worker:0": "Ben at home at [fe80::1]:20002"}


def test_the_place_is_what_follows_the_last_at() -> None:
    assert place(PEERS["worker:0"]) == "[fe80::1]:20002"


@pytest.mark.real
def test_probing_tells_listening_ports_from_closed_ones() -> None:
    with socket.create_server(("127.0.0.1", 0)) as here:
        peers = {
            "a": f"A at 127.0.0.1:{here.getsockname()[1]}",
            "b": f"B at 127.0.0.1:{free_ports(1)[0]}",
            "c": "C at no such place",
        }
        assert try_peers(peers, 30.0) == {"a": "answers", "b": "refused", "c": "unreachable"}


@pytest.mark.real
def test_a_port_that_never_answers_is_silent() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        where = full.getsockname()
        kept = []
        for _ in range(4):  # The queue is then full: further SYNs are dropped.
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex(where)
            kept.append(each)
        try:
            assert try_peers({"a": f"A at 127.0.0.1:{where[1]}"}, 0.2) == {"a": "silent"}
        finally:
            for each in kept:
                each.close()


def test_nobody_to_try_is_fine() -> None:
    assert try_peers({}, 1.0) == {}


class Knock:
    """A socket connected with ``status``."""

    def __init__(self, status: int) -> None:
        self._status, self.is_closed, self.blocks = status, False, True

    def setblocking(self, blocks: bool) -> None:
        self.blocks = blocks

    def connect_ex(self, where: object) -> int:
        assert not self.blocks
        return self._status

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (0, "answers"),
        (errno.ECONNREFUSED, "refused"),
        (errno.ETIMEDOUT, "silent"),
        (errno.ENETUNREACH, "unreachable"),
        (errno.EHOSTUNREACH, "unreachable"),
    ],
)
def test_what_the_system_says_at_once_is_the_answer_and_no_socket_stays(
    monkeypatch: pytest.MonkeyPatch, status: int, answer: str
) -> None:
    knocks: list[Knock] = []

    def knock(*_: object) -> Knock:
        knocks.append(Knock(status))
        return knocks[-1]

    system = SimpleNamespace(
        socket=knock, SOCK_STREAM=socket.SOCK_STREAM, getaddrinfo=lambda *_, **__: [(0, 0, 0, "", ("", 1))]
    )
    monkeypatch.setattr(port_probe, "socket", system)
    began_s = time.monotonic()
    assert try_peers(PEERS, 30.0) == dict.fromkeys(PEERS, answer)
    assert time.monotonic() - began_s < 20.0
    assert [each.is_closed for each in knocks] == [True, True]
