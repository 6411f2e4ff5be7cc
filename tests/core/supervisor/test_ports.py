from __future__ import annotations

import random
import socket

import pytest

from core.cluster.make_plan import FIRST_PORT, LAST_PORT
from core.net.address import Address
from core.supervisor import ports
from core.supervisor.ports import hold_ports, listen_anywhere, listen_at
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Role, Task
from tests.core.cluster.laptops import ANNA

pytestmark = pytest.mark.real


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


def test_the_planned_port_is_taken_where_it_is_free_and_another_one_where_not() -> None:
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


def test_no_free_port_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports.HeldPorts, "hold", lambda self, task, port: False)
    with pytest.raises(TandemError) as caught:
        hold_ports([task(0)])
    assert caught.value.code == "no-free-port"


def test_a_trainer_listens_at_its_own_address_and_everywhere_where_that_is_another_machines() -> None:
    with listen_anywhere("127.0.0.1") as own:
        host, port = own.getsockname()
        assert host == "127.0.0.1" and FIRST_PORT <= port < LAST_PORT
        with pytest.raises(OSError, match="in use"):
            listen_at(Address("127.0.0.1", port)).close()
    with listen_anywhere("192.0.2.7") as translated:
        assert translated.getsockname()[0] == "0.0.0.0"


def test_nowhere_to_listen_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with pytest.raises(TandemError) as caught:
            listen_anywhere("127.0.0.1", [taken] * 3)
    assert caught.value.code == "no-free-port"
