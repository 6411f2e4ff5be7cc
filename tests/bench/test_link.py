"""The slow cable between two members."""

import subprocess
import sys
import time

import pytest

from bench.wire.link import Link

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("namespaces")]
MBIT = 80
SENT_BYTES = 4_000_000
LISTENER = """
import socket, sys
host, port = sys.argv[1].split(":")
with socket.create_server((host, int(port))) as server:
    print("ready", flush=True)
    peer, _ = server.accept()
    while peer.recv(1 << 16):
        pass
    peer.send(b"!")
"""
SENDER = """
import socket, sys
host, port = sys.argv[1].split(":")
with socket.create_connection((host, int(port))) as peer:
    peer.sendall(bytes(int(sys.argv[2])))
    peer.shutdown(socket.SHUT_WR)
    peer.recv(1)
"""


def test_bytes_cross_a_link_no_faster_than_it_is() -> None:
    with Link(MBIT) as link:
        place = link.place(1)
        assert place != link.place(1)
        listener = [*link.enter(1), sys.executable, "-c", LISTENER, place]
        with subprocess.Popen(listener, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None and other.stdout.readline() == b"ready\n"
            began_s = time.monotonic()
            sender = [*link.enter(0), sys.executable, "-c", SENDER, place, str(SENT_BYTES)]
            subprocess.run(sender, check=True, timeout=120)
            took_s = time.monotonic() - began_s
    # The first 256 kB may pass without delay.
    assert took_s * MBIT * 1e6 / 8 >= SENT_BYTES - 256_000
