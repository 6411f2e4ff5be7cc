from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import sys

import pytest

from core.trainer.sealed import listeners

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="proc(5) is Linux's")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("0100007F:1F90", "127.0.0.1", 8080),
        ("00000000:5208", "0.0.0.0", 21000),
        ("00000000000000000000000001000000:0016", "::1", 22),
        ("0000000000000000FFFF00000100007F:0016", "::ffff:127.0.0.1", 22),
    ],
)
@pytest.mark.skipif(sys.byteorder != "little", reason="as such a machine writes them")
def test_addresses_are_read_as_the_system_writes_them(text: str, host: str, port: int) -> None:
    assert listeners.address(text) == (ipaddress.ip_address(host), port)


def test_who_listens_for_others_is_named_and_who_listens_on_the_loopback_is_not() -> None:
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


def test_what_another_process_listens_at_is_not_this_ones() -> None:
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
