"""How a sealed script downloads: an HTTP proxy (RFC 9110, 7.6 and 9.3.6) in its network, which calls outside.

It calls for the script alone: nobody gets in by it. Where the laptop itself goes through a proxy, each
connection is handed on to that one as it is. Threads that block, in the relay's process.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit
from urllib.request import getproxies

from core.exchange.handshake import Sockets, wake

PLACE = ("127.77.255.254", 3128)
"""Inside, apart from every task's address."""
AT_ONCE = 64
CALL_S = 30.0
_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
_END = b"\r\n\r\n"
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\nToo many downloads at once\r\n"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """Whom to call, and what is said to them first; then ``answer`` is said to the script."""

    host: str
    port: int
    first: bytes
    answer: bytes


class Proxy:
    """``listener``: a socket inside that listens. It ends with ``sockets``."""

    def __init__(self, listener: socket.socket, sockets: Sockets, *, at_once: int = AT_ONCE) -> None:
        self._listener, self._sockets = listener, sockets
        self._places = threading.BoundedSemaphore(at_once)
        self._upstream = _of_this_laptop()

    @property
    def environment(self) -> dict[str, str]:
        """By which programs find it."""
        user = f"{self._upstream[2]}@" if self._upstream and self._upstream[2] else ""
        url = f"http://{user}{PLACE[0]}:{PLACE[1]}"
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        return dict.fromkeys(names, url)

    def start(self) -> None:
        threading.Thread(target=self._listen, name="proxy", daemon=True).start()

    def _listen(self) -> None:
        while not self._sockets.is_closed:
            try:
                inside, _ = self._listener.accept()
            except OSError:
                self._sockets.wait_closed(0.2)
                continue
            if not self._places.acquire(blocking=False):
                with contextlib.suppress(OSError), inside:
                    inside.sendall(_BUSY)
                continue
            threading.Thread(target=self._serve, args=(inside,), name="proxy-call", daemon=True).start()

    def _serve(self, inside: socket.socket) -> None:
        outside = None
        try:
            self._sockets.add(inside)
            inside.settimeout(CALL_S)
            if self._upstream is not None:
                outside = socket.create_connection(self._upstream[:2], CALL_S)
            else:
                asked = read(_head(inside))
                outside = socket.create_connection((asked.host, asked.port), CALL_S)
                inside.sendall(asked.answer)
                outside.sendall(asked.first)
            self._sockets.add(outside)
            for sock in (inside, outside):
                sock.settimeout(None)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # one may go without a word
            back = threading.Thread(target=partial(_carry, outside, inside), name="proxy-back", daemon=True)
            back.start()
            _carry(inside, outside)
            back.join()
        except (OSError, ValueError) as error:
            _log.info("a download did not begin: %s", error)
            with contextlib.suppress(OSError):
                inside.sendall(b"HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n")
        finally:
            for each in (inside, outside):
                if each is not None:
                    self._sockets.end(each)
            self._places.release()


def read(head: bytes) -> Request:
    """What the script asks for. Raises ``ValueError`` for what is no request to a proxy.

    ``head``: with whatever has come of the body behind it, which is passed on as it is.
    """
    head, _, body = head.partition(_END)
    line, _, rest = head.partition(b"\r\n")
    method, target, version = line.decode("latin-1").split(" ")
    if method == "CONNECT":
        found = urlsplit(f"//{target}")
        if not found.hostname or not found.port:
            raise ValueError(f"no host and port: {target[:100]}")
        return Request(
            found.hostname, found.port, b"", f"{version} 200 Connection established\r\n\r\n".encode()
        )
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname:
        raise ValueError(f"no address of http: {target[:100]}")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    # One request a connection: the next one may be for somebody else.
    kept = [each for each in rest.split(b"\r\n") if not each.lower().startswith((b"proxy-", b"connection:"))]
    line = f"{method} {path} {version}".encode("latin-1")
    first = b"\r\n".join([line, b"Connection: close", *filter(None, kept)]) + _END + body
    return Request(url.hostname, url.port or 80, first, b"")


def _head(inside: socket.socket) -> bytes:
    """With what may have come of the body behind it."""
    head = b""
    while _END not in head:
        got = inside.recv(_CHUNK_BYTES)
        if not got or len(head) > _HEAD_BYTES:
            raise ValueError("no whole request")
        head += got
    return head


def _carry(source: socket.socket, sink: socket.socket) -> None:
    """Until one of the two has had enough."""
    try:
        while got := source.recv(_CHUNK_BYTES):
            sink.sendall(got)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        wake(source)
        wake(sink)


def _of_this_laptop() -> tuple[str, int, str] | None:
    """Host, port and user of the proxy by which this laptop goes out, where it has one."""
    found = getproxies()
    url = urlsplit(found.get("https") or found.get("http") or "")
    if url.scheme != "http" or not url.hostname:
        return None
    user, at, _ = url.netloc.rpartition("@")
    return url.hostname, url.port or 80, user if at else ""
