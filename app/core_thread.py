"""The core thread: an asyncio loop with this home's node, or with a client of the node already running."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import Command
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event
from core.vocabulary.state import State

if TYPE_CHECKING:
    from app.connection import NodeConnection
    from core.vocabulary.node import NodeFace

Opens = Callable[[], AbstractAsyncContextManager["NodeConnection"]]
STOP_LIMIT_S = 40.0
"""Longer than a node ever takes to end its run and its trainers."""

_log = logging.getLogger(__name__)
_NOT_RUNNING = Problem(
    code="no-node", what="Tandem's node is not running.", fix="Close the window and open Tandem again."
)


class CoreThread:
    """The callbacks come on the core thread; everything else is called from the GUI thread.

    ``on_opened(state, own)`` once, before any event; ``own``: the node ends with this thread and belongs to
    no other process. ``on_ended`` comes last, whatever the outcome; after a failure, ``on_failed`` comes
    before it.
    """

    def __init__(
        self,
        opens: Opens,
        on_event: Callable[[Event, State], None],
        on_opened: Callable[[State, bool], None],
        on_failed: Callable[[Problem], None],
        on_ended: Callable[[], None],
    ) -> None:
        self._opens = opens
        self._on_event = on_event
        self._on_opened = on_opened
        self._on_failed = on_failed
        self._on_ended = on_ended
        self._loop: asyncio.AbstractEventLoop | None = None
        self._face: NodeFace | None = None
        self._ending: asyncio.Event | None = None
        self._early: list[tuple[Command, Callable[[Answer], None]]] = []
        self._lock = threading.Lock()
        self._over = False
        self._end_asked = False
        self._thread = threading.Thread(target=self._run, name="core", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Commands submitted before the node is ready wait for it; after its end they are refused."""
        with self._lock:  # as long as it is held, the loop is not closed
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._take, command, on_answer)
                return
            if not self._over:
                self._early.append((command, on_answer))
                return
        on_answer(Refused(problem=_NOT_RUNNING))

    def ask_to_end(self) -> None:
        """Returns immediately; the thread ends after the node."""
        with self._lock:
            self._end_asked = True
            if self._loop is not None and self._ending is not None:
                self._loop.call_soon_threadsafe(self._ending.set)

    def wait_ended(self, timeout_s: float = STOP_LIMIT_S) -> bool:
        """True once the thread has ended; False if it still runs after ``timeout_s``."""
        if self._thread.ident is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    # --- core thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except TandemError as error:
            self._on_failed(error.problem)
        except Exception as error:
            _log.exception("the core thread ended by a failure")
            self._on_failed(
                Problem(
                    code="internal",
                    what=f"Tandem's node ended by a failure of its own ({type(error).__name__}).",
                    fix="Open Tandem again; if it happens again, save the diagnostics and report it.",
                    detail=str(error),
                )
            )
        finally:
            with self._lock:
                self._over, self._loop = True, None
                early, self._early = self._early, []
            for _, on_answer in early:
                on_answer(Refused(problem=_NOT_RUNNING))
            self._on_ended()

    async def _live(self) -> None:
        ending = asyncio.Event()
        with self._lock:
            self._ending = ending
        async with self._opens() as connection:
            face = connection.node
            self._on_opened(face.state, connection.own)
            leave = face.subscribe(self._on_event)
            self._face = face
            with self._lock:
                self._loop = asyncio.get_running_loop()
                early, self._early = self._early, []
                if self._end_asked:
                    ending.set()
            try:
                for command, on_answer in early:
                    self._take(command, on_answer)
                asked = asyncio.ensure_future(ending.wait())
                await asyncio.wait((asked, connection.lost), return_when=asyncio.FIRST_COMPLETED)
                asked.cancel()
            finally:
                with self._lock:
                    self._over, self._loop = True, None
            leave()
            if connection.lost.done():
                raise TandemError.of(connection.lost.result())

    def _take(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        if self._face is None:
            on_answer(Refused(problem=_NOT_RUNNING))
            return
        task = asyncio.ensure_future(self._face.submit(command))
        task.add_done_callback(lambda done: on_answer(_answer_of(done)))


def _answer_of(task: asyncio.Future[Answer]) -> Answer:
    if task.cancelled() or task.exception() is not None:
        return Refused(problem=_NOT_RUNNING)
    return task.result()
