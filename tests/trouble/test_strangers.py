"""Garbage, huge frames, half-open connections on every port of a training: it continues, nobody gets in."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core.home import socket_path
from core.net.address import parse
from core.vocabulary import events as ev
from core.vocabulary.commands import GetState, StopRun
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Stopped
from tests.lab.agent import Agent
from tests.lab.laptops import Laptops, digits, weights
from tests.trouble.command_line import tandem

pytestmark = [pytest.mark.real, pytest.mark.cluster, pytest.mark.timeout(600)]

GARBAGE = (
    os.urandom(4096),
    b"\x00\xff\xff\xff" + bytes(1 << 16),
    b"\x16\x03\x01\xff\xff" + os.urandom(1 << 16),
    b"GET / HTTP/1.1\r\nHost: anna\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff\xff\xff\x04" + os.urandom(1 << 16),
    b'{"id": 1, "type": "start_run"' + b"x" * (2 << 20),
    b"",
)
HALF_OPEN = 24


def ports(agent: Agent, every: dict[DeviceId, int]) -> Iterator[tuple[str, int]]:
    """This laptop's ports: its node's, and its trainer's."""
    assert agent.state.me is not None
    for text in agent.state.me.addresses:
        address = parse(text)
        yield address.host, address.port
    yield "127.0.0.1", every[agent.device]


def throw(sock: socket.socket, data: bytes) -> None:
    """As much as the other side accepts. It may close at any time, and must in the end."""
    sock.settimeout(60.0)
    try:
        sock.sendall(data)
        with contextlib.suppress(OSError):  # already closed by the other side: not a ConnectionError
            sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass
    except TimeoutError:
        raise
    except OSError:
        pass  # reset: closed before all of it was accepted


def newest(agent: Agent) -> int:
    return max(told.event.progress.step for told in agent.told if isinstance(told.event, ev.MemberProgressed))


def test_a_training_goes_on_whatever_strangers_send(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben = laptops.anna, laptops.ben
    run = anna.train(digits(tmp_path / "digits", "--epochs", "100000", others=(ben,)))
    for agent in (anna, ben):
        agent.trains(run)
    every = {task.device: task.port for task in anna.run().plan.tasks}
    places = [*ports(anna, every), *ports(ben, every)]
    assert len(places) >= 4
    known = {agent.name: set(agent.state.devices) for agent in (anna, ben)}

    with ExitStack() as half_open:
        for place in places:
            for data in GARBAGE:
                with socket.create_connection(place, timeout=60.0) as sock:
                    throw(sock, data)
            for _ in range(HALF_OPEN):
                half_open.enter_context(socket.create_connection(place, timeout=60.0)).sendall(b"\x16\x03")
        for data in GARBAGE:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(str(socket_path.find(anna.home)))
                throw(sock, data)

        # Later steps, links that stayed up all the time, and room for members.
        for agent in (anna, ben):
            since, step = len(agent.told), newest(agent)

            def is_after(event: ev.MemberProgressed, step: int = step) -> bool:
                return event.progress.step > step

            agent.hears(ev.MemberProgressed, is_after, since=since)
            assert not any(isinstance(told.event, ev.LinkDown) for told in agent.told[since:])
            assert set(agent.state.devices) == known[agent.name]
        assert tandem("devices", "--home", anna.home.folder)[0] == 0

    anna.ask(GetState())
    anna.do(StopRun())
    for agent in (anna, ben):
        assert agent.ends(run) == Stopped(by="anna")
        assert len(set(weights(agent).values())) == 1
