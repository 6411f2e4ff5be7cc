"""File transfers with every linked device. On the core loop; its threads wait for the network."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Protocol

from core.home.certificate import device_id
from core.home.identity import Identity
from core.net import tls
from core.net.address import Address
from core.net.strangers import Guest
from core.net.tls_stream import Sockets, TlsStream
from core.project.light_receipts import AnyReceipt
from core.session.state import SessionLimits
from core.transfer import connections
from core.transfer.fetch import Fetch
from core.transfer.lane import Lane
from core.transfer.offer import OfferedFiles
from core.transfer.words import LaneCall
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId

TOLD_EACH_S = 0.2
"""Minimum interval of progress reports."""
_RENEWED = Problem(
    code="link-renewed", what="The link to the other laptop was renewed.", fix="Start the run again."
)
_CALLED_OFF = Problem(code="called-off", what="The transfer was cancelled.")
_log = logging.getLogger(__name__)


class LinkedPeer(Protocol):
    """What a lane needs to know of a linked device."""

    @property
    def certificate(self) -> bytes: ...

    @property
    def name(self) -> str: ...

    @property
    def session_key(self) -> bytes:
        """The same on both sides, and different for each session of the link."""

    @property
    def address(self) -> Address | None:
        """Where it listens; None: the link has just ended."""


class Transfers:
    """A node's lanes. ``peer_of``: a linked device, or None; called from any thread. ``pins``: the
    certificates (DER) of devices that may connect."""

    def __init__(
        self,
        identity: Identity,
        *,
        peer_of: Callable[[DeviceId], LinkedPeer | None],
        pins: Callable[[], Collection[bytes]],
    ) -> None:
        self._identity, self._peer_of, self._pins = identity, peer_of, pins
        self._lock = threading.Lock()
        self._lanes: dict[DeviceId, Lane] = {}
        self._loop = asyncio.get_running_loop()
        self._arriving = Sockets()

    def offer(self, device: DeviceId, files: OfferedFiles) -> Callable[[], None]:
        """Let the device request these files. Returns a function that withdraws the offer."""
        lane = self._lane(device)
        if lane is None:
            return lambda: None
        lane.offer(files)
        return partial(lane.withdraw, files)

    async def fetch(
        self,
        device: DeviceId,
        receipt: AnyReceipt,
        on_piece: Callable[[], None] = lambda: None,
        *,
        silent_s: float | None = None,
    ) -> None:
        """Fetch everything that the receipt wants. Raises ``TandemError``. If it is cancelled, it writes no
        more when it has ended. ``silent_s``: as in ``Fetch``."""
        lane = self._lane(device)
        if lane is None:
            raise TandemError(code="link-gone", what="The link to the laptop that has the files is gone.")
        told_s = 0.0

        def came() -> None:
            nonlocal told_s
            if (now_s := time.monotonic()) - told_s >= TOLD_EACH_S:
                told_s = now_s
                self._on_loop(on_piece)

        fetch = Fetch(lane, receipt, came, silent_s)
        done = self._loop.create_future()

        def run() -> None:
            error: Exception | None = None
            try:
                fetch.run()
            except Exception as raised:
                error = raised
            self._on_loop(partial(done.set_result, error))

        threading.Thread(target=run, name="files-fetch", daemon=True).start()
        try:
            error = await asyncio.shield(done)
        except asyncio.CancelledError:
            fetch.stop(_CALLED_OFF)
            while not done.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(done)
            raise
        if error is not None:
            raise error
        on_piece()

    def accept(self, sock: socket.socket, guest: Guest) -> None:
        """Take a connection whose first byte marks a file transfer. ``guest``: its place among strangers."""
        threading.Thread(
            target=self._accept, args=(sock, guest, tuple(self._pins())), name="files-accept", daemon=True
        ).start()

    def reached(self, device: DeviceId) -> None:
        """The link to the device works, perhaps again: call it without waiting for earlier calls."""
        with self._lock:
            lane = self._lanes.get(device)
        if lane is not None:
            lane.call_anew()

    def ended(self, device: DeviceId, problem: Problem) -> None:
        """The link's session with the device is over."""
        with self._lock:
            lane = self._lanes.pop(device, None)
        if lane:
            lane.end(problem)

    def close(self, problem: Problem) -> None:
        self._arriving.close()
        for device in list(self._lanes):
            self.ended(device, problem)

    def _lane(self, device: DeviceId) -> Lane | None:
        """Any thread."""
        peer = self._peer_of(device)
        if peer is None:
            return None
        with self._lock:
            lane, old = self._lanes.get(device), None
            if lane is None or lane.is_over or lane.link != peer.session_key:
                lane, old = self._new_lane(device, peer), lane
                self._lanes[device] = lane
                lane.start()
        if old:
            old.end(_RENEWED)
        return lane

    def _new_lane(self, device: DeviceId, peer: LinkedPeer) -> Lane:
        certificate = peer.certificate
        context = tls.client_context(self._identity, certificate)

        def dial(call: LaneCall, sockets: Sockets) -> TlsStream:
            now = self._peer_of(device)  # its address may have changed
            if now is None or (address := now.address) is None:
                raise ConnectionError("there is no link")
            return connections.dial(address, context, certificate, call, sockets)

        leads = self._identity.device_id < device
        return Lane(peer.name, peer.session_key, dial, leads=leads, limits=SessionLimits())

    def _accept(self, sock: socket.socket, guest: Guest, pins: Collection[bytes]) -> None:
        """Runs in a separate thread. Until its call is read, a caller counts as a stranger."""
        try:
            context = tls.server_context(self._identity, pins)
            stream, call = connections.accept(sock, context, pins, self._arriving)
            lane = self._lane(device_id(stream.peer_der))
            if lane is not None and lane.link == call.link:
                lane.called(stream, call)
            else:
                stream.end()
        except (OSError, TandemError) as error:
            _log.debug("a connection for files was refused: %s", error)
        finally:
            self._on_loop(guest.leave)

    def _on_loop(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the node has ended
            self._loop.call_soon_threadsafe(call)
