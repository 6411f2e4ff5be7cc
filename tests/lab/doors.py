"""An attacker who blocks doors: ``python -m tests.lab.doors ORDER…`` until its input ends, then a report.

``places HOST PORT FROM…``: as many connections as there are places, from these addresses, replacing closed
ones. ``flood COUNT FROM``: made-up laptops by mDNS, ``COUNT`` at once and more ever after.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from typing import Any

from tests.lab.network import Network

PLACES = 16
GROUP = ("224.0.0.251", 5353)
PACE_S = 0.02
PER_PACE = 20


class Attack:
    """Runs on a host from ``with`` on; ``report`` after it."""

    def __init__(self, network: Network, host: int, *order: str) -> None:
        self.report: dict[str, Any] = {}
        self._process = subprocess.Popen(
            (*network.enter(host), sys.executable, "-m", "tests.lab.doors", *order),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Attack:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "under way\n"
        return self

    def __exit__(self, *failure: object) -> None:
        said, _ = self._process.communicate()
        self.report = json.loads(said)


def main() -> None:
    kind, *rest = sys.argv[1:]
    report = take_places(*rest) if kind == "places" else flood(*rest)
    sys.stdout.write(json.dumps(report) + "\n")


def under_way() -> None:
    sys.stdout.write("under way\n")
    sys.stdout.flush()


def take_places(host: str, port: str, *sources: str) -> dict[str, Any]:
    """``held``: the most at once. ``turned_away``: calls closed immediately, for lack of a place."""
    waiting = selectors.DefaultSelector()
    waiting.register(sys.stdin, selectors.EVENT_READ)
    since: dict[socket.socket, float] = {}
    report = {"opened": 0, "held": 0, "turned_away": 0}
    while True:
        while len(since) < PLACES + len(sources):
            sock = socket.create_connection(
                (host, int(port)), timeout=10.0, source_address=(sources[report["opened"] % len(sources)], 0)
            )
            since[sock] = time.monotonic()
            waiting.register(sock, selectors.EVENT_READ)
            report["opened"] += 1
            if report["opened"] == PLACES + len(sources):
                under_way()
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                return report
            assert isinstance(key.fileobj, socket.socket)
            waiting.unregister(key.fileobj)
            report["turned_away"] += time.monotonic() - since.pop(key.fileobj) < 1.0
            key.fileobj.close()
            report["held"] = max(report["held"], len(since))
            time.sleep(PACE_S)


def flood(count: str, source: str) -> dict[str, Any]:
    from tests.core.discovery.test_sources import made_up

    waiting = selectors.DefaultSelector()
    waiting.register(sys.stdin, selectors.EVENT_READ)
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(source))
        while True:
            for _ in range(PER_PACE):
                sender.sendto(made_up(sent), GROUP)
                sent += 1
            if sent - PER_PACE < int(count) <= sent:
                under_way()
            if waiting.select(PACE_S):
                return {"sent": sent}


if __name__ == "__main__":
    main()
