"""Nodes reduced to file transfer: a port each, and a link that is only claimed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from core.home.identity import Identity, load_or_create
from core.net.address import Address
from core.net.strangers import Strangers
from core.transfer.hub import Transfers
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId

GONE = Problem(code="link-closed", what="The link closed.")


@dataclass
class Peer:
    """One node's knowledge of the other."""

    certificate: bytes
    name: str
    session_key: bytes
    address: Address | None


class Node:
    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.identity: Identity = load_or_create(folder / name)
        self.peers: dict[DeviceId, Peer] = {}
        self.transfers = Transfers(
            self.identity,
            peer_of=self.peers.get,
            pins=lambda: [peer.certificate for peer in self.peers.values()],
        )
        self.listening = socket.create_server(("127.0.0.1", 0))
        self._strangers = Strangers()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def device(self) -> DeviceId:
        return self.identity.device_id

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.listening.getsockname()[1])

    def knows(self, other: Node, key: bytes = b"key", address: Address | None = None) -> None:
        self.peers[other.device] = Peer(other.identity.cert_der, other.name, key, address or other.address)

    def close(self) -> None:
        self.transfers.close(GONE)
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, (host, _) = self.listening.accept()
                if guest := self._strangers.admit(host):
                    self.transfers.accept(sock, guest)
                else:
                    sock.close()


@contextlib.asynccontextmanager
async def linked_nodes(folder: Path, *names: str) -> AsyncIterator[list[Node]]:
    """Each with each."""
    nodes = [Node(folder, name) for name in names]
    for one, other in itertools.permutations(nodes, 2):
        one.knows(other)
    try:
        yield nodes
    finally:
        for node in nodes:
            node.close()
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def two_nodes(folder: Path) -> AsyncIterator[tuple[Node, Node]]:
    async with linked_nodes(folder, "Anna", "Ben") as (anna, ben):
        yield anna, ben
