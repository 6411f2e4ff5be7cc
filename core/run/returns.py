"""Brings laptops into a run that was started here and goes on without them: lost ones that are back, and new
ones. The run stops at the end of a step and is resumed with them (docs/decisions). On the core loop.

Nothing here polls: whatever a return waits for calls ``on_news``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

from core.run import abilities, problems, return_problems
from core.run.context import RunContext
from core.run.continuation import STEADY_S, Continuation, Next, Start, is_in_fit, is_worth, pause_s
from core.run.coordinator import state as co
from core.run.coordinator.driver import CoordinatorDriver
from core.run.invitation import Absent, Invitation
from core.run.participant import state as pa
from core.run.planner import Planner
from core.run.recorder import Recorder
from core.run.succession import Succession
from core.runtime.timers import Timers
from core.vocabulary import events as ev
from core.vocabulary.errors import LEFT_RUN, Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Failed, Finished, Stopped, Training, ended
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.progress import Progress
from core.vocabulary.text import listed
from core.vocabulary.traffic import LinkBack, LinkLost

SPARE_S = 120.0
"""With less left to do, no trainers are loaded for a return that may never happen."""
KEPT_S = 60.0
"""How long a laptop that is back waits for the run's first checkpoint before the user is told."""
NO_REFUSALS = ("link-", "device-busy", "train-crossed")
"""How the codes of problems begin after which a laptop is invited again."""
BUSY_S = 10.0
"""Pause before a laptop that was busy with its own run is invited again."""
HANDLED = (
    *(Training, Finished, Stopped, Failed),
    *(ev.MemberLeft, ev.MemberEnded, ev.MemberProgressed, ev.WaitingChanged),
)
"""Phases of a run, and other events of it, that ``Returns.on_event`` handles."""
STAYS_AWAY = frozenset({"stopped", LEFT_RUN, "out-of-memory", "disk-full", "consent-refused"})
"""Codes of departures after which a laptop does not come back automatically."""


class Returns:
    """Brings laptops into the run that this node coordinates, and into its continuations."""

    def __init__(
        self,
        context: RunContext,
        planner: Planner,
        *,
        coordinator: Callable[[], CoordinatorDriver | None],
        has_checkpoint: Callable[[], bool],
        start: Start,
        is_in_a_run: Callable[[], bool],
        load: Callable[[Iterable[DeviceId]], Awaitable[None]],
        on_over: Callable[[], None],
    ) -> None:
        """``has_checkpoint``: whether the trainer here has written a checkpoint of this run. ``load``: as in
        ``Readiness``. ``on_over``: as in ``Continuation``."""
        self._context = context
        self._planner = planner
        self._coordinator = coordinator
        self._has_checkpoint = has_checkpoint
        self._load = load
        self._loading: asyncio.Task[None] | None = None
        """Loads TensorFlow in everybody's next trainers, so that a lost laptop is back soon and the others
        hardly wait for it."""
        self._loads_on: set[DeviceId] = set()
        self.continuation = Continuation(context, start=start, is_in_a_run=is_in_a_run, on_over=on_over)
        self._succession = Succession(
            context, planner, self.continuation, coordinator=coordinator, bring_in=self._bring_in
        )
        self._absent: dict[DeviceId, Absent] = {}
        self._losses: Counter[DeviceId] = Counter()
        self._in_since_s: dict[DeviceId, float] = {}
        self.invitation: Invitation | None = None
        """The invitation whose answer is pending."""
        self._timers = Timers[Literal["due", "kept"]](context.clock, self._on_time)
        self._considering: asyncio.Task[None] | None = None
        self._has_news = False
        self._awaited: tuple[DeviceId, ...] = ()
        """Laptops for which the run was stopped."""
        self._held_back: tuple[str, ...] = ()
        """Laptops that are ready while the run may not be stopped: steps or a checkpoint may change that."""
        self._is_told = False
        """The user knows that this run has no checkpoint to go on from."""
        self._has_left = False
        """This laptop left the run at its user's request: only the user adds laptops, and it with them."""
        self._restart_s = 0.0
        """From the trainers' start to the first step."""

    # --- events ----------------------------------------------------------------------------------------

    def on_event(self, event: ev.Shown) -> None:
        """Handle an event of the run under way, if it is relevant here."""
        starter = self._coordinator()
        if starter is None:
            return
        state = starter.state
        match event:
            case ev.MemberLeft(device=device, problem=problem):
                now_s = self._context.clock.time()
                if now_s - self._in_since_s.pop(device, now_s) >= STEADY_S:
                    del self._losses[device]
                self._losses[device] += 1
                self._loads_on.discard(device)
                self._has_left |= problem.code == LEFT_RUN and device == self._context.me
                if problem.code not in STAYS_AWAY and not self._has_introduced(state):
                    self._absent[device] = Absent(state.name(device), now_s + pause_s(self._losses[device]))
                    if not is_in_fit(state.tally.last):  # told after the loss itself
                        words = return_problems.comes_later(state.name(device))
                        asyncio.get_running_loop().call_soon(starter.remark, words)
                self.on_news()
            case ev.RunPhaseChanged(phase=Training()):
                self._on_training(state)
            case ev.RunPhaseChanged(phase=phase) if ended(phase):
                self._withdraw()
                self._timers.cancel_all()
                self._on_end(state, phase.back if isinstance(phase, Stopped) and phase.goes_on else None)
            case ev.MemberEnded() | ev.WaitingChanged():
                self.on_news()
            case ev.MemberProgressed(progress=progress):
                self._succession.note_step(state.plan, progress.done)
                some_may_come = state.plan.outlasts_losses or state.plan.owner is not None
                may_load = some_may_come and not self._loads_on and is_worth(progress, SPARE_S)
                if may_load and self.may_stop(state, progress):
                    self._begin_loading(state, ())
                if self._held_back:
                    self.on_news()

    def on_message(self, device: DeviceId, message: Message) -> bool:
        """False: the message is about something else."""
        if self.invitation is not None and self.invitation.on_message(device, message):
            return True
        return self._succession.on_message(device, message)

    def on_part_over(self, last: pa.Participation) -> None:
        """This laptop's part in a run is over."""
        if isinstance(last.stage, pa.Gone) and last.stage.goes_on:
            self._succession.take_over(last)

    def on_news(self) -> None:
        """Something changed that a return may wait for."""
        self.continuation.on_news()
        self._has_news = True
        if self._absent and (self._considering is None or self._considering.done()):
            self._considering = self._context.background.start("look who is back", self._consider())

    def on_start(self, spec: RunSpec, *, goes_on: bool) -> None:
        """A run begins here. ``goes_on``: not by its user's wish, but to continue another one."""
        self.continuation.spec = spec
        if not goes_on:
            self._losses.clear()
            self._in_since_s.clear()
            self._absent.clear()

    def on_idle(self) -> None:
        """No run is under way here."""
        self._succession.reconsider()
        self.continuation.on_idle()

    def on_link(self, news: LinkBack | LinkLost) -> None:
        self._succession.on_link(news)
        if isinstance(news, LinkLost):
            # Whatever ended the link, a closed window too, is no refusal: ask the laptop once it is back.
            if self.invitation is not None and self.invitation.device == news.device:
                self._withdraw()
            if (absent := self._absent.get(news.device)) is not None:
                absent.invited = absent.ready = False
                absent.busy_until_s = 0.0
        self.on_news()

    def close(self) -> None:
        self._withdraw()
        self._timers.cancel_all()
        self.continuation.close()
        if self._considering is not None:
            self._considering.cancel()

    def _on_training(self, state: co.Coordination) -> None:
        self._succession.on_training(state.plan)
        now_s = self._context.clock.time()
        self._restart_s = now_s - state.tally.planned_s
        for member in state.plan.members:
            self._absent.pop(member.device, None)
            self._in_since_s.setdefault(member.device, now_s)
        for device, absent in self._absent.items():
            absent.invited = absent.ready = False
            if device in self._awaited:
                self._stayed_out(device, absent.name)
        self._awaited = ()
        self._held_back, self._is_told, self._has_left = (), False, False
        self._loading, self._loads_on = None, set()
        self.on_news()

    def _on_end(self, state: co.Coordination, back: tuple[str, ...] | None) -> None:
        plan = state.plan
        staying = tuple(device for device, part in state.parts.items() if not part.left)
        if back is None or self._succession.has_handed_back:
            self.continuation.next = self._succession.on_end(state, staying)
        else:
            for device in state.left_out if not back else ():
                staying = tuple(each for each in staying if each != device)
                self._stayed_out(device, state.name(device))
            coming = tuple(device for device, each in self._absent.items() if each.name in back)
            self._awaited = coming
            run = plan.run if state.tally.first is not None or plan.resume is None else plan.resume.run
            self.continuation.next = Next(run, tuple(dict.fromkeys((*staying, *coming))), staying, back)
        if self.continuation.next is not None:
            for device in staying:  # one that is lost before its start comes later
                self._bring_in(device)

    def _stayed_out(self, device: DeviceId, name: str) -> None:
        """The run was stopped for it in vain.

        Security invariant: no laptop makes the others stop and resume again and again by not joining.
        """
        self._losses[device] += 1
        not_before_s = self._context.clock.time() + pause_s(self._losses[device] + 1)
        self._absent[device] = Absent(name, not_before_s)

    def _on_time(self, name: Literal["due", "kept"]) -> None:
        starter = self._coordinator()
        if name == "kept" and self._held_back and starter is not None:
            self._is_told = True
            who = listed(self._held_back)
            starter.remark(
                f"{who} could come back, but no checkpoint is kept: the training goes on without {who}."
            )
        self.on_news()

    async def recover(self, history: Recorder, *, go_on: bool) -> None:
        """After the node's start: as in ``Succession``."""
        await self._succession.recover(history, go_on=go_on)

    def _bring_in(self, device: DeviceId) -> None:
        self._absent.setdefault(device, Absent(self._context.name_of(device)))
        self.on_news()

    # --- laptops to bring in ---------------------------------------------------------------------------

    def add(self, run: RunId, devices: tuple[DeviceId, ...]) -> None:
        """Bring in laptops that the user asked for. Raises ``TandemError``."""
        starter = self._coordinator()
        if starter is None or starter.state.plan.run != run:
            raise TandemError.of(return_problems.not_here())
        plan = starter.state.plan
        if plan.strategy != "managed":
            raise TandemError.of(return_problems.fixed())
        if self._has_introduced(starter.state):
            raise TandemError.of(return_problems.not_all_paired())
        present = {device for device, part in starter.state.parts.items() if not part.left}
        for device in devices:
            if device in present:
                continue
            known = self._context.known(device)
            if known is None:
                raise TandemError.of(return_problems.unknown())
            if device not in starter.state.parts and (why := abilities.why_not(known)) is not None:
                raise why
            self._absent[device] = Absent(known.shown_name, asked=True)
        self.on_news()

    async def _consider(self) -> None:
        # One at a time: news that comes meanwhile is handled next.
        while self._has_news and (starter := self._coordinator()) is not None:
            self._has_news = False
            await self._consider_once(starter)

    async def _consider_once(self, starter: CoordinatorDriver) -> None:
        state, now_s = starter.state, self._context.clock.time()
        if not isinstance(state.stage, co.Running) or not isinstance(state.phase, Training):
            return
        later_s = [each.due_s - now_s for each in self._absent.values() if each.due_s > now_s]
        if later_s:
            self._timers.set("due", min(later_s))
        due = {device: each for device, each in self._absent.items() if each.due_s <= now_s}
        if self._has_left and not any(each.asked for each in due.values()):
            return  # a resumed run would include this laptop
        back = tuple(each.name for device, each in due.items() if self._is_ready(device, each, state))
        progress = state.tally.last
        worth = progress is not None and is_worth(progress, self._restart_s)
        # As soon as a laptop that is to join is there, even while it is being asked.
        if worth and (there := {device for device in due if self._can_load(device, state)}):
            self._begin_loading(state, there)
        if self.invitation is None:
            for device, absent in due.items():
                if not absent.invited and self._is_idle(device):
                    await self._invite(device, absent, state.plan)
                    return
        can_resume = self.may_stop(state, progress)
        may_stop = can_resume and worth
        self._held_back = () if may_stop else back
        if can_resume or not back:
            self._timers.cancel("kept")
        elif "kept" not in self._timers and not self._is_told:
            self._timers.set("kept", KEPT_S)
        if back and may_stop and self._loading is not None and self._loading.done():
            starter.handle(co.GoesOn(back))

    def may_stop(self, state: co.Coordination, progress: Progress | None) -> bool:
        """Whether the run can be stopped here and resumed."""
        return (self._has_checkpoint() or state.plan.resume is not None) and is_in_fit(progress)

    def _can_load(self, device: DeviceId, state: co.Coordination) -> bool:
        known = self._context.known(device)
        if known is None or not known.linked:
            return device == self._context.me
        return not known.busy or self._watches(device, state)

    def _watches(self, device: DeviceId, state: co.Coordination) -> bool:
        """Whether it is still linked to the run, and its trainers have ended."""
        part = state.parts.get(device)
        return part is not None and part.linked and state.has_ended(device)

    def _begin_loading(self, state: co.Coordination, coming: Iterable[DeviceId]) -> None:
        """Load on these laptops and on the run's, unless that has begun."""
        them = {*coming, *(device for device, part in state.parts.items() if not part.left)}
        if not them <= self._loads_on:
            self._loads_on |= them
            ahead = self._load_ahead(them - {self._context.me})
            self._loading = self._context.background.start("load ahead", ahead)

    async def _load_ahead(self, devices: Iterable[DeviceId]) -> None:
        await self._load(devices)
        self.on_news()

    def _is_ready(self, device: DeviceId, absent: Absent, state: co.Coordination) -> bool:
        """Whether it watches the run, or is idle and has everything that it needs."""
        if device == self._context.me:
            return state.has_ended(device)
        known = self._context.known(device)
        if known is None or not known.linked:
            absent.ready = absent.invited = False
            return False
        return self._watches(device, state) if known.busy else absent.ready

    def _has_introduced(self, state: co.Coordination) -> bool:
        """Whether this laptop stands in for a lost starter, and a member is not paired with it. That member
        takes part in the starter's run only, so no laptop is added until the starter is there again."""
        others = map(self._context.known, state.parts.keys() - {self._context.me})
        are_paired = all(known is not None and known.paired for known in others)
        return state.plan.owner is not None and not are_paired

    def _is_idle(self, device: DeviceId) -> bool:
        known = self._context.known(device)
        return known is not None and abilities.why_not(known) is None

    async def _invite(self, device: DeviceId, absent: Absent, plan: Plan) -> None:
        assert self.continuation.spec is not None
        absent.invited = True
        try:
            planned = await self._planner.invite(self.continuation.spec, device, plan)
        except TandemError as error:
            self._refused(device, error.problem)
            return
        now = self._coordinator()
        if now is None or now.state.plan.run != plan.run or not isinstance(now.state.stage, co.Running):
            return  # the run ended meanwhile: its continuation asks the laptop itself
        if not self._is_idle(device):
            absent.invited = False
            return  # its link was lost meanwhile, or it began its own run: news of it comes

        def on_over(problem: Problem | None) -> None:
            self.invitation = None
            absent.ready = problem is None
            if problem is not None:
                self._refused(device, problems.declined(absent.name, problem))
            self.on_news()

        absent.invited = True  # its link may have been lost and back meanwhile
        self.invitation = Invitation(self._context, device, planned, on_over)

    def _refused(self, device: DeviceId, problem: Problem) -> None:
        """A lost link, or a run of its own, is not its user's refusal: invite it again later."""
        starter, absent = self._coordinator(), self._absent.get(device)
        if absent is not None and problem.code.startswith(NO_REFUSALS):
            absent.invited = False
            if not problem.code.startswith("link-"):
                absent.busy_until_s = self._context.clock.time() + BUSY_S
            return
        self._absent.pop(device, None)
        if starter is not None:
            starter.remark(f"{problem.what} The run goes on without it.")

    def _withdraw(self) -> None:
        if self.invitation is not None:
            self.invitation.end()
            self.invitation = None
