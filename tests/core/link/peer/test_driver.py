"""The address at which a caller is called back, and whose refusal reports it gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.home.identity import load_or_create
from core.link import problems
from core.link.dial import Backoff
from core.link.driver import LIMITS
from core.link.peer.driver import Hub, PeerDriver
from core.net import tls
from core.vocabulary.errors import TandemError
from core.vocabulary.settings import DEFAULT_PORT
from tests.core.link.examples import hello

SESSION = b"their 01"
CLOCK = SimpleNamespace(time=lambda: 0.0, call_later=lambda *_: SimpleNamespace(cancel=lambda: None))


def called() -> tls.Streams:
    """A connection accepted from the device."""
    ends = {"sockname": ("10.0.0.1", 27_600), "peername": ("10.0.0.2", 51_234)}
    transport = SimpleNamespace(abort=lambda: None)
    writer = SimpleNamespace(get_extra_info=ends.get, write=lambda data: None, transport=transport)
    return asyncio.StreamReader(), cast(asyncio.StreamWriter, writer)


def call_nobody(what: str, call: Coroutine[Any, Any, None]) -> SimpleNamespace:
    call.close()
    return SimpleNamespace(cancel=lambda: True)


@pytest.mark.parametrize(
    ("said", "port"),
    [(0, DEFAULT_PORT), (1, 1), (65_535, 65_535), (65_536, DEFAULT_PORT), (-1, DEFAULT_PORT)],
)
async def test_a_callers_address_is_its_host_with_the_port_that_it_announces_if_valid(
    tmp_path: Path, said: int, port: int
) -> None:
    ours, theirs = load_or_create(tmp_path / "ours"), load_or_create(tmp_path / "theirs")
    told: list[str] = []
    hub = SimpleNamespace(
        identity=ours,
        background=SimpleNamespace(start=call_nobody),
        clock=CLOCK,
        limits=LIMITS,
        hello=hello,
        came_up=lambda device, hello, address: told.append(address),
    )
    peer = PeerDriver(cast(Hub, hub), theirs.device_id, theirs.cert_der, "bert", ())
    peer.accept(called(), hello("bert", port=said, session=SESSION, number=1))
    assert told == [f"10.0.0.2:{port}"]


@pytest.mark.parametrize(
    ("answers", "refuses", "codes"),
    [
        ("10.0.0.2", "10.0.0.2", ["nobody-listens"]),
        ("10.0.0.2", "10.0.0.9", []),
        ("", "10.0.0.2", []),
    ],
    ids=["where it answered", "an old address, which may be another machine's", "by its firewall"],
)
async def test_a_device_that_answered_during_its_last_link_and_refuses_now_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: str, refuses: str, codes: list[str]
) -> None:
    async def connect(host: str, port: int, *_: object) -> tls.Streams:
        calls.append(host)
        if linked and host == answers:
            return asyncio.StreamReader(), cast(asyncio.StreamWriter, writer)
        raise TandemError(code=tls.NOBODY_LISTENS if host == refuses else "unreachable", what=host)

    monkeypatch.setattr(tls, "connect", connect)
    ours, theirs = load_or_create(tmp_path / "ours"), load_or_create(tmp_path / "theirs")
    calls: list[str] = []
    told: list[str] = []
    linked, hung_up = True, list[bool]()
    writer = SimpleNamespace(transport=SimpleNamespace(abort=lambda: hung_up.append(True)))
    hub = SimpleNamespace(
        identity=ours,
        background=SimpleNamespace(start=call_nobody),
        clock=CLOCK,
        limits=LIMITS,
        hello=hello,
        backoff=Backoff(),
        chance=lambda: 0.0,
        came_up=lambda *_: None,
        went_down=lambda device, problem: told.append(problem.code),
    )
    peer = PeerDriver(
        cast(Hub, hub), theirs.device_id, theirs.cert_der, "bert", ("10.0.0.2:27600", "10.0.0.9:27600")
    )
    peer.accept(called(), hello("bert", port=27_600, session=SESSION, number=1))
    link = peer.link
    assert link is not None
    await peer._dial()
    assert hung_up == ([True] if answers else []), "that its port is open is all that was to be known"
    linked = False
    calls.clear()
    peer.on_lost(link, problems.closed("bert"))
    peer.try_now()
    await peer._dial()
    assert set(calls) == {"10.0.0.2", "10.0.0.9"}
    assert told == codes


@pytest.mark.parametrize("leads", [True, False])
async def test_the_leaders_numbers_decide_which_of_several_connections_is_the_link(
    tmp_path: Path, leads: bool
) -> None:
    two = sorted((load_or_create(tmp_path / each) for each in "ab"), key=lambda each: each.device_id)
    ours, theirs = two if leads else reversed(two)
    refused: list[Coroutine[Any, Any, None]] = []

    def start(what: str, call: Coroutine[Any, Any, None]) -> SimpleNamespace:
        call.close()
        if what.startswith("turning"):
            refused.append(call)
        return SimpleNamespace(cancel=lambda: True)

    hub = SimpleNamespace(
        identity=ours,
        background=SimpleNamespace(start=start),
        clock=CLOCK,
        limits=LIMITS,
        hello=hello,
        came_up=lambda *_: None,
        went_down=lambda device, problem: told.append(problem.code),
    )
    told: list[str] = []
    peer = PeerDriver(cast(Hub, hub), theirs.device_id, theirs.cert_der, "bert", ())

    def call(number: int, session: bytes = SESSION) -> bool:
        """Whether it is the link now."""
        before = len(refused)
        peer.accept(called(), hello("bert", session=session, number=number))
        return len(refused) == before

    # A follower's equal number is of an older version, which says 0.
    assert [call(number) for number in (2, 1, 2, 3)] == [True, False, leads, True]
    assert peer.link is not None and peer.link.number == (4 if leads else 3)
    assert not call(9, b"short") and not call(0), "a hello that is none"
    assert call(1, b"their 02") and told == ["link-renewed"], "it has lost its state"
    assert peer.link.number == (peer._numbered if leads else 1)
