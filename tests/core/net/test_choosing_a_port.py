"""Which port a node listens on, without a socket."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass

import psutil
import pytest

from core.net import port as module
from core.net.port import EVERYWHERE, NEIGHBOURS, open_port
from core.vocabulary.errors import TandemError


class FakeSocket:
    def __init__(self, host: str, port: int) -> None:
        self.place = host, port
        self.closed = False

    def close(self) -> None:
        self.closed = True


@dataclass
class Machine:
    """``refuses``: the error number with which listening at (host, port) fails; 0: it succeeds."""

    opened: list[FakeSocket]
    refuses: Callable[[str, int], int]

    def listen(self, host: str, port: int) -> FakeSocket:
        if number := self.refuses(host, port):
            raise OSError(number, "no")
        self.opened.append(FakeSocket(host, port))
        return self.opened[-1]

    @property
    def open(self) -> list[tuple[str, int]]:
        return [each.place for each in self.opened if not each.closed]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine([], lambda host, port: 0)
    monkeypatch.setattr(module, "_listen", lambda host, port: machine.listen(host, port))
    monkeypatch.setattr(psutil, "net_connections", lambda kind: [])
    return machine


async def test_the_wanted_port_is_taken_for_both_kinds_of_addresses(machine: Machine) -> None:
    opened = await open_port(31999)
    assert (opened.port, opened.notice) == (31999, None)
    assert machine.open == [(host, 31999) for host in EVERYWHERE]


async def test_a_taken_ports_neighbour_is_used_and_that_is_reported(machine: Machine) -> None:
    machine.refuses = lambda host, port: errno.EADDRINUSE if port < 27602 and ":" in host else 0
    opened = await open_port(27600)
    assert opened.port == 27602
    assert opened.notice is not None and opened.notice.code == "port-taken"
    assert opened.notice.what == "Port 27600 is in use by another program, so Tandem listens on port 27602."
    assert ":27602" in opened.notice.fix
    assert machine.open == [(host, 27602) for host in EVERYWHERE], "what was half open is closed"


async def test_another_port_than_the_usual_ones_has_them_as_neighbours(machine: Machine) -> None:
    machine.refuses = lambda host, port: errno.EADDRINUSE if port == 5000 else 0
    assert (await open_port(5000)).port == NEIGHBOURS[0]


async def test_where_all_are_taken_it_says_so(machine: Machine) -> None:
    tried: list[int] = []

    def refuse(host: str, port: int) -> int:
        tried.append(port)
        return errno.EADDRINUSE

    machine.refuses = refuse
    with pytest.raises(TandemError, match="from 27600 to 27699 are in use") as failure:
        await open_port(27650)
    assert failure.value.code == "no-port"
    assert tried[0] == 27650 and sorted(tried) == list(NEIGHBOURS)


async def test_any_port_lies_below_those_that_are_lent_and_is_no_news(machine: Machine) -> None:
    machine.refuses = lambda host, port: 0 if len(machine.opened) or port % 7 == 0 else errno.EADDRINUSE
    opened = await open_port(0)
    assert 10_000 <= opened.port < 20_000 and opened.notice is None


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT])
async def test_a_machine_with_one_kind_of_addresses_has_only_the_other(machine: Machine, number: int) -> None:
    machine.refuses = lambda host, port: number if ":" in host else 0
    assert (await open_port(31999)).port == 31999
    assert machine.open == [("0.0.0.0", 31999)]
    machine.refuses = lambda host, port: number
    with pytest.raises(TandemError, match="neither IPv4 nor IPv6") as failure:
        await open_port(31999)
    assert failure.value.code == "port-unusable"


async def test_a_port_that_may_not_be_used_is_not_replaced(machine: Machine) -> None:
    machine.refuses = lambda host, port: errno.EACCES if ":" in host else 0
    with pytest.raises(TandemError) as failure:
        await open_port(80)
    assert failure.value.code == "port-unusable" and "port 80 (no)" in failure.value.what
    assert machine.open == []


async def test_the_holder_of_the_port_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Place:
        port: int

    @dataclass
    class Connection:
        status: str
        laddr: object
        pid: int | None

    class Process:
        def __init__(self, pid: int) -> None:
            self.pid = pid

        def name(self) -> str:
            return {7: "nginx"}[self.pid]

    machine.refuses = lambda host, port: errno.EADDRINUSE if port == 31999 else 0
    listening = [
        Connection("ESTABLISHED", Place(31999), 3),
        Connection(psutil.CONN_LISTEN, (), 4),
        Connection(psutil.CONN_LISTEN, Place(32000), 5),
        Connection(psutil.CONN_LISTEN, Place(31999), None),
        Connection(psutil.CONN_LISTEN, Place(31999), 7),
    ]
    monkeypatch.setattr(psutil, "net_connections", lambda kind: listening)
    monkeypatch.setattr(psutil, "Process", Process)
    notice = (await open_port(31999)).notice
    assert notice is not None and "in use by nginx (process 7)" in notice.what

    def forbidden(kind: str) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", forbidden)
    notice = (await open_port(31999)).notice
    assert notice is not None and "in use by another program" in notice.what


@pytest.mark.parametrize(("host", "family"), [("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6)])
def test_a_listening_socket_is_of_its_addresss_kind_and_never_blocks(
    monkeypatch: pytest.MonkeyPatch, host: str, family: int
) -> None:
    made: list[tuple[object, object]] = []
    blocking: list[bool] = []

    class Made:
        def setblocking(self, flag: bool) -> None:
            blocking.append(flag)

    def create(place: tuple[str, int], *, family: int, backlog: int) -> Made:
        made.append((place, family))
        return Made()

    monkeypatch.setattr(socket, "create_server", create)
    assert isinstance(module._listen(host, 31999), Made)
    assert made == [((host, 31999), family)] and blocking == [False]
