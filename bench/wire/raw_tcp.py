"""The speed of one TCP connection through a link: ``python -m bench.wire.raw_tcp``. No TLS, no disk."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Sequence

PORT = 27700
CHUNK_BYTES = 1 << 20


def bytes_s(here: Sequence[str], there: Sequence[str], address: str, size: int) -> float:
    """``here``, ``there``: prefixes of a command line that run it on each side. ``address``: there."""
    module = [sys.executable, "-m", "bench.wire.raw_tcp"]
    with subprocess.Popen([*there, *module, "receive"], stdout=subprocess.PIPE, text=True) as receiving:
        assert receiving.stdout is not None
        receiving.stdout.readline()
        subprocess.run([*here, *module, "send", address, str(size)], check=True)
        came, seconds = receiving.stdout.readline().split()
    if int(came) != size:
        raise RuntimeError(f"{came} of {size} bytes came")
    return size / float(seconds)


def receive() -> None:
    with socket.create_server(("", PORT)) as server:
        print("listens", flush=True)
        sock, _ = server.accept()
        began_s, came, chunk = time.monotonic(), 0, bytearray(CHUNK_BYTES)
        while got := sock.recv_into(chunk):
            came += got
        print(came, time.monotonic() - began_s)


def send(address: str, size: int) -> None:
    chunk = memoryview(bytes(CHUNK_BYTES))
    with socket.create_connection((address, PORT)) as sock:
        while size:
            size -= sock.send(chunk[: min(size, CHUNK_BYTES)])


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive()
    else:
        send(sys.argv[2], int(sys.argv[3]))
