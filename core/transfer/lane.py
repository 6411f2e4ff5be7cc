"""File transfers with one device: one session, run by threads. Thread-safe."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from queue import SimpleQueue

import msgspec

from core.net.tls_stream import Sockets, TlsStream
from core.project.send import NOT_OFFERED, NotYet
from core.session import frames
from core.session.driver import SessionDriver
from core.session.frames import MalformedFrame
from core.session.halves import Halves
from core.session.interface import ConnectionPair
from core.session.state import Message, NotSent, SessionLimits
from core.transfer.fetch import Fetch, broken
from core.transfer.machine import WINDOW
from core.transfer.offer import OfferedFiles
from core.transfer.words import BLOCK_BYTES, VERSION, WORDS, Ask, Denied, Here, LaneCall, LaneWord, Outline
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import ProjectId

MOST_ASKS, MOST_EARLY = 64, 32
"""Limits per device: pending requests; among them, requests for files that are not here yet."""
RESTS, LEAST_BLOCK_S, SLOWER = 6, 0.005, 1.25
"""While a training runs here: the pause after each block, as a multiple of the block's duration; the shortest
duration to assume; the factor by which the assumed duration grows while none can be measured."""
MOST_UNREAD_BYTES = 2 * WINDOW * BLOCK_BYTES
"""Limit of answers that the device has not confirmed; beyond it no more files are read for the device."""
_ENCODER = msgspec.msgpack.Encoder()
_log = logging.getLogger(__name__)

Dial = Callable[[LaneCall, Sockets], TlsStream]


class Lane:
    """File transfers with one device. ``link``: the key of the link's session. ``dial`` raises
    ``OSError``."""

    def __init__(self, name: str, link: bytes, dial: Dial, *, leads: bool, limits: SessionLimits) -> None:
        self.link = link
        self._name, self._dial = name, dial
        self._sockets, self._halves = Sockets(), Halves()
        self._lock = threading.Lock()
        self._numbers = count()
        self._fetches: dict[int, Fetch | None] = {}
        """Fetches by the number of their request; None: the answer is no longer wanted."""
        self._offers: dict[ProjectId, OfferedFiles] = {}
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        """For the serving thread."""
        self._early: list[Ask | Outline] = []
        """Pending requests, in order; changed by the serving thread alone."""
        self._due: set[ProjectId] = set()
        """Manifests with newly arrived data, for the serving thread."""
        self._withdrawn: SimpleQueue[OfferedFiles] = SimpleQueue()
        """Offers to be closed by the serving thread."""
        self._waiting = 0
        self._word: LaneWord | None = None
        self._room = memoryview(b"")
        """Buffer for the incoming message."""
        self._ended: Problem | None = None
        self._asked = threading.Event()
        """Set by each request, and once nothing more will be sent."""
        self._block_s = LEAST_BLOCK_S
        """How long the last block took while a training ran here."""
        self._session = SessionDriver(self, f"files-{name}", leads=leads, can_call=True, limits=limits)
        self._server = threading.Thread(target=self._serve, name=f"files-{name}-serve", daemon=True)

    # The node's side

    def start(self) -> None:
        self._server.start()
        self._session.start()

    def offer(self, offer: OfferedFiles) -> None:
        """Send these files on request from now on; earlier requests are answered now."""
        with self._lock:
            if not (is_over := self._ended is not None):
                self._offers[offer.manifest] = offer
        if is_over:  # no thread will serve the offer
            offer.withdrawn.set()
            offer.close()
            return
        offer.on_more = partial(self._more, offer)
        self._jobs.put(partial(self._answer_waiting, offer.manifest))

    def withdraw(self, offer: OfferedFiles) -> None:
        offer.withdrawn.set()
        self._asked.set()
        with self._lock:
            is_offered = self._offers.get(offer.manifest) is offer
            if is_offered:
                del self._offers[offer.manifest]
        self._withdrawn.put(offer)
        self._session.wake()
        self._jobs.put(self._close_withdrawn)
        if is_offered:
            self._jobs.put(partial(self._deny_waiting, offer.manifest))

    def _more(self, offer: OfferedFiles) -> None:
        """Called when more of these files can be read. Any thread."""
        with self._lock:
            if (
                self._offers.get(offer.manifest) is not offer
                or offer.manifest in self._due
                or all(ask.manifest != offer.manifest for ask in self._early)
            ):
                return
            self._due.add(offer.manifest)
        self._jobs.put(partial(self._answer_waiting, offer.manifest))

    def called(self, stream: TlsStream, call: LaneCall) -> None:
        """The device called. May wait for the session's first word."""
        if pair := self._halves.add(call.nonce, call.carries, stream):
            self._session.offer(pair, call.seen)

    def call_anew(self) -> None:
        """As in ``Session``."""
        self._session.call_anew()

    def end(self, problem: Problem) -> None:
        """Stop sending and receiving."""
        self._stop(problem)
        self._session.end()
        self._sockets.close()

    def _stop(self, problem: Problem) -> None:
        with self._lock:
            if self._ended is not None:
                return
            self._ended = problem
            fetches, self._fetches = {each for each in self._fetches.values() if each}, {}
            offers, self._offers = self._offers, {}
        self._halves.end()
        self._asked.set()
        for offer in offers.values():
            offer.withdrawn.set()
            self._withdrawn.put(offer)
        self._jobs.put(self._close_withdrawn)
        self._jobs.put(None)
        for fetch in fetches:
            fetch.stop(problem)

    @property
    def is_over(self) -> bool:
        with self._lock:
            return self._ended is not None

    # A fetch's side

    def ask(self, fetch: Fetch) -> bool:
        """Ask for what the fetch wants next. False: it wants nothing now. Raises ``TandemError`` if the lane
        has ended."""
        with self._lock:
            if self._ended is not None:
                raise TandemError.of(self._ended)
            number = next(self._numbers)
            extents = fetch.machine.ask(number)
            if not extents:
                return False
            self._fetches[number] = fetch
        self._session.put(Message(_about(Ask(number, fetch.manifest, extents))))
        self._session.push()
        return True

    def outline(self, fetch: Fetch, file: int) -> None:
        """Ask for a file's packed chunks. Raises ``TandemError`` if the lane has ended."""
        with self._lock:
            if self._ended is not None:
                raise TandemError.of(self._ended)
            number = next(self._numbers)
            self._fetches[number] = fetch
        self._session.put(Message(_about(Outline(number, fetch.manifest, file))))
        self._session.push()

    def forget(self, fetch: Fetch) -> None:
        """Discard further answers for this fetch."""
        with self._lock:
            for number in [number for number, each in self._fetches.items() if each is fetch]:
                self._fetches[number] = None

    # The session's side

    def call(self, seen: int) -> ConnectionPair:
        nonce = os.urandom(8)
        sending = self._dial(LaneCall(VERSION, self.link, nonce, "from-caller", seen), self._sockets)
        try:
            receiving = self._dial(LaneCall(VERSION, self.link, nonce, "to-caller", seen), self._sockets)
        except BaseException:
            sending.end()
            raise
        return ConnectionPair(sending, receiving)

    def connected(self) -> None:
        pass

    def disconnected(self) -> None:
        pass

    def announced(self, about: bytes, size: int, is_live: Callable[[], bool]) -> memoryview:
        self._word = word = frames.decode(about, WORDS)
        if not isinstance(word, Here):
            if size:
                raise MalformedFrame(f"{size} bytes with a {type(word).__name__}")
            return memoryview(b"")
        if size > BLOCK_BYTES:
            raise MalformedFrame(f"a block of {size} bytes")
        self._room = memoryview(bytearray(size))
        return self._room

    def came(self, received: int) -> None:
        pass

    def arrived(self) -> None:
        match self._word:
            case Ask() | Outline() as ask:
                with self._lock:
                    self._waiting += 1
                    is_too_much = self._waiting > MOST_ASKS or (
                        isinstance(ask, Ask) and ask.total_bytes > BLOCK_BYTES
                    )
                self._asked.set()
                if is_too_much:
                    raise MalformedFrame("too much was requested")
                self._jobs.put(partial(self._answer, ask))
            case Here(number) | Denied(number) as word:
                with self._lock:
                    is_asked, fetch = number in self._fetches, self._fetches.pop(number, None)
                if not is_asked:
                    raise MalformedFrame(f"an answer to request {number}, which was never sent")
                if fetch and isinstance(word, Here):
                    fetch.arrived(number, self._room)
                elif fetch and isinstance(word, Denied):
                    fetch.stop(word.why.problem)

    def left(self, problem: Problem) -> None:
        self.end(problem)

    def given_up(self, error: MalformedFrame | NotSent) -> Problem:
        _log.warning("files to and from %s: %s", self._name, error)
        problem = broken(str(error))
        self._stop(problem)
        return problem

    def broke(self, error: Exception) -> None:
        _log.error("files to and from %s", self._name, exc_info=error)
        self.end(broken(str(error)))

    # Answers

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception as error:
                self.broke(error)

    def _answer(self, ask: Ask | Outline) -> None:
        """Answer a request, after earlier ones for the same files: the other side requires this order."""
        with self._lock:
            self._early.append(ask)
        self._answer_waiting(ProjectId(ask.manifest))
        with self._lock:
            too_many = self._early[:-MOST_EARLY]
        self._deny(too_many)

    def _answer_waiting(self, manifest: ProjectId) -> None:
        """Answer the pending requests for a manifest's files, as far as the files are here.

        If data arrives while files are read for a request, this is called again, as ``_early`` still has the
        request.
        """
        with self._lock:
            self._due.discard(manifest)
        while True:
            with self._lock:
                offer = self._offers.get(manifest)
                ask = next((ask for ask in self._early if ask.manifest == manifest), None)
            if offer is None or ask is None:
                return
            try:
                data = memoryview(
                    offer.read(ask.extents) if isinstance(ask, Ask) else offer.outline(ask.file)
                )
            except NotYet:
                return
            except TandemError as error:
                self._reply(ask, Message(_about(Denied(ask.number, frames.goodbye(error.problem)))), offer)
            else:
                self._reply(ask, Message(_about(Here(ask.number)), len(data), _slice_of(data)), offer)
            if offer.yields:
                self._rest(offer)

    def _close_withdrawn(self) -> None:
        while not self._withdrawn.empty():
            self._withdrawn.get().close()

    def _deny(self, asks: Iterable[Ask | Outline]) -> None:
        """Deny those of these requests that are still pending."""
        for ask in asks:
            if ask in self._early:
                self._reply(ask, Message(_about(Denied(ask.number, frames.goodbye(NOT_OFFERED)))))

    def _deny_waiting(self, manifest: ProjectId) -> None:
        with self._lock:
            left = [ask for ask in self._early if ask.manifest == manifest and manifest not in self._offers]
        self._deny(left)

    def _reply(self, ask: Ask | Outline, answer: Message, offer: OfferedFiles | None = None) -> None:
        """Send an answer. First waits while the device has confirmed too little, unless the lane ends or the
        offer is withdrawn. Closes withdrawn offers meanwhile."""

        def is_off() -> bool:
            is_over = self._ended is not None or (offer is not None and offer.withdrawn.is_set())
            return is_over or not self._withdrawn.empty()

        self._session.wait_confirmed(MOST_UNREAD_BYTES, is_off)
        while not self._withdrawn.empty():
            self._close_withdrawn()
            self._session.wait_confirmed(MOST_UNREAD_BYTES, is_off)
        with self._lock:
            self._early.remove(ask)
            self._waiting -= 1
        self._asked.clear()
        self._session.put(answer)
        self._session.wake()

    def _rest(self, offer: OfferedFiles) -> None:
        """Leave the network to a training: after each block, pause ``RESTS`` times as long as it took, unless
        the offer ends.

        A block has arrived when the other side requests the next one. No request follows the last block.
        """
        since_s = time.monotonic()
        if self._asked.wait(2 * self._block_s):
            self._block_s = max(LEAST_BLOCK_S, time.monotonic() - since_s)
        else:
            self._block_s *= SLOWER
        offer.withdrawn.wait(RESTS * self._block_s)


def _slice_of(data: memoryview) -> Callable[[int, int], memoryview]:
    return lambda begin, end: data[begin:end]


def _about(word: LaneWord) -> bytes:
    return _ENCODER.encode(word)
