"""Takes this laptop out of a run, at its user's request or because its battery is low."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from core.run import problems
from core.run.continuation import is_in_fit
from core.run.participant import state as pa
from core.vocabulary.errors import LEFT_RUN, Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Stopping, Training
from core.vocabulary.readings import Reading
from core.vocabulary.state import Run, State

CANNOT = "not-leavable"
_STOP = "Stop the run for all laptops."


def left(name: str, why: str = "") -> Problem:
    """The problem that every screen shows. ``why``: the reason, if its user did not ask for it."""
    what = f"{name} left the run: {why}." if why else f"{name} left the run."
    return Problem(
        code=LEFT_RUN, what=what, fix=f"To bring it back, press Add a laptop, or use tandem add {name}."
    )


def takes_part(run: Run | None, me: DeviceId) -> bool:
    """Whether this laptop is in a run of several that is under way."""
    return run is not None and not run.over and not run.plan.solo and me in run.staying


def why_not(run: Run | None, me: DeviceId) -> Problem | None:
    """Why this laptop cannot leave; None: it can, and the others go on."""
    if run is None or run.over or me not in run.members:
        return problems.no_run()
    if me not in run.staying:
        return Problem(code=CANNOT, what="This laptop has left the run already.")
    if isinstance(run.phase, Stopping):
        return Problem(code=CANNOT, what="The run is being stopped.", fix="Wait for its end.")
    if len(run.staying) < 2:
        return Problem(code=CANNOT, what="No other laptop is in this run.", fix="Stop the run.")
    if not run.plan.outlasts_losses:
        what = "The script trains in its own way, and needs all of its laptops."
        return Problem(code=CANNOT, what=what, fix=_STOP)
    if not isinstance(run.phase, Training):
        return Problem(code=CANNOT, what="The others cannot go on alone before the first step.", fix=_STOP)
    return None


def may_be_left(run: Run | None) -> bool:
    """Whether a run that was started here goes on if the system ends this node: at once on the others, or at
    its next start. A sweep goes on as a whole."""
    if run is None or not isinstance(run.phase, Training) or run.plan.trial is not None:
        return False
    return run.plan.strategy == "managed" and any(is_in_fit(each.progress) for each in run.members.values())


class HasPart(Protocol):
    """The part of ``ParticipantDriver`` that is used here."""

    def handle(self, input: pa.Input) -> None: ...


class Departure:
    """Ends this laptop's part in the present run. On the core loop."""

    def __init__(self, me: DeviceId, state: Callable[[], State], part: Callable[[], HasPart | None]) -> None:
        self._me = me
        self._state = state
        self._part = part
        self._tried: RunId | None = None
        """The run that this laptop left, or could not leave, for its battery."""

    def leave(self, run: RunId, why: str = "") -> None:
        """Raises ``TandemError`` where the others cannot go on. ``why``: as in ``left``."""
        state, part = self._state(), self._part()
        shown = state.run if state.run is not None and state.run.plan.run == run else None
        if (problem := why_not(shown, self._me)) is not None:
            raise TandemError.of(problem)
        if part is None or state.me is None:
            raise TandemError.of(problems.no_run())
        part.handle(pa.LeaveWanted(left(state.me.name, why)))

    def on_reading(self, reading: Reading, below_pct: int) -> Problem | None:
        """Leave while the battery is below ``below_pct`` percent (0: never), once in each run. Returns why
        that is impossible, where it is."""
        run, left_pct = self._state().run, reading.battery_pct
        if left_pct is None or left_pct >= below_pct:
            return None
        if run is None or not isinstance(run.phase, Training) or run.plan.run == self._tried:
            return None
        if self._me not in run.staying:
            return None
        self._tried = run.plan.run
        battery = f"battery is at {left_pct:.0f} %"
        try:
            self.leave(run.plan.run, f"its {battery}")
        except TandemError as error:
            return Problem(
                code="battery-low",
                what=f"The {battery}, and this laptop cannot leave the run: {error.what}",
                fix="Plug it in, or stop the run.",
            )
        return None
