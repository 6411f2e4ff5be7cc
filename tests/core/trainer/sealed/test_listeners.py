from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from core.trainer.sealed import listeners

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="proc(5) is Linux's")


def test_sockets_open_to_others_are_named_and_those_on_the_loopback_are_not() -> None:
    with socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.77.0.3", 0)):
        before = listeners.reachable(os.getpid())
        with socket.create_server(("0.0.0.0", 0)) as everywhere:
            port = everywhere.getsockname()[1]
            assert set(listeners.reachable(os.getpid())) - set(before) == {f"0.0.0.0:{port}"}
        assert listeners.reachable(os.getpid()) == before


def test_an_address_of_ipv6_counts_too() -> None:
    try:
        everywhere = socket.create_server(("::", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with everywhere:
        assert f":::{everywhere.getsockname()[1]}" in listeners.reachable(os.getpid())


def test_the_loopback_of_ipv4_written_as_ipv6_is_no_way_in() -> None:
    with socket.socket(socket.AF_INET6) as mapped:
        mapped.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        mapped.bind(("::ffff:127.0.0.1", 0))
        mapped.listen()
        port = str(mapped.getsockname()[1])
        assert port not in [each.rpartition(":")[2] for each in listeners.reachable(os.getpid())]


def test_a_process_that_has_ended_cannot_be_read() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    with pytest.raises(ProcessLookupError):
        listeners.reachable(ended.pid)


def test_sockets_of_another_process_are_left_out() -> None:
    code = (
        "import socket, sys\n"
        "with socket.create_server(('0.0.0.0', 0)) as each:\n"
        "    print(each.getsockname()[1], flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        place = f"0.0.0.0:{int(other.stdout.readline())}"
        assert listeners.reachable(other.pid) == (place,)
        assert place not in listeners.reachable(os.getpid())
        other.stdin.close()
