"""Views for the doctor's tests: a home, a running node's state, devices."""

from __future__ import annotations

from pathlib import Path

from core.doctor.view import Examined
from core.home.home import Home, prepare
from core.vocabulary import events as ev
from core.vocabulary.state import State, apply
from tests.core.fake_node import started


def view(base: Path, *events: ev.Event, port: int | None = 27600) -> Examined:
    """A node that listens at ``port``; None: no node runs."""
    home = Home(base / "home")
    prepare(home)
    state = State()
    if port is not None:
        for event in (started(home.folder), *events):
            state = apply(state, event)
    return Examined(home, state=state, port=port)
