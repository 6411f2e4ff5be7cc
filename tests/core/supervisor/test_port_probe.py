from __future__ import annotations

import socket

import pytest

from core.supervisor.port_probe import place, try_peers
from tests.core.trainer.attended import free_ports

PEERS = {"chief:0": "Anna's laptop at 10.0.0.2:20001", "worker:0": "Ben at home at [fe80::1]:20002"}


def test_the_place_is_what_follows_the_last_at() -> None:
    assert place(PEERS["worker:0"]) == "[fe80::1]:20002"


@pytest.mark.real
def test_knocking_tells_listening_ports_from_closed_ones() -> None:
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
        for _ in range(4):  # The queue is full then: further SYNs are dropped.
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
