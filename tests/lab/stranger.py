"""An outsider at a run's doors.

``python -m tests.lab.stranger`` takes an order as its input, and answers with a report. If the order says so,
as another user: everything is loaded before.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from core.exchange import frames, handshake, keys
from core.exchange.frames import MemberHello
from core.exchange.keys import Keyring, RunPair
from core.net.tls_stream import Sockets
from tests.lab.network import Network

LIMIT_S = 20.0
"""For one answer; a node and a member give strangers 5 s."""
TENSORFLOW_S = 8.0
ALERT = 0x15
"""The first byte of a TLS reply to a client that does not speak it (RFC 8446, 5.1)."""
_NOBODY = 65534
# A gRPC client's first bytes; a server answers with its own settings.
_GRPC = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """``hosts``: whose ports to try; all of them if ``ports`` names none. ``paths``: to open, here.
    ``read``: a file that a raw TensorFlow client tries to read through every open port. ``nobody``: as
    that user."""

    hosts: tuple[str, ...]
    ports: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    read: str = ""
    nobody: bool = False
    doors: tuple[Door, ...] = ()


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """A member's address, and the certificates and keys to try there, by a name."""

    host: str
    port: int
    run: str
    certificate: bytes
    """The member's own, which anybody may know."""
    pairs: dict[str, tuple[bytes, bytes]]
    """The caller's certificate and private key."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """``plain``, ``silent``: an open port's reply to gRPC's first bytes, and to none. ``tls``: the version
    spoken, and the reply to a client without a certificate; ``old_tls``: to one that only knows 1.2."""

    plain: bytes
    silent: bytes
    tls: tuple[str, bytes]
    old_tls: tuple[str, bytes]
    tensorflow: str = ""
    """The part of the file read by a raw client, else the error's name."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """By ``host:port``, path, and name of a pair. ``doors``: let in, or why not."""

    user: int
    open: dict[str, Answers]
    paths: dict[str, str]
    doors: dict[str, str] = {}


def send(network: Network, host: int, order: Order, limit_s: float = 240.0) -> Report:
    """Executes the order on a laptop."""
    done = subprocess.run(
        (*network.enter(host), sys.executable, "-m", "tests.lab.stranger"),
        input=msgspec.json.encode(order),
        capture_output=True,
        timeout=limit_s,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return msgspec.json.decode(done.stdout, type=Report)


def refused(report: Report) -> None:
    """Every open port speaks TLS 1.3, and sends nothing to a client without a certificate."""
    for place, answers in report.open.items():
        assert not answers.silent, place
        assert not answers.plain or answers.plain[0] == ALERT, (place, answers.plain)
        assert answers.tls == ("TLSv1.3", b""), (place, answers.tls)
        assert answers.old_tls[1] == b"" and not answers.old_tls[0].startswith("TLS"), (place, answers)


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    tensorflow: Any = __import__("tensorflow") if order.read else None
    if order.nobody:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)

    def answers(place: tuple[str, int]) -> Answers:
        return Answers(
            plain=said(*place, _GRPC),
            silent=said(*place, b""),
            tls=said_over_tls(*place, ssl.TLSVersion.TLSv1_3),
            old_tls=said_over_tls(*place, ssl.TLSVersion.TLSv1_2),
            tensorflow=read_by_tensorflow(tensorflow, *place, order.read) if tensorflow else "",
        )

    places = [(host, port) for host in order.hosts for port in open_ports(host, order.ports)]
    with ThreadPoolExecutor(4) as pool:
        found = dict(zip(places, pool.map(answers, places), strict=True))
    report = Report(
        user=os.getuid(),
        open={f"{host}:{port}": each for (host, port), each in found.items()},
        paths={path: opened(path) for path in order.paths},
        doors={name: let_in(door, name) for door in order.doors for name in door.pairs},
    )
    sys.stdout.buffer.write(msgspec.json.encode(report))
    sys.stdout.flush()
    os._exit(0)  # a TensorFlow client may still wait


def open_ports(host: str, ports: Sequence[int]) -> list[int]:
    found = []
    for port in ports or range(1, 2**16):
        with socket.socket() as sock:
            sock.settimeout(LIMIT_S)
            # A call to a port in the ephemeral range may come from that very port and connect to itself.
            if sock.connect_ex((host, port)) == 0 and sock.getsockname() != sock.getpeername():
                found.append(port)
    return found


def said(host: str, port: int, words: bytes) -> bytes:
    """Everything sent until the other side closes."""
    with socket.create_connection((host, port), timeout=LIMIT_S) as sock:
        sock.sendall(words)
        return _all(sock)


def said_over_tls(host: str, port: int, newest: ssl.TLSVersion) -> tuple[str, bytes]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = newest
    with socket.create_connection((host, port), timeout=LIMIT_S) as sock:
        try:
            with context.wrap_socket(sock) as stream:
                # In TLS 1.3 a client only learns afterwards that it should have shown a certificate.
                return str(stream.version()), _all(stream)
        except OSError as error:
            return type(error).__name__, b""


def read_by_tensorflow(tf: Any, host: str, port: int, path: str) -> str:
    found: list[str] = []

    def read() -> None:
        options = tf.compat.v1.ConfigProto(operation_timeout_in_ms=int(1000 * TENSORFLOW_S))
        try:
            with tf.Graph().as_default() as graph:
                contents = tf.io.read_file(path)
                with tf.compat.v1.Session(f"grpc://{host}:{port}", graph=graph, config=options) as session:
                    found.append(session.run(contents).decode(errors="replace"))
        except tf.errors.OpError as error:
            found.append(type(error).__name__)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(2 * TENSORFLOW_S)
    return found[0] if found else "no answer"


def opened(path: str) -> str:
    """``opened``, or why it can't be."""
    try:
        if Path(path).is_socket():
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(path)
        elif Path(path).is_dir():
            next(Path(path).iterdir())
        else:
            Path(path).open("rb").close()
    except OSError as error:
        return type(error).__name__
    return "opened"


def let_in(door: Door, name: str) -> str:
    ring = Keyring(RunPair(*door.pairs[name]), {0: door.certificate})
    hello = MemberHello(
        version=frames.VERSION, run=door.run, rank=1, nonce=os.urandom(8), carries="from-caller"
    )
    try:
        connection = handshake.dial((door.host, door.port), 0, ring, hello, Sockets())
    except OSError as error:
        return str(error)
    connection.stream.sock.close()
    return "let in"


def fresh_pair() -> tuple[bytes, bytes]:
    """As a node makes one for every run."""
    pair = keys.make()
    return pair.cert_der, pair.private_key


def _all(sock: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(OSError):  # reset, or refused within TLS
        while data := sock.recv(2**16):
            found += data
    return found


if __name__ == "__main__":
    main()
