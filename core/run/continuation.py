"""Starts the run that continues another one, which was stopped to add laptops or was cut off by a crash. On
the core loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from core.run import abilities
from core.run.context import RunContext
from core.run.resume.plan import for_devices
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.plan import RunSpec
from core.vocabulary.progress import Progress

FIRST_PAUSE_S, MOST_PAUSE_S = 60.0, 1800.0
"""Pause before a laptop that was lost a second time may come back; it doubles with each further loss."""
STEADY_S = 600.0
"""A laptop that was in the run for this long before it was lost has a clean record again."""


class Start(Protocol):
    """``NodeRuns.start``; as in ``Planner.plan``."""

    def __call__(
        self, spec: RunSpec, back: tuple[str, ...], *, from_others: bool
    ) -> Coroutine[object, object, RunId]: ...


@dataclass(frozen=True, slots=True)
class Next:
    """The run that continues ``run``, with ``devices``; if that is impossible, with those of ``before``. Of
    these, laptops that are missing then are left out."""

    run: RunId
    devices: tuple[DeviceId, ...]
    before: tuple[DeviceId, ...]
    back: tuple[str, ...]
    wait_s: float | None = None
    """How long to wait for all of them; None: as long as members need to end their part in ``run``."""
    unless_busy: bool = False
    """Do not start if one of them is still busy then: ``run`` goes on there."""
    spec: RunSpec | None = None
    """The request behind ``run``; None: the newest one."""
    from_others: bool = False
    """Other members went on with ``run``, and hand it back."""


def pause_s(losses: int) -> float:
    """How long a laptop stays out of a training at least after it was lost in it ``losses`` times."""
    return 0.0 if losses < 2 else min(MOST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(losses - 2, 16))


def is_in_fit(progress: Progress | None) -> bool:
    """Whether checkpoints are kept at this point: not in a loop of ``train_on_batch``."""
    return progress is not None and progress.epochs > 0


def is_worth(progress: Progress, restart_s: float) -> bool:
    """Whether the remaining steps take longer than a start: otherwise no run is stopped to add a laptop."""
    if not progress.steps_in_epoch or not progress.steps_s:
        return True
    done = progress.epoch * progress.steps_in_epoch + progress.batch + 1
    return (progress.epochs * progress.steps_in_epoch - done) / progress.steps_s > restart_s


class Continuation:
    """``on_over`` is called when the planned continuation has begun or was cancelled."""

    def __init__(
        self,
        context: RunContext,
        *,
        start: Start,
        is_in_a_run: Callable[[], bool],
        on_over: Callable[[], None],
    ) -> None:
        self._context = context
        self._start = start
        self.is_in_a_run = is_in_a_run
        self._on_over = on_over
        self.spec: RunSpec | None = None
        """The request behind the newest run that was started here."""
        self.next: Next | None = None
        """The planned run, between a run and its continuation."""
        self._starting: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    def on_idle(self) -> None:
        """Begin the continuation that is planned, unless a run is under way here; call again at its end."""
        if self.next is not None and self._starting is None and not self.is_in_a_run():
            self._starting = self._context.background.start("go on with a run", self._follow(self.next))

    def on_news(self) -> None:
        """A laptop came, left, or became busy or idle."""
        self._news.set()

    def add(self, device: DeviceId, name: str) -> None:
        """Include this laptop in the planned continuation, if there is one."""
        following = self.next
        if following is not None and device not in following.devices:
            devices, back = (*following.devices, device), (*following.back, name)
            self.next = dataclasses.replace(following, devices=devices, back=back)

    def cancel(self) -> bool:
        """Cancel the continuation. False: none was planned."""
        following, self.next = self.next, None
        self._news.set()
        return following is not None

    def failed(self, run: RunId, why: Problem) -> None:
        """Tell the user that nothing continues this run."""
        self._context.notice(_not_followed(run, why))

    def close(self) -> None:
        self.cancel()
        if self._starting is not None:
            self._starting.cancel()

    async def _follow(self, following: Next) -> None:
        spec, why = following.spec or self.spec, None
        assert spec is not None
        try:
            for everybody in (True, False):
                await self._wait_until_free(following, everybody)
                if self.next is None:
                    return
                following = self.next
                devices, back = (following.devices, following.back) if everybody else (following.before, ())
                if following.unless_busy and any(map(self._is_busy, devices)):
                    return
                needed = set[DeviceId]() if following.wait_s is not None else {*devices} - {*following.before}
                devices = tuple(each for each in devices if each in needed or self._may_come(each))
                wanted = for_devices(spec, devices, self._context.me)
                try:
                    wanted = replace(wanted, resume=following.run)
                    await self._start(wanted, back, from_others=following.from_others)
                    return
                except TandemError as error:
                    why = why or error.problem
            if self.next is not None and why is not None:
                self.failed(following.run, why)
        finally:
            self.next = self._starting = None
            self._on_over()

    async def _wait_until_free(self, following: Next, everybody: bool) -> None:
        """Wait until all can take part: members report the end of the previous run a moment after it."""
        wait_s = self._context.limits.idle_s if following.wait_s is None else following.wait_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while self.next is not None:
                    devices = self.next.devices if everybody else following.before
                    if all(map(self._may_come, devices)):
                        return
                    self._news.clear()
                    await self._news.wait()

    def _is_busy(self, device: DeviceId) -> bool:
        known = self._context.known(device)
        return known is not None and known.linked and known.busy

    def _may_come(self, device: DeviceId) -> bool:
        known = self._context.known(device)
        return device == self._context.me or (
            known is not None and abilities.why_not(known, goes_on=True) is None
        )


def _not_followed(run: RunId, why: Problem) -> Problem:
    return Problem(
        code="not-gone-on",
        what=f"The run could not go on automatically: {why.what}",
        fix=f"Resume it: tandem resume {run}.",
    )
