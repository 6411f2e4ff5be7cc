"""A run's startup: which of its five steps are done, how long each took, what the present one waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from app.words.run_words import come_words
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import MemberPhase, Planning, Preparing, Starting
from core.vocabulary.state import Run
from core.vocabulary.text import listed, plain

ALLOWED, FILES, TENSORFLOW, MET, FIRST_STEP = range(5)
NAMES = ("Allowed", "Files", "TensorFlow", "Connected", "First step")
_STEP_OF: dict[MemberPhase, int] = {
    "waiting": ALLOWED,
    "consent": ALLOWED,
    "receiving": FILES,
    "prepared": TENSORFLOW,
    "starting": TENSORFLOW,
    "meeting": MET,
    "training": FIRST_STEP,
    "stopping": FIRST_STEP,
    "ended": FIRST_STEP,
}


class StartupStep(NamedTuple):
    """``took_s``: so far, for the present one; None if nobody measured it."""

    name: str
    state: Literal["done", "now", "ahead"]
    took_s: float | None


class Startup:
    """``hear`` whenever the run may have changed. ``clock``: seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._run: RunId | None = None
        self._present = ALLOWED
        self._began_s: dict[int, float] = {}

    def hear(self, run: Run) -> None:
        if run.plan.run != self._run:
            self._run, self._began_s = run.plan.run, {}
            self._present = present_step(run)
            if isinstance(run.phase, Planning | Preparing) and self._present == ALLOWED:
                self._began_s[ALLOWED] = self._clock()
        present = present_step(run)
        for step in range(self._present + 1, present + 1):
            self._began_s[step] = self._clock()
        self._present = max(self._present, present)

    def steps(self, run: Run) -> list[StartupStep]:
        """The steps of this run: a single laptop asks nobody and connects to nobody."""
        return [
            StartupStep(
                NAMES[step],
                "done" if step < self._present else "now" if step == self._present else "ahead",
                self._took_s(step),
            )
            for step in _steps_of(run)
        ]

    def _took_s(self, step: int) -> float | None:
        began_s = self._began_s.get(step)
        if began_s is None:
            return None
        ends = (self._began_s[later] for later in range(step + 1, len(NAMES) + 1) if later in self._began_s)
        return next(ends, self._clock()) - began_s


def starting_up(run: Run) -> bool:
    """Until its first step."""
    return isinstance(run.phase, Planning | Preparing | Starting)


def present_step(run: Run) -> int:
    """The slowest member's step; past the last one once it trains."""
    if not starting_up(run):
        return len(NAMES)
    return min((_step_of(run, device) for device in run.members), default=ALLOWED)


def _step_of(run: Run, device: DeviceId) -> int:
    """The starter needs no consent for its own script: until ready, it reads the files."""
    phase = run.members[device].phase
    return FILES if phase == "waiting" and device == run.plan.starter else _STEP_OF[phase]


def awaited(run: Run, names: Mapping[DeviceId, str]) -> str:
    """What the present step waits for, as the end of *Waiting for …*."""
    step = present_step(run)
    there = [names[device] for device in run.members if _step_of(run, device) == step]
    match step:
        case _ if isinstance(run.phase, Planning):
            return "the project to be read"
        case 0:
            asked = to_allow(run)
            if asked:
                return f"someone to press Allow on {listed(names[device] for device in asked)}"
            return f"an answer from {listed(there)}"
        case 1:
            parts = []
            for device, member in run.members.items():
                if member.phase == "receiving":
                    doing = f"{plain(member.words, 40)}, " if member.words else ""
                    share = f" ({doing}{come_words(member)})" if member.total else ""
                    parts.append(f"{names[device]}{share}")
            if not parts:
                return f"the files to be read on {listed(there)}"
            return f"the files to reach {listed(parts)}"
        case 2:
            return f"TensorFlow to start on {listed(there)}"
        case 3:
            return f"{listed(there)} to meet the others"
        case _:
            return "the first step: the model is being built"


def to_allow(run: Run) -> list[DeviceId]:
    """Laptops on which somebody has to press Allow."""
    return [device for device, member in run.members.items() if member.phase == "consent"]


def _steps_of(run: Run) -> Iterable[int]:
    if len(run.members) == 1:
        return TENSORFLOW, FIRST_STEP
    return range(len(NAMES)) if run.plan.strategy == "managed" else (ALLOWED, FILES, TENSORFLOW, FIRST_STEP)
