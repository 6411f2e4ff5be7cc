"""Brings laptops into a run that was started here and goes on without them: lost ones that are back, and new
ones. The run stops at the end of a step and is resumed with them (docs/decisions). On the core loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from core.project import checkpoint_store
from core.run import planning, problems
from core.run.context import RunContext
from core.run.coordinator import state as co
from core.run.coordinator.driver import CoordinatorDriver
from core.run.invitation import Invitation
from core.run.planner import Planner
from core.run.recorder import Recorder
from core.run.resume.plan import among
from core.vocabulary import events as ev
from core.vocabulary import run_folder
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import CUT_OFF, Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed, Finished, Stopped, Training, ended
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.progress import Progress
from core.vocabulary.state import State
from core.vocabulary.text import plain

FIRST_PAUSE_S, MOST_PAUSE_S = 60.0, 1800.0
"""Pause before a laptop that was lost a second time may come back; it doubles with each further loss."""
HEEDED = (Training, Finished, Stopped, Failed)
"""Phases of a run that this module handles, beside members that leave."""
STAYS_AWAY = frozenset({"stopped", "left", "out-of-memory", "disk-full", "consent-refused"})
"""Codes of departures after which a laptop does not come back automatically."""


class Start(Protocol):
    """``NodeRuns.start``; ``back``: as in ``Planner.plan``."""

    def __call__(self, spec: RunSpec, back: tuple[str, ...]) -> Coroutine[object, object, RunId]: ...


@dataclass(slots=True)
class Absent:
    """A laptop that is to join. ``not_before_s``: on the run's clock."""

    name: str
    not_before_s: float = 0.0
    invited: bool = False
    ready: bool = False


@dataclass(frozen=True, slots=True)
class _Next:
    """The run that continues ``run``, with ``devices``; if that is impossible, with those of ``before``."""

    run: RunId
    devices: tuple[DeviceId, ...]
    before: tuple[DeviceId, ...]
    back: tuple[str, ...]
    wait_s: float | None = None
    """How long to wait for all of them; None: as long as members need to end their part in ``run``."""


def pause_s(losses: int) -> float:
    """How long a laptop that was lost so often in one training stays out of it at least."""
    return 0.0 if losses < 2 else min(MOST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(losses - 2, 16))


def is_worth(progress: Progress | None, restart_s: float) -> bool:
    """Whether a run may be stopped here for another laptop: in a fit that keeps checkpoints, and with more
    left to do than a start takes. A batch on its own (``train_on_batch``) is outside of every epoch."""
    if progress is None or progress.epochs <= 0:
        return False
    if progress.batch == 0 and progress.step > 0 and (progress.steps_in_epoch or 2) > 1:
        return False
    if not progress.steps_in_epoch or not progress.steps_s:
        return True
    done = progress.epoch * progress.steps_in_epoch + progress.batch + 1
    return (progress.epochs * progress.steps_in_epoch - done) / progress.steps_s > restart_s


class Returns:
    """For the run that this node coordinates, and its continuations."""

    def __init__(
        self,
        context: RunContext,
        planner: Planner,
        *,
        state: Callable[[], State],
        coordinator: Callable[[], CoordinatorDriver | None],
        start: Start,
        notice: Callable[[Problem], None],
        on_over: Callable[[], None],
    ) -> None:
        """``on_over``: the continuation that was planned is cancelled."""
        self._context = context
        self._planner = planner
        self._state = state
        self._coordinator = coordinator
        self._start = start
        self._notice = notice
        self._on_over = on_over
        self.spec: RunSpec | None = None
        """The request behind the newest run that was started here."""
        self._absent: dict[DeviceId, Absent] = {}
        self._losses: Counter[DeviceId] = Counter()
        self.invitation: Invitation | None = None
        """The invitation whose answer is pending."""
        self._watching: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self.following: _Next | None = None
        """Not None between a run and its continuation."""
        self._restart_s = 0.0
        """From pressing Train to the first step."""

    # --- events ----------------------------------------------------------------------------------------

    def _on_training(self, state: co.Coordination) -> None:
        self._restart_s = self._context.clock.time() - state.tally.pressed_s
        for member in state.plan.members:
            self._absent.pop(member.device, None)
        for absent in self._absent.values():
            absent.invited = absent.ready = False
        self._watch()

    def hear(self, event: ev.Shown) -> None:
        """Handle an event of the run under way, if it is relevant here."""
        starter = self._coordinator()
        if starter is None:
            return
        state = starter.state
        match event:
            case ev.MemberLeft(device=device, problem=problem):
                self._losses[device] += 1
                if problem.code not in STAYS_AWAY:
                    now_s = self._context.clock.time()
                    self._absent[device] = Absent(state.name(device), now_s + pause_s(self._losses[device]))
                    self._watch()
            case ev.RunPhaseChanged(phase=Training()):
                self._on_training(state)
            case ev.RunPhaseChanged(phase=phase) if ended(phase):
                self._withdraw()
                self._on_end(state, phase.back if isinstance(phase, Stopped) and phase.goes_on else None)

    def _on_end(self, state: co.Coordination, back: tuple[str, ...] | None) -> None:
        plan = state.plan
        if back is None:
            self._losses.clear()
            self._absent.clear()
            return
        staying = tuple(device for device, part in state.parts.items() if not part.left)
        if state.falls_back and not back and plan.resume is not None:
            came = set(plan.resume.back)
            staying = tuple(device for device in staying if state.name(device) not in came)
            for member in plan.members:
                if member.name in came:
                    self._losses[member.device] += 1
                    wait_s = pause_s(self._losses[member.device] + 1)
                    not_before_s = self._context.clock.time() + wait_s
                    self._absent[member.device] = Absent(member.name, not_before_s)
        coming = tuple(device for device, absent in self._absent.items() if absent.name in back)
        run = plan.run if state.tally.first is not None or plan.resume is None else plan.resume.run
        self.following = _Next(run, tuple(dict.fromkeys((*staying, *coming))), staying, back)

    def on_link_down(self, device: DeviceId, problem: Problem) -> None:
        if self.invitation is not None:
            self.invitation.on_link_down(device, problem)

    def on_idle(self) -> None:
        """No run is under way here: a continuation may begin."""
        if self.following is not None and self._starting is None:
            self._starting = self._context.background.start("go on with a run", self._follow(self.following))

    def close(self) -> None:
        self._withdraw()
        self.following = None
        for task in (self._watching, self._starting):
            if task is not None:
                task.cancel()

    def end(self) -> bool:
        """The user wants no continuation. False: none was planned."""
        following, self.following = self.following, None
        return following is not None

    async def recover(self, history: Recorder, *, go_on: bool) -> None:
        """After the node's start: continue a run that was started here and was under way when the node died
        (``go_on``), or tell the user how."""
        entry = history.cut_off
        if entry is None or entry.spec is None or not await self._is_kept(entry.run):
            return
        if not go_on:
            self._notice(_could_go_on(entry))
            return
        me = self._context.me
        self.spec = replace(entry.spec, script=entry.source)
        self._absent = {
            device: Absent(name)
            for device, name in zip(entry.device_ids, entry.devices, strict=False)
            if device != me
        }
        before = (me,)
        self.following = _Next(entry.run, (me, *self._absent), before, (), self._context.limits.recover_s)
        self.on_idle()

    # --- laptops to bring in ---------------------------------------------------------------------------

    def add(self, run: RunId, devices: tuple[DeviceId, ...]) -> None:
        """Bring in laptops that the user asked for. Raises ``TandemError``."""
        starter = self._coordinator()
        if starter is None or starter.state.plan.run != run:
            raise TandemError.of(_not_here())
        plan = starter.state.plan
        if plan.strategy != "managed":
            raise TandemError.of(_fixed())
        present = {device for device, part in starter.state.parts.items() if not part.left}
        for device in devices:
            if device in present:
                continue
            known = self._state().devices.get(device)
            if known is None:
                raise TandemError.of(_unknown())
            if device not in starter.state.parts and (why := planning.why_not(known)) is not None:
                raise why
            self._absent[device] = Absent(known.shown_name)
        self._watch()

    def _watch(self) -> None:
        if self._absent and (self._watching is None or self._watching.done()):
            self._watching = self._context.background.start("look who is back", self._look_on())

    async def _look_on(self) -> None:
        while self._absent and (starter := self._coordinator()) is not None:
            await self._look(starter)
            await asyncio.sleep(self._context.limits.back_s)

    async def _look(self, starter: CoordinatorDriver) -> None:
        state, now_s = starter.state, self._context.clock.time()
        if not isinstance(state.stage, co.Running) or not isinstance(state.phase, Training):
            return
        due = {device: each for device, each in self._absent.items() if each.not_before_s <= now_s}
        back = [each.name for device, each in due.items() if self._is_ready(device, each, state)]
        if self.invitation is None:
            for device, absent in due.items():
                if not absent.invited and self._is_idle(device, state):
                    await self._invite(device, absent, state.plan)
                    return
        if back and is_worth(state.tally.last, self._restart_s) and await self._is_kept(state.plan.run):
            starter.handle(co.GoesOn(tuple(back)))

    def _is_ready(self, device: DeviceId, absent: Absent, state: co.Coordination) -> bool:
        """Whether it watches the run, or is idle and has everything that it needs."""
        known = self._state().devices.get(device)
        if known is None or not known.linked:
            absent.ready = absent.invited = False
            return False
        part = state.parts.get(device)
        watches = part is not None and part.linked and state.has_ended(device)
        return watches or (absent.ready and not known.busy)

    def _is_idle(self, device: DeviceId, state: co.Coordination) -> bool:
        known, part = self._state().devices.get(device), state.parts.get(device)
        watches = part is not None and part.linked
        return not watches and known is not None and planning.why_not(known) is None

    async def _invite(self, device: DeviceId, absent: Absent, plan: Plan) -> None:
        assert self.spec is not None
        absent.invited = True
        try:
            planned = await self._planner.invite(self.spec, device, plan)
        except TandemError as error:
            self._refused(device, error.problem)
            return

        def on_over(problem: Problem | None) -> None:
            self.invitation = None
            absent.ready = problem is None
            if problem is not None:
                self._refused(device, problems.declined(absent.name, problem))

        self.invitation = Invitation(self._context, device, planned, on_over)

    def _refused(self, device: DeviceId, problem: Problem) -> None:
        """A lost link is not its user's refusal: invite it again once it is back."""
        starter, absent = self._coordinator(), self._absent.get(device)
        if problem.code.startswith("link-") and absent is not None:
            absent.invited = False
            return
        self._absent.pop(device, None)
        if starter is not None:
            starter.remark(f"{problem.what} The run goes on without it.")

    async def _is_kept(self, run: RunId) -> bool:
        """Whether its trainer here keeps checkpoints, which custom training loops do not."""
        folder = self._context.folder(run) / run_folder.CHECKPOINTS
        return await self._context.files.do(checkpoint_store.look, folder) is not None

    def _withdraw(self) -> None:
        if self.invitation is not None:
            self.invitation.end()
            self.invitation = None

    # --- going on --------------------------------------------------------------------------------------

    async def _follow(self, following: _Next) -> None:
        assert self.spec is not None
        spec, why = self.spec, None
        try:
            for devices, back in ((following.devices, following.back), (following.before, ())):
                wanted = among(spec, devices, self._context.me)
                await self._until_idle(wanted.devices, following.wait_s)
                if following.wait_s is not None:  # missing laptops come later
                    wanted = among(spec, tuple(filter(self._may_come, devices)), self._context.me)
                if self.following is None:
                    return
                try:
                    await self._start(replace(wanted, resume=following.run), back)
                    return
                except TandemError as error:
                    why = why or error.problem
            if self.following is not None and why is not None:
                self._notice(_not_followed(following.run, why))
        finally:
            self.following = self._starting = None
            self._on_over()

    async def _until_idle(self, devices: tuple[DeviceId, ...], wait_s: float | None) -> None:
        """Wait: members report the end of the previous run a moment after it."""
        limit_s = self._context.limits.idle_s if wait_s is None else wait_s
        deadline_s = asyncio.get_running_loop().time() + limit_s
        while asyncio.get_running_loop().time() < deadline_s and self.following is not None:
            if all(map(self._may_come, devices)):
                return
            await asyncio.sleep(self._context.limits.back_s / 10)

    def _may_come(self, device: DeviceId) -> bool:
        known = self._state().devices.get(device)
        return device == self._context.me or (known is not None and planning.why_not(known) is None)


def _not_here() -> Problem:
    return Problem(
        code="not-joinable",
        what="That run is not under way, or it was not started on this laptop.",
        fix="Add laptops on the laptop that started the run, while it trains.",
    )


def _fixed() -> Problem:
    return Problem(
        code="not-joinable",
        what="The script brings a strategy of its own, which has as many laptops as it began with.",
        fix="Stop the run and train again with all laptops.",
    )


def _unknown() -> Problem:
    return Problem(
        code="device-unknown",
        what="That laptop is not paired with this one.",
        fix="Pair it first: both people compare the same six digits.",
    )


def _could_go_on(entry: RunEntry) -> Problem:
    return Problem(
        code=CUT_OFF,
        what=f"Tandem ended while {plain(entry.script, 60)} was training. The run can go on where it was.",
        fix=f"Press Resume at the run, or: tandem resume {entry.run}. A setting does it without asking.",
        detail=entry.run,
    )


def _not_followed(run: RunId, why: Problem) -> Problem:
    return Problem(
        code="not-gone-on",
        what=f"The run was stopped for a laptop that is back, and could not go on: {why.what}",
        fix=f"Resume it: tandem resume {run}.",
    )
