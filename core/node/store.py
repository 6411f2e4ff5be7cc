"""The node's state and its listeners: every event is applied, then sent to all in one order. On the loop."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from core.vocabulary.errors import IllegalTransition
from core.vocabulary.events import Event, NodeStarted
from core.vocabulary.node import Listener
from core.vocabulary.state import State, apply

_log = logging.getLogger(__name__)


class Store:
    """The only place where the state is replaced. Events before ``NodeStarted`` are passed on after it."""

    def __init__(self) -> None:
        self.state = State()
        self._listeners: list[Listener] = []
        self._early: list[Event] = []
        self._pending: deque[tuple[Event, State]] = deque()
        self._is_calling = False

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Returns a function that ends the subscription; calling it twice is harmless."""
        self._listeners.append(listener)

        def leave() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return leave

    def add(self, event: Event) -> None:
        if self.state.me is None and not isinstance(event, NodeStarted):
            self._early.append(event)
            return
        self._apply(event)
        early, self._early = self._early, []
        for earlier in early:
            self._apply(earlier)
        if not self._is_calling:  # else a listener caused it: everybody hears the present one first
            self._is_calling = True
            try:
                self._call_listeners()
            finally:
                self._is_calling = False

    def _apply(self, event: Event) -> None:
        try:
            self.state = apply(self.state, event)
        except IllegalTransition:
            # A bug in Tandem: the event is dropped, and the log shows its source.
            _log.exception("an event does not fit the state")
        else:
            self._pending.append((event, self.state))

    def _call_listeners(self) -> None:
        while self._pending:
            event, state = self._pending.popleft()
            for listener in tuple(self._listeners):
                try:
                    listener(event, state)
                except Exception:
                    _log.exception("a listener failed")
