"""The interface that a face (window, command line, JSON lines) needs: a node, or a client of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from core.vocabulary.answers import Answer
from core.vocabulary.commands import Command
from core.vocabulary.events import Event
from core.vocabulary.state import State

Listener = Callable[[Event, State], None]
"""Called on the core thread after each event, with the state that follows from it. Must not block."""


class NodeFace(Protocol):
    """Commands in, events out."""

    @property
    def state(self) -> State: ...

    async def submit(self, command: Command) -> Answer:
        """Never raises: failures are answered with ``Refused``."""
        ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Returns a function that ends the subscription."""
        ...
