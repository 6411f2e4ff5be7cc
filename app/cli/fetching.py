"""Says how much of a checkpoint has come, before the run that goes on with it begins."""

from __future__ import annotations

import time
from collections.abc import Callable

from app import device_names, run_words
from app.cli.run_display import PLAIN_EVERY_S
from app.cli.screen import Screen
from core.vocabulary.events import CheckpointCame, Event
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import State


class Fetching:
    """A listener. One line at a laptop's first piece and its last, and now and then. ``clock``: seconds."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._said_s = 0.0
        self._device: DeviceId | None = None

    def __call__(self, event: Event, state: State) -> None:
        if not isinstance(event, CheckpointCame):
            return
        often = event.device == self._device and self._clock() - self._said_s < PLAIN_EVERY_S
        if not often or event.done == event.total:
            self._device, self._said_s = event.device, self._clock()
            name = device_names.names_of(state, [event.device])[event.device]
            self._screen.say(run_words.fetch_words(event, name))
