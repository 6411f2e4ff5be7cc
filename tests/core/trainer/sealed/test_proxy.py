from __future__ import annotations

import http.server
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from core.exchange.handshake import Sockets
from core.trainer.sealed.proxy import AT_ONCE, Proxy, read


def test_a_tunnel_is_asked_for_by_host_and_port() -> None:
    asked = read(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n")
    assert (asked.host, asked.port, asked.first) == ("example.org", 443, b"")
    assert asked.answer.startswith(b"HTTP/1.1 200 ")
    assert read(b"CONNECT [::1]:8443 HTTP/1.1\r\n\r\n").host == "::1"


def test_a_page_is_asked_for_as_its_server_wants_to_be_asked() -> None:
    asked = read(
        b"GET http://example.org:8080/a/b?c=d HTTP/1.1\r\nHost: example.org:8080\r\n"
        b"Proxy-Connection: keep-alive\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\nbody"
    )
    assert (asked.host, asked.port, asked.answer) == ("example.org", 8080, b"")
    assert asked.first == (
        b"GET /a/b?c=d HTTP/1.1\r\nConnection: close\r\nHost: example.org:8080\r\nAccept: */*\r\n\r\nbody"
    )
    assert read(b"GET http://example.org HTTP/1.1\r\n\r\n").first.startswith(b"GET / HTTP/1.1\r\n")


def test_a_body_is_passed_on_as_it_is_whatever_its_lines_begin_with() -> None:
    body = b"a\r\n\r\nConnection: is a word\r\nProxy-like\r\n"
    assert read(b"POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n" + body).first == (
        b"POST / HTTP/1.1\r\nConnection: close\r\nHost: example.org\r\n\r\n" + body
    )


def test_more_downloads_than_there_are_places_are_told_to_come_later() -> None:
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
def proxying(at_once: int = AT_ONCE) -> Iterator[str]:
    sockets, listener = Sockets(), socket.create_server(("127.0.0.1", 0))
    sockets.add(listener)
    Proxy(listener, sockets, at_once=at_once).start()
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


def test_who_is_not_there_is_told_as_proxies_tell_it() -> None:
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
        assert all("me:secret@127.77." in url for url in Proxy(listener, Sockets()).environment.values())
