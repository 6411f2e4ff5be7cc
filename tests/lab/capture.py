"""Everything that passes a host's cable, as any eavesdropper sees it.

``python -m tests.lab.capture FILE`` writes frames, each after its length (u32), until its input ends, and
then prints how many there were and how many it may have missed.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.lab.network import Network

_LENGTH = struct.Struct("<I")
_BUFFER_BYTES = 256 * 2**20
_EVERY_PROTOCOL, _SOL_PACKET, _PACKET_STATISTICS, _SO_RCVBUFFORCE = 3, 263, 6, 33


@dataclass(slots=True)
class Capture:
    """``seen`` and ``missed``: numbers of frames; known at the end."""

    path: Path
    seen: int = 0
    missed: int = 0

    def frames(self) -> Iterator[bytes]:
        data, at = self.path.read_bytes(), 0
        while at < len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            yield data[at + 4 : at + 4 + length]
            at += 4 + length

    def shows(self, *needles: bytes) -> bool:
        """Whether some frame contains one of them."""
        return any(needle in frame for frame in self.frames() for needle in needles)

    def tcp_bytes(self) -> Counter[int]:
        """IPv4 bytes, by port of either end."""
        found: Counter[int] = Counter()
        for frame in self.frames():
            if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP:
                tcp = 14 + 4 * (frame[14] & 15)
                payload = len(frame) - tcp - 4 * (frame[tcp + 12] >> 4)
                for port in struct.unpack_from(">HH", frame, tcp):
                    found[port] += payload
        return found


@contextlib.contextmanager
def capture(network: Network, host: int, path: Path) -> Iterator[Capture]:
    found = Capture(path)
    with subprocess.Popen(
        (*network.enter(host), sys.executable, "-m", "tests.lab.capture", str(path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin and program.stdout
        assert program.stdout.readline() == "captures\n"
        try:
            yield found
        finally:
            program.stdin.close()
            found.seen, found.missed = json.loads(program.stdout.readline())


def main(path: Path) -> None:
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL)) as sock,
        path.open("wb") as file,
    ):
        with contextlib.suppress(PermissionError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        sock.bind(("eth0", _EVERY_PROTOCOL))
        sock.settimeout(0.2)
        over = threading.Event()
        threading.Thread(target=_wait_for_end, args=(over,), daemon=True).start()
        print("captures", flush=True)
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                frame = sock.recv(2**18)
                file.write(_LENGTH.pack(len(frame)) + frame)
        seen, missed = struct.unpack("II", sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        print(json.dumps([seen, missed]), flush=True)


def _wait_for_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
