"""An HTTP proxy (RFC 9110, 7.6 and 9.3.6) for a sealed script's downloads, which listens in its network.

It connects only for the script: nobody gets in through it. If the laptop itself uses a proxy, each connection
is passed on to that one unchanged. Blocking threads, in the relay's process.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import ipaddress
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit
from urllib.request import getproxies

import psutil

from core.net.tls_stream import Sockets, wake

PLACE = ("127.77.255.254", 3128)
"""The proxy's address inside; no task has it."""
AT_ONCE = 64
"""Most downloads at once."""
CALL_S = 30.0
_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
_END = b"\r\n\r\n"
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\nToo many downloads at once\r\n"
_NO_PASSWORD = (
    b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="tandem"\r\n'
    b"Connection: close\r\n\r\n"
)
_WITH_IPV4 = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")))
"""Ranges whose last four bytes are an IPv4 address (RFC 4291, 6052, 8215 and 2765)."""
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """The address to connect to, and what to send there first; ``answer`` goes to the script."""

    host: str
    port: int
    first: bytes
    answer: bytes


def is_public(address: str) -> bool:
    """Whether the address is on the internet: neither this laptop's own nor in its network."""
    found = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    return (
        found.is_global
        and not found.is_multicast
        and not (isinstance(found, ipaddress.IPv6Address) and found.is_site_local)
        and not any(found in network for network in _own_networks())
    )


def _unwrap(address: _Address) -> _Address:
    """The IPv4 address embedded in an IPv6 one, if any; otherwise the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    found = address.ipv4_mapped or address.sixtofour
    if found is None and any(address in network for network in _WITH_IPV4):
        found = ipaddress.IPv4Address(address.packed[-4:])
    return found or address


def _own_networks() -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """This laptop's networks, which may have public addresses."""
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if each.family in (socket.AF_INET, socket.AF_INET6):
                host = ipaddress.ip_address(each.address.partition("%")[0])
                mask = ipaddress.ip_address(each.netmask) if each.netmask else None
                length = bin(int(mask)).count("1") if mask is not None else 0
                yield ipaddress.ip_network((host, length or host.max_prefixlen), strict=False)


class Proxy:
    """Serves ``listener`` until ``sockets`` is closed.

    ``token``: a password, if others than the script can reach it. ``may_call``: judges an address to call.
    """

    def __init__(
        self,
        listener: socket.socket,
        sockets: Sockets,
        *,
        at_once: int = AT_ONCE,
        token: str = "",
        may_call: Callable[[str], bool] = is_public,
    ) -> None:
        self._listener, self._sockets = listener, sockets
        self._may_call = may_call
        self._places = threading.BoundedSemaphore(at_once)
        self._upstream = _laptops_proxy()
        # The laptop's proxy asks for a password of its own.
        self._token = "" if self._upstream else token

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables by which programs find the proxy."""
        user = self._upstream[2] if self._upstream else f"tandem:{self._token}" if self._token else ""
        host, port = self._listener.getsockname()[:2]
        url = f"http://{user}{'@' if user else ''}{host}:{port}"
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
                head = _head(inside)
                if self._token and not hmac.compare_digest(password(head).encode(), self._token.encode()):
                    inside.sendall(_NO_PASSWORD)
                    return
                request = read(head)
                outside = self._call(request)
                inside.sendall(request.answer)
                outside.sendall(request.first)
            self._sockets.add(outside)
            for sock in (inside, outside):
                sock.settimeout(None)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a peer may vanish
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

    def _call(self, request: Request) -> socket.socket:
        """Security invariant: connects to the address that was checked, without resolving its name again."""
        found = socket.getaddrinfo(request.host, request.port, type=socket.SOCK_STREAM)
        error: OSError = PermissionError(f"{request.host} is not an internet address")
        for *_, place in found:
            if self._may_call(str(place[0])):
                try:
                    return socket.create_connection((str(place[0]), request.port), CALL_S)
                except OSError as unreached:
                    error = unreached
        raise error


def password(head: bytes) -> str:
    """The *basic* credentials in a request to the proxy (RFC 7617); ``""`` for none."""
    for line in head.partition(_END)[0].split(b"\r\n"):
        name, _, text = line.partition(b":")
        if name.lower() == b"proxy-authorization" and text.strip()[:6].lower() == b"basic ":
            with contextlib.suppress(ValueError):
                return base64.b64decode(text.strip()[6:]).partition(b":")[2].decode()
    return ""


def read(head: bytes) -> Request:
    """The script's request. Raises ``ValueError`` if it is not a request to a proxy.

    ``head``: may be followed by part of the body, which is passed on unchanged.
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
        raise ValueError(f"not an http address: {target[:100]}")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    # One request per connection: the next one may be for another host.
    kept = [each for each in rest.split(b"\r\n") if not each.lower().startswith((b"proxy-", b"connection:"))]
    line = f"{method} {path} {version}".encode("latin-1")
    first = b"\r\n".join([line, b"Connection: close", *filter(None, kept)]) + _END + body
    return Request(url.hostname, url.port or 80, first, b"")


def _head(inside: socket.socket) -> bytes:
    """The head, and any part of the body that arrived with it."""
    head = b""
    while _END not in head:
        got = inside.recv(_CHUNK_BYTES)
        if not got or len(head) > _HEAD_BYTES:
            raise ValueError("no whole request")
        head += got
    return head


def _carry(source: socket.socket, sink: socket.socket) -> None:
    """Copies until one of the two closes."""
    try:
        while got := source.recv(_CHUNK_BYTES):
            sink.sendall(got)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        wake(source)
        wake(sink)


def _laptops_proxy() -> tuple[str, int, str] | None:
    """Host, port and user of the proxy that this laptop itself uses, if any."""
    found = getproxies()
    url = urlsplit(found.get("https") or found.get("http") or "")
    if url.scheme != "http" or not url.hostname:
        return None
    user, at, _ = url.netloc.rpartition("@")
    return url.hostname, url.port or 80, user if at else ""
