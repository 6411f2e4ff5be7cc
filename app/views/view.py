"""The base of every screen: a widget that renders the state, and gives commands to the bridge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtWidgets import QWidget

from app.bridge import Bridge
from core.vocabulary.events import Event
from core.vocabulary.state import State


class View(QWidget):
    """``title`` appears in the navigation and is the accessible name."""

    title = ""

    def __init__(self, bridge: Bridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bridge = bridge
        self.setAccessibleName(self.title)

    @classmethod
    def in_turns(cls, bridge: Bridge) -> Iterator[View | None]:
        """Makes the screen over several turns of the event loop. None ends a turn; the screen is last."""
        yield cls(bridge)

    @property
    def pieces(self) -> Sequence[QWidget]:
        """Parts that wear the theme separately: for a large screen, its pages."""
        return (self,)

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        """Called with every batch of events, also while another screen is in front: must be cheap then."""
        raise NotImplementedError
