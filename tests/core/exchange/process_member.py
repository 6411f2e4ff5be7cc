"""One member in its own process: ``python -m tests.core.exchange.process_member ORDER``.

Prints ``step N DIGEST`` for each step, ``waits RANK CONNECTION`` for a long wait, and ends with its stdin.
"""

from __future__ import annotations

import hashlib
import socket
import sys
import threading
from pathlib import Path

import msgspec

from core.exchange.driver import Exchange
from core.exchange.keys import Keyring
from core.exchange.state import Limits, Peer
from core.home.identity import load_or_create
from core.vocabulary.errors import Problem
from tests.core.exchange.members import keys_of, numbers

SILENT_S = 2.0
"""Silence after which another session is tried."""


class Order(msgspec.Struct, frozen=True):
    rank: int
    ports: tuple[int, ...]
    listener: int
    """The descriptor of the listener at this member's port."""
    folder: str
    elements: int
    packs: int
    steps: int


def main(order: Order) -> None:
    folder = Path(order.folder)
    of = [load_or_create(folder / f"member-{rank}") for rank in range(len(order.ports))]
    pins = {rank: each.cert_der for rank, each in enumerate(of) if rank != order.rank}
    peers = [Peer(rank, ("127.0.0.1", order.ports[rank])) for rank in pins]
    listener = socket.socket(fileno=order.listener)
    limits = Limits(silent_s=SILENT_S)
    exchange = Exchange(order.rank, peers, Keyring(of[order.rank], pins), "run", listener, limits=limits)
    exchange.start()
    threading.Thread(target=watch, args=(exchange,), daemon=True).start()
    for step in range(order.steps):
        keys = keys_of(step, order.packs)
        for key in keys:
            exchange.hand_over(key, numbers(order.rank, order.elements, key.pack))
        digest = hashlib.sha256(b"".join(total.tobytes() for total in exchange.wait(keys))).hexdigest()
        print("step", step, digest, flush=True)
    sys.stdin.read()
    exchange.close(Problem(code="done", what="The run is over."), linger_s=5.0)


def watch(exchange: Exchange) -> None:
    while True:
        threading.Event().wait(0.1)
        for each in exchange.waiting():
            if each.since_s > 1.0:
                print("waits", each.rank, each.connection, flush=True)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Order))
