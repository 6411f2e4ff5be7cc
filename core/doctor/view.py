"""What the doctor examines: a home, and its node, if one runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from core.doctor.trial import Reach
from core.home.home import Home
from core.vocabulary.answers import Finding
from core.vocabulary.ids import DeviceId
from core.vocabulary.settings import Settings
from core.vocabulary.state import State


@dataclass(frozen=True, slots=True)
class Examined:
    """``port``: where the node listens; None where no node runs, then ``state`` is empty too.

    ``try_reach``: ``Trials.try_with``; None where there is no link to ask over.
    """

    home: Home
    settings: Settings = field(default_factory=Settings)
    state: State = field(default_factory=State)
    port: int | None = None
    try_reach: Callable[[DeviceId], Awaitable[Reach | None]] | None = None

    @property
    def running(self) -> bool:
        return self.port is not None

    @property
    def wanted_port(self) -> int:
        return self.port if self.port is not None else self.settings.port


def ok(code: str, topic: str, what: str) -> Finding:
    return Finding(code=code, topic=topic, level="ok", what=what)


def note(code: str, topic: str, what: str, fix: str = "", *, command: str = "") -> Finding:
    return Finding(code=code, topic=topic, level="note", what=what, fix=fix, command=command)


def warning(code: str, topic: str, what: str, fix: str, *, mend: bool = False, command: str = "") -> Finding:
    return Finding(code=code, topic=topic, level="warning", what=what, fix=fix, mend=mend, command=command)


def error(code: str, topic: str, what: str, fix: str, *, mend: bool = False, command: str = "") -> Finding:
    return Finding(code=code, topic=topic, level="error", what=what, fix=fix, mend=mend, command=command)
