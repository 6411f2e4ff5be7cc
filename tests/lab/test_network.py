"""The lab works as described: otherwise its tests prove nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import pytest

from tests.lab.lab import Lab
from tests.lab.network import NETWORK

pytestmark = pytest.mark.lab

_SEND = f"""
import socket
with socket.create_connection(("{NETWORK}.2", 5000), timeout=60) as sock:
    for _ in range(64):
        sock.sendall(bytes(1 << 20))
    sock.shutdown(socket.SHUT_WR)
    sock.recv(1)
"""
_TAKE = """
import socket, time
with socket.create_server(("0.0.0.0", 5000)) as server:
    print("listening", flush=True)
    sock, peer = server.accept()
    first = sock.recv(1 << 16)
    began, taken = time.monotonic(), len(first)
    while data := sock.recv(1 << 20):
        taken += len(data)
    print(peer[0], taken / (time.monotonic() - began))
"""


def test_what_travels_is_no_faster_than_the_cable(lab: Lab) -> None:
    with subprocess.Popen(
        (*lab.enter(1), sys.executable, "-c", _TAKE), stdout=subprocess.PIPE, text=True
    ) as taker:
        assert taker.stdout is not None
        assert taker.stdout.readline() == "listening\n"
        subprocess.run((*lab.enter(0), sys.executable, "-c", _SEND), check=True, timeout=120)
        sender, rate = taker.stdout.readline().split()
    assert sender == f"{NETWORK}.1"
    assert 0 < float(rate) < 936e6 / 8 * 1.1


def test_a_pulled_cable_is_seen_on_both_of_its_ends_and_comes_back(lab: Lab) -> None:
    def state() -> str:
        return lab.network.do(0, "ip", "-brief", "link", "show", "dev", "eth0").split()[1]

    def wait_for(wanted: str) -> None:
        until_s = time.monotonic() + 60
        while state() != wanted:
            assert time.monotonic() < until_s
            time.sleep(0.05)

    wait_for("UP")
    lab.network.cable(0, plugged=False)
    wait_for("DOWN")
    lab.network.cable(0, plugged=True)
    wait_for("UP")


def test_nothing_outside_is_reached_from_within(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        call = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=60)"
        done = subprocess.run((*lab.enter(0), sys.executable, "-c", call), capture_output=True, text=True)
    assert "ConnectionRefusedError" in done.stderr
