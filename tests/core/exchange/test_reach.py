"""Outcomes of calling a peer, and addresses that resolve slowly."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest

from core.exchange import problems, reach
from core.exchange.reach import HandshakeRefused
from core.exchange.state import Calls, Trouble


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "refused"),
        (TimeoutError("timed out"), "silent"),
        (OSError(113, "No route to host"), "unreachable"),
        (socket.gaierror(-2, "Name or service not known"), "no-name"),
        (ssl.SSLCertVerificationError("certificate verify failed"), "stranger"),
        (ssl.SSLError(1, "[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca"), "stranger"),
        (HandshakeRefused("version 1 of run 'another'"), "stranger"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), "hung-up"),
        (ConnectionResetError(104, "Connection reset by peer"), "hung-up"),
    ],
)
def test_outcomes_of_calls_are_distinguished(error: OSError, trouble: Trouble) -> None:
    assert reach.trouble_of(error) == trouble


def test_calls_count_from_the_first_that_failed() -> None:
    calls = Calls(("10.0.0.2", 2222))
    calls = reach.failed(calls, TimeoutError(), 100.0)
    calls = reach.failed(calls, ConnectionRefusedError(), 107.0)
    assert (calls.tried, calls.since_s, calls.trouble) == (2, 100.0, "refused")


def test_an_answer_by_a_stranger_is_remembered() -> None:
    calls = reach.failed(Calls(("10.0.0.2", 2222)), HandshakeRefused(), 100.0)
    assert reach.failed(calls, ConnectionRefusedError(), 101.0).trouble == "stranger"


def test_members_that_never_connected_are_named_with_the_fix() -> None:
    refused = Calls(("10.0.0.2", 2222), 12, 100.0, "refused")
    silent = Calls(("fe80::1", 2223), 3, 110.0, "silent")
    told = problems.never_met([("ben", refused), ("carl", silent)], 60.0, 160.0)
    ben, carl = told.what.removeprefix("The trainers did not meet within 60 s: ").split("; ")
    assert ben == "ben (at 10.0.0.2:2222, called 12 times in 60 s) is there, but nothing listens on that port"
    assert carl == "carl (at [fe80::1]:2223, called 3 times in 50 s) did not answer on that port."
    assert "its trainer did not start" in told.fix and "TCP ports 20000–32000" in told.fix


def test_members_that_cannot_be_called_or_that_miss_a_third_are_reported() -> None:
    uncalled = problems.never_met([("ben", Calls(None))], 60.0, 160.0)
    assert uncalled.what == "The trainers did not meet within 60 s: ben did not call."
    assert "in the firewall of either laptop" in uncalled.fix
    third = problems.never_met([], 60.0, 160.0)
    assert "not all to each other" in third.what and third.fix


def test_a_number_needs_no_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", None)
    assert reach.resolve(("127.0.0.1", 2222), 0.0)[4] == ("127.0.0.1", 2222)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A resolver that answers when the event is set."""
    answered = threading.Event()

    def getaddrinfo(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        answered.wait(60.0)
        if host == "nobody":
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.2", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield answered
    answered.set()
    for thread in threading.enumerate():
        if thread.name == "resolve":
            thread.join(60.0)


def test_a_resolver_that_does_not_answer_is_not_waited_for_longer_than_a_limit(slow: threading.Event) -> None:
    began_s = time.monotonic()
    with pytest.raises(TimeoutError, match="the address of ben was not found"):
        reach.resolve(("ben", 2222), 0.05)
    assert not slow.is_set()
    assert time.monotonic() - began_s < 30.0


def test_a_name_is_looked_up(slow: threading.Event) -> None:
    slow.set()
    assert reach.resolve(("ben", 2222), 60.0)[4] == ("10.0.0.2", 2222)
    with pytest.raises(socket.gaierror):
        reach.resolve(("nobody", 2222), 60.0)
