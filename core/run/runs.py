"""Every run of this node: the present one, as starter or as member, and the history. On the core loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec.structs import replace

from core.home.home import Home
from core.home.trust_file import SavedTrust
from core.run import precedence, problems
from core.run.admission import Admission
from core.run.context import RunLimits, RunLinks, RunTransfers, context_of
from core.run.coordinator import state as co
from core.run.coordinator.driver import CoordinatorDriver
from core.run.departure import Departure, may_be_left
from core.run.leftovers import DAY_S, GB, Leftovers, Trimming, sweep_copies
from core.run.modules import Modules
from core.run.participant import state as pa
from core.run.participant.driver import ParticipantDriver
from core.run.planner import Back, Planner, TrialWanted
from core.run.precedence import HeldRequest, Present
from core.run.readiness import Readiness
from core.run.recorder import Recorder
from core.run.resume import plan as resume_plan
from core.run.resume.driver import CheckpointDriver
from core.run.returns import HANDLED, Returns
from core.run.silence import fall_silent
from core.run.trials import RemoteTrials
from core.runtime.timers import Clock
from core.supervisor import temporary
from core.supervisor.trainers import MakeTrainer
from core.supervisor.warm import WarmTrainer
from core.vocabulary import answers
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.commands import Decision
from core.vocabulary.errors import TandemError
from core.vocabulary.events import Event, Shown
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import Message
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.state import State
from core.vocabulary.traffic import LinkBack, LinkLost, LinkNews, run_of
from core.walls.levels import Level

CLOSE_S = 8.0
"""How long ending the present run may take at most when the node ends."""


class NodeRuns:
    """One run at a time. ``emit`` must fold the event into ``state()`` before it returns.

    Call ``open`` first and ``close`` at the end. Commands raise ``TandemError``. ``on_busy`` is called
    whenever ``busy`` changed.
    """

    def __init__(
        self,
        home: Home,
        me: DeviceId,
        *,
        state: Callable[[], State],
        links: RunLinks,
        transfers: RunTransfers,
        trust: SavedTrust,
        emit: Callable[[Event], None],
        on_busy: Callable[[bool], None] = lambda busy: None,
        clock: Clock | None = None,
        make_trainer: MakeTrainer | None = None,
        limits: RunLimits | None = None,
        level: Level | None = None,
    ) -> None:
        self.me = me
        self._state, self._links = state, links
        self._emit_event, self._on_busy = emit, on_busy
        self.warm = warm = WarmTrainer(
            lambda: (me := state().me) is not None and me.settings.foresee,
            lambda: self._is_in_a_run,
            foresees=make_trainer is None,
        )
        self._context = context_of(
            home, me, state, emit, links, transfers, warm, self._on_crash, clock, make_trainer, limits, level
        )
        # In a run of this laptop's own, each side receives what the other sends to this laptop.
        self._coordinator_context = self._context.looped(self._to_participant, self._broke)
        self._participant_context = self._context.looped(self._to_coordinator, self._broke)
        self.history = Recorder(home.runs, home.sweeps, me, self._context.notice)
        leftovers = Leftovers(self._context.store, home.runs, me)
        self.trimming = Trimming(leftovers, self._context.files, self._context.background)
        self._admission = Admission(self._context, trust)
        self._checkpoints = CheckpointDriver(self._context, self.history.settle)
        self._held_request = HeldRequest()
        self.readiness = Readiness(
            self._context, self.warm, lambda: self._participant.starter if self._participant else None
        )
        self.modules = Modules(self._context, self.readiness.foresee)
        self.planner = Planner(self._context, self.history, self._checkpoints, self.modules)
        elsewhere = Planner(self._context, self.history, self._checkpoints, self.modules)
        self.trials = RemoteTrials(self._context, elsewhere, self.history)
        self._coordinator: CoordinatorDriver | None = None
        self._participant: ParticipantDriver | None = None
        self.departure = Departure(me, state, lambda: self._participant)
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self.returns = Returns(
            self._context,
            self.planner,
            coordinator=lambda: self._coordinator,
            has_checkpoint=lambda: self._participant is not None and self._participant.state.has_checkpoint,
            is_in_a_run=lambda: self._is_in_a_run,
            start=self.start,
            load=self.readiness.load,
            on_over=self._end_work_if_idle,
        )

    @property
    def busy(self) -> bool:
        """A run is planned, under way, about to go on, or a peer's request waits for this user."""
        return self._is_in_a_run or self.returns.continuation.next is not None

    @property
    def _is_in_a_run(self) -> bool:
        return self.planner.under_way or self._coordinator is not None or self._participant is not None

    # --- life -----------------------------------------

    async def open(self) -> None:
        """Read the history. A damaged one is reported in a notice, and prevents no runs."""
        await self.history.open()
        self._context.files.post(temporary.sweep, self._context.temporary)
        self._context.files.post(sweep_copies, self._context.runs)

    async def close(self, *, leaves: bool = False) -> None:
        """End the present run and every trainer; returns within ``CLOSE_S`` or a little more.

        ``leaves``: as in ``Quit``.
        """
        self._closing, name = True, self._context.my_name
        self.returns.close()
        self._end_work_if_idle()
        self.planner.end(problems.closed(name))
        starter, member = self._coordinator, self._participant
        over: Callable[[], Awaitable[object]] = self._idle.wait
        if leaves and starter is not None and self._may_be_left(starter.state):
            over = partial(fall_silent, starter, member)
        elif starter is not None:
            starter.handle(co.NodeEnds(name))
        elif member is not None:
            member.close(name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.trials.close()
                await over()
        await self.warm.end()
        await self._checkpoints.close()
        await self._context.background.settle(CLOSE_S)
        await self._context.files.close()
        await self.history.close()

    def _may_be_left(self, state: co.Coordination) -> bool:
        is_resumable = isinstance(state.stage, co.Running) and self.returns.may_stop(state, state.tally.last)
        return is_resumable and may_be_left(self._state().run)

    def begin_trim(self) -> None:
        """Remove leftovers here beyond what the settings keep. Not during a run."""
        if (me := self._state().me) is None or self.busy or self._closing:
            return
        self.trimming.begin(me.settings.keep_days * DAY_S, me.settings.keep_gb * GB)

    # --- commands -----------------------------------------

    async def clear(self, also: Callable[[], Awaitable[int]]) -> int:
        """As ``Trimming.clear``. Not during a run."""
        if self.busy:
            raise TandemError.of(problems.run_under_way())
        return await self.trimming.clear(also)

    async def start(
        self, spec: RunSpec, back: Back = None, trial: TrialWanted | None = None, from_others: bool = False
    ) -> RunId:
        """Press Train. Returns once the run is planned. The rest is as in ``Planner.plan``."""
        pressed_s = self._context.clock.time()
        if self._closing or (self.busy if back is None else self._is_in_a_run):
            member = self._participant
            is_asked = member is not None and not member.state.local and not member.state.joined
            asked = problems.asked_first(member.state.starter_name) if member and is_asked else None
            raise TandemError.of(asked or problems.run_under_way())
        self.warm.foresee()
        self._begin_work()
        try:
            planned = await self.planner.plan(spec, back, trial, from_others)
        except BaseException:
            self._end_work_if_idle()
            raise
        project, wanted = planned.project, replace(spec, resume=None)
        self.history.begin(planned.plan, project.source, wanted, project.manifest, self._state())
        self._coordinator = CoordinatorDriver(
            self._coordinator_context, planned, pressed_s, emit=self._show, on_over=self._coordinator_over
        )
        self.returns.on_start(spec, goes_on=back is not None)
        self._coordinator.begin()
        return planned.plan.run

    def stop(self) -> None:
        """Stop at the end of a step; called again: terminate; a third time: kill."""
        if self._coordinator is not None:
            self._coordinator.handle(co.StopWanted(self._context.my_name, self._coordinator.state.next_force))
        elif self._participant is not None:
            self._participant.stop(self._context.my_name)
        elif not self.returns.continuation.cancel() and not self.planner.under_way:
            raise TandemError.of(problems.no_run())
        else:
            self.planner.end(problems.stopped_by(self._context.my_name))

    def go_on_waiting(self, run: RunId) -> None:
        if self._coordinator is None or self._coordinator.state.plan.run != run:
            raise TandemError.of(problems.not_asked())
        self._coordinator.handle(co.WaitedOn())

    async def answer_consent(self, run: RunId, decision: Decision) -> None:
        """``once``: these very bytes and arguments; ``always``: whatever this device sends."""
        member = self._asking_participant(run)
        if decision != "no":
            await self._admission.allow(member.state.plan, decision)
            member = self._asking_participant(run)
        member.handle(pa.Decided(decision != "no"))

    async def look_at_request(self, run: RunId) -> answers.RequestRead:
        return await self._admission.look(self._asking_participant(run).state)

    async def find_checkpoints(self, run: RunId) -> None:
        """Ask the laptops of a run that ended early for newer checkpoints than those here."""
        await self._checkpoints.search(resume_plan.plan_to_resume(await self.history.find(run, points=False)))

    # --- links -----------------------------------------

    def on_message(self, device: DeviceId, message: Message) -> None:
        """Handle any message of a linked device; ignores those that are not about runs.

        Security invariant: messages in this laptop's own name need no consent, so only the loopback delivers
        them, never a link.
        """
        if device == self.me:
            return
        self._held_request.on_message(device, message)
        if isinstance(message, ms.ModulesAsked | ms.InstallAsked | ms.InstallTold):
            self.modules.on_message(device, message)
        elif not (
            self._checkpoints.on_message(device, message)
            or self.readiness.on_message(device, message)
            or self.returns.on_message(device, message)
            or self._to_coordinator(device, message)
            or self.trials.on_message(device, message)
        ):
            self._to_participant(device, message)

    def _to_coordinator(self, device: DeviceId, message: Message) -> bool:
        """False: it is not about a run that was started here."""
        starter = self._coordinator
        if starter is None or isinstance(message, ms.Prepare) or run_of(message) != starter.state.plan.run:
            return False
        starter.on_message(device, message)
        return True

    def _to_participant(self, device: DeviceId, message: Message) -> None:
        member = self._participant
        if isinstance(message, ms.Prepare):
            self._on_prepare(device, message)
        elif member is not None and run_of(message) == member.state.plan.run and member.starter == device:
            member.on_message(device, message)

    def on_link(self, news: LinkNews) -> None:
        if isinstance(news, LinkLost):
            self.returns.on_link(news)
            self._held_request.on_link_down(news.device)
        self.trials.on_link(news)
        if self._coordinator is not None:
            self._coordinator.handle(news)
        elif self._participant is not None and self._participant.starter == news.device:
            self._participant.handle(news)
        if isinstance(news, LinkBack):
            self.returns.on_link(news)

    # --- as a member -----------------------------------------

    def _on_prepare(self, device: DeviceId, prepare: ms.Prepare) -> None:
        peer = self._state().devices.get(device)
        own = device == self.me  # its user pressed Train: nothing to ask
        if own and (self._coordinator is None or self._coordinator.state.plan.run != prepare.plan.run):
            return  # it gave way meanwhile
        if not own:
            refusal = self._admission.why_unfit(device, prepare, peer.problem if peer else None)
            if refusal is None and self._makes_way(prepare.plan):
                left, too_late = self._held_request.hold(device, prepare), problems.busy()
                if left is not None:
                    self._links.send(left[0], ms.Declined(run=left[1].plan.run, problem=too_late))
                return
            if refusal is None and (self.busy or self._closing):
                refusal = precedence.why_busy(self._present, prepare.plan)
            if refusal := refusal or self._admission.claim(prepare.plan.run):
                self._links.send(device, ms.Declined(run=prepare.plan.run, problem=refusal))
                return
            self.warm.foresee()
        self._begin_work()
        name = peer.shown_name if peer else prepare.plan.member(device).name
        participant = self._participant = ParticipantDriver(
            self._participant_context, prepare, name, emit=self._show, on_gone=self._participant_gone
        )
        if own and prepare.plan.owner is None:
            participant.handle(pa.Checked(allowed=True))
        else:
            self._context.background.start("ask for consent", self._ask(participant))

    @property
    def _present(self) -> Present | None:
        starter, member = self._coordinator, self._participant
        return precedence.present(starter.state if starter else None, member.state if member else None)

    def _makes_way(self, coming: Plan) -> bool:
        """Whether the present run has ended, or ends now because Train was pressed twice at one moment."""
        present = self._present
        if coming.starter in self.planner.devices and coming.tasks_of(coming.starter):
            self.planner.end(precedence.lost_to(coming))
        elif not self._is_tidying_up and (present is None or not precedence.gives_way(present, coming)):
            return False
        elif self._coordinator is not None:
            self._coordinator.handle(co.GivesWay(precedence.lost_to(coming)))
        return not self._closing

    @property
    def _is_tidying_up(self) -> bool:
        """The last run is over here, except for messages on their way."""
        over = precedence.is_over(self._participant.state if self._participant else None)
        return over and self._coordinator is None and not (self.planner.under_way or self._idle.is_set())

    async def _ask(self, participant: ParticipantDriver) -> None:
        participant.handle(await self._admission.ask(participant))
        if participant is not self._participant:  # it was gone before the answer
            self._admission.on_part_over(participant.state)

    def _show(self, event: Shown) -> None:
        if isinstance(event, ev.ConsentAsked | ev.ConsentSettled):
            self._emit_event(event)
            return
        if isinstance(event, ev.RunPlanned) and not self.history.is_recording(event.run):
            self.history.begin(event.plan, state=self._state())
        self._emit_event(event)
        self.history.record(event)
        if isinstance(event.phase if isinstance(event, ev.RunPhaseChanged) else event, HANDLED):
            self.returns.on_event(event)

    def _asking_participant(self, run: RunId) -> ParticipantDriver:
        member = self._participant
        if member is None or member.state.plan.run != run or not isinstance(member.state.stage, pa.Asking):
            raise TandemError.of(problems.request_gone())
        return member

    def _participant_gone(self, last: pa.Participation) -> None:
        self._participant = None
        self._admission.on_part_over(last)
        self.returns.on_part_over(last)
        self._end_work_if_idle()

    def _coordinator_over(self) -> None:
        self._coordinator = None
        asyncio.get_running_loop().call_soon(self._end_work_if_idle)

    def _begin_work(self) -> None:
        if self._idle.is_set():
            self._idle.clear()
            self._on_busy(True)

    def _end_work_if_idle(self) -> None:
        if not self._is_in_a_run:
            self.returns.on_idle()
        if self.busy or self._idle.is_set():
            return
        self._idle.set()
        self._on_busy(False)
        self.begin_trim()
        if (waiting := self._held_request.take()) is not None:
            self._on_prepare(*waiting)
        elif self.warm.always and not self._closing:
            self._context.background.start("hold a trainer warm", self.warm.make_ready())

    def _on_crash(self, name: str, error: BaseException) -> None:
        self._context.notice(problems.work_broke(name, error))

    def _broke(self, name: str, error: BaseException) -> None:
        """A message to this node itself was lost, and the run would wait for it."""
        self._on_crash(name, error)
        if self._coordinator is not None:
            self._coordinator.handle(co.Broke(problems.work_broke(name, error)))
