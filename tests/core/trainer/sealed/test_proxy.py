from __future__ import annotations

import http.server
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from core.net.tls_stream import Sockets
from core.trainer.sealed.proxy import AT_ONCE, Proxy, is_public, read


def test_a_tunnel_is_asked_for_by_host_and_port() -> None:
    asked = read(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n")
    assert (asked.host, asked.port, asked.first) == ("example.org", 443, b"")
    assert asked.answer.startswith(b"HTTP/1.1 200 ")
    assert read(b"CONNECT [::1]:8443 HTTP/1.1\r\n\r\n").host == "::1"


def test_a_request_for_a_page_is_rewritten_for_its_server() -> None:
    asked = read(
        b"GET http://example.org:8080/a/b?c=d HTTP/1.1\r\nHost: example.org:8080\r\n"
        b"Proxy-Connection: keep-alive\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\nbody"
    )
    assert (asked.host, asked.port, asked.answer) == ("example.org", 8080, b"")
    assert asked.first == (
        b"GET /a/b?c=d HTTP/1.1\r\nConnection: close\r\nHost: example.org:8080\r\nAccept: */*\r\n\r\nbody"
    )
    assert read(b"GET http://example.org HTTP/1.1\r\n\r\n").first.startswith(b"GET / HTTP/1.1\r\n")


def test_a_body_is_passed_on_unchanged_whatever_its_lines_begin_with() -> None:
    body = b"a\r\n\r\nConnection: is a word\r\nProxy-like\r\n"
    assert read(b"POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n" + body).first == (
        b"POST / HTTP/1.1\r\nConnection: close\r\nHost: example.org\r\n\r\n" + body
    )


def test_downloads_beyond_the_limit_are_told_to_come_later() -> None:
    with serving() as server, proxying(at_once=1) as proxy:
        host, _, port = proxy.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), 30) as first:
            first.sendall(f"CONNECT {server} HTTP/1.1\r\n\r\n".encode())
            assert first.recv(4096).startswith(b"HTTP/1.1 200 ")
            with pytest.raises(urllib.error.HTTPError) as refusal:
                fetched(f"http://{server}/data", proxy)
            assert refusal.value.code == 503
            refusal.value.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /a HTTP/1.1\r\n\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\n\r\n",
        b"CONNECT example.org HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:x HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
    ],
)
def test_what_is_no_request_to_a_proxy_is_refused(head: bytes) -> None:
    with pytest.raises(ValueError):
        read(head)


class _Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{self.path} for {self.headers.get('Proxy-Authorization', 'nobody')}".encode() * 5000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def serving(host: str = "127.0.0.1") -> Iterator[str]:
    with http.server.ThreadingHTTPServer((host, 0), _Server) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"{host}:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def proxying(
    at_once: int = AT_ONCE, token: str = "", may_call: Callable[[str], bool] = lambda address: True
) -> Iterator[str]:
    sockets, listener = Sockets(), socket.create_server(("127.0.0.1", 0))
    sockets.add(listener)
    Proxy(listener, sockets, at_once=at_once, token=token, may_call=may_call).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    sockets.close()
    listener.close()


@pytest.fixture(autouse=True)
def no_proxy_of_the_laptops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.trainer.sealed.proxy.getproxies", dict)


def fetched(url: str, proxy: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}))
    with opener.open(url, timeout=30) as answer:
        return bytes(answer.read())


def test_a_page_comes_whole_through_it() -> None:
    with serving() as server, proxying() as proxy:
        assert fetched(f"http://{server}/data", proxy) == b"/data for nobody" * 5000


def test_a_tunnel_carries_what_it_is_given() -> None:
    with serving() as server, proxying() as proxy:
        host, _, port = proxy.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), 30) as sock:
            sock.sendall(f"CONNECT {server} HTTP/1.1\r\n\r\n".encode())
            assert sock.recv(1000) == b"HTTP/1.1 200 Connection established\r\n\r\n"
            sock.sendall(b"GET /through HTTP/1.0\r\n\r\n")
            with sock.makefile("rb") as answer:
                assert answer.read().endswith(b"/through for nobody" * 5000)


def test_an_unreachable_server_is_answered_as_proxies_do() -> None:
    with proxying() as proxy:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetched(f"http://127.0.0.1:{port}/", proxy)
        with refused.value as answer:
            assert answer.code == 502


def test_the_laptops_own_proxy_is_handed_each_connection_with_its_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving() as server:
        own = {"http": f"http://me:secret@{server}"}
        monkeypatch.setattr("core.trainer.sealed.proxy.getproxies", lambda: own)
        with proxying() as proxy:
            asked = fetched("http://far.example/page", proxy.replace("://", "://me:secret@"))
    assert asked == b"http://far.example/page for Basic bWU6c2VjcmV0" * 5000
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        assert all("me:secret@127.0." in url for url in Proxy(listener, Sockets()).environment.values())


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
        *("::1", "fe80::1%eth0", "fd00::1", "::ffff:192.168.1.1", "::ffff:127.0.0.1", "ff02::1"),
        # IPv4 within IPv6: compatible, by NAT64 (two prefixes), by 6to4, by Teredo, by SIIT.
        *("::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::10.0.0.1", "2002:a00:1::1", "2001:0:a00:1::1"),
        *("::ffff:0:10.0.0.1", "fec0::1"),
    ],
)
def test_addresses_outside_the_internet_are_not_called(address: str) -> None:
    assert not is_public(address)


def test_public_addresses_of_the_laptop_and_its_neighbours_are_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With IPv6 nearly every laptop has one."""
    own = (
        (socket.AF_INET6, "2606:4700:1::5", "ffff:ffff:ffff:ffff::"),
        (socket.AF_INET, "8.8.4.4", "255.255.255.0"),
        (socket.AF_INET6, "2606:4700:2::5", None),
    )
    interface = [SimpleNamespace(family=kind, address=host, netmask=mask) for kind, host, mask in own]
    monkeypatch.setattr("psutil.net_if_addrs", lambda: {"eth0": interface})
    for near in ("2606:4700:1::5", "2606:4700:1::77", "8.8.4.4", "::ffff:8.8.4.9", "2606:4700:2::5"):
        assert not is_public(near)
    assert is_public("2606:4700:1:1::5") and is_public("8.8.5.4") and is_public("2606:4700:2::6")


def test_the_internet_is_called_and_services_of_the_laptop_and_its_network_are_not() -> None:
    assert is_public("8.8.8.8") and is_public("64:ff9b::8.8.8.8") and is_public("2606:4700::1111")
    for host in ("127.0.0.1", "0.0.0.0"):
        with serving(host) as server, proxying(may_call=is_public) as proxy:
            with pytest.raises(urllib.error.HTTPError) as refused:
                fetched(f"http://{server}/data", proxy)
            with refused.value as answer:
                assert answer.code == 502


def test_where_others_reach_it_too_it_requires_its_password() -> None:
    with serving() as server, proxying(token="known") as proxy:
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetched(f"http://{server}/data", proxy)
        with refused.value as answer:
            assert answer.code == 407
        known = proxy.replace("://", "://tandem:known@")
        assert fetched(f"http://{server}/data", known).startswith(b"/data for nobody")
