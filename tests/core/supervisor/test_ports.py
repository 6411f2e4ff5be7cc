from __future__ import annotations

import errno
import os
import random
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from core.cluster.make_plan import FIRST_PORT, LAST_PORT
from core.net.address import Address
from core.supervisor import ports
from core.supervisor.ports import hold_ports, listen_anywhere, listen_at, place, try_peers
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Role, Task
from tests.core.cluster.laptops import ANNA
from tests.core.trainer.attended import free_ports

pytestmark = pytest.mark.real

PEERS = {"chief:0": "Anna's laptop at 10.0.0.2:20001", "worker:0": "Ben at home at [fe80::1]:20002"}


def task(index: int, port: int = 0) -> Task:
    return Task(device=ANNA, role=Role.WORKER, index=index, host="127.0.0.1", port=port)


def test_each_task_has_a_port_of_its_own_in_the_range_for_tensorflow() -> None:
    held = hold_ports([task(0), task(1), task(2)], chance=random.Random(5))
    try:
        assert set(held.ports) == {"worker:0", "worker:1", "worker:2"}
        assert len(set(held.ports.values())) == 3
        assert all(FIRST_PORT <= port < LAST_PORT for port in held.ports.values())
    finally:
        held.release()


def test_the_planned_port_is_held_if_it_is_free_and_otherwise_another_one() -> None:
    free = hold_ports([task(0)])
    (port,) = free.ports.values()
    second = hold_ports([task(0, port)])  # somebody has it already
    assert second.ports["worker:0"] != port
    second.release()
    free.release()
    third = hold_ports([task(0, port)])
    # Another program of this machine may have taken it meanwhile; then it is a different one.
    assert FIRST_PORT <= third.ports["worker:0"] < LAST_PORT
    third.release()


def test_a_listener_on_one_address_alone_is_noticed_too() -> None:
    with socket.socket() as other:
        for port in range(LAST_PORT - 400, LAST_PORT):
            try:
                other.bind(("127.0.0.1", port))
                break
            except OSError:
                continue
        other.listen()
        held = hold_ports([task(0, port)])
        assert held.ports["worker:0"] != port
        held.release()


def test_a_lack_of_free_ports_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports.HeldPorts, "hold", lambda self, task, port: False)
    with pytest.raises(TandemError) as caught:
        hold_ports([task(0)])
    assert caught.value.code == "no-free-port"


def test_a_trainer_listens_at_its_own_address_or_everywhere_if_that_is_another_machines() -> None:
    with listen_anywhere("127.0.0.1") as own:
        host, port = own.getsockname()
        assert host == "127.0.0.1" and FIRST_PORT <= port < LAST_PORT
        with pytest.raises(OSError, match="in use"):
            listen_at(Address("127.0.0.1", port)).close()
    with listen_anywhere("192.0.2.7") as translated:
        assert translated.getsockname()[0] == "0.0.0.0"


def test_a_lack_of_ports_to_listen_at_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with pytest.raises(TandemError) as caught:
            listen_anywhere("127.0.0.1", [taken] * 3)
    assert caught.value.code == "no-free-port"


def test_the_address_is_what_follows_the_last_at() -> None:
    assert place(PEERS["worker:0"]) == "[fe80::1]:20002"


def test_probing_tells_listening_ports_from_closed_ones() -> None:
    with socket.create_server(("127.0.0.1", 0)) as here:
        peers = {
            "a": f"A at 127.0.0.1:{here.getsockname()[1]}",
            "b": f"B at 127.0.0.1:{free_ports(1)[0]}",
            "c": "C at no such place",
        }
        assert try_peers(peers, 30.0) == {"a": "answers", "b": "refused", "c": "unreachable"}


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


def test_no_peers_to_try_is_fine() -> None:
    assert try_peers({}, 1.0) == {}


class Knock:
    def __init__(self) -> None:
        self.is_closed = False

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
def test_an_immediate_error_of_the_system_is_the_answer_and_no_socket_stays(
    monkeypatch: pytest.MonkeyPatch, status: int, answer: str
) -> None:
    knocks: list[Knock] = []

    def knock(address: tuple[str, int], limit_s: float) -> Knock:
        assert address in (("10.0.0.2", 20001), ("fe80::1", 20002)) and limit_s == 30.0
        if status:
            raise OSError(status, os.strerror(status))
        knocks.append(Knock())
        return knocks[-1]

    monkeypatch.setattr(ports, "socket", SimpleNamespace(create_connection=knock))
    began_s = time.monotonic()
    assert try_peers(PEERS, 30.0) == dict.fromkeys(PEERS, answer)
    assert time.monotonic() - began_s < 20.0
    assert [each.is_closed for each in knocks] == ([] if status else [True, True])


def test_all_are_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(len(PEERS), timeout=60.0)

    def knock(address: tuple[str, int], limit_s: float) -> Knock:
        meeting.wait()
        raise TimeoutError

    monkeypatch.setattr(ports, "socket", SimpleNamespace(create_connection=knock))
    assert try_peers(PEERS, 30.0) == dict.fromkeys(PEERS, "silent")
