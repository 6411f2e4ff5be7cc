"""Every run of this node: the one under way, as starter or as member, and the history. On the core loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from core.home.home import Home
from core.home.trust_file import SavedTrust
from core.project.store import ProjectStore
from core.run import planning, precedence, problems
from core.run.admission import Admission, stray_answer
from core.run.context import Loopback, RunContext, RunLimits, RunLinks
from core.run.coordinator import state as co
from core.run.coordinator.driver import CoordinatorDriver
from core.run.draft import Shown
from core.run.modules import Modules
from core.run.participant import state as pa
from core.run.participant.driver import ParticipantDriver
from core.run.planner import Planner
from core.run.precedence import HeldRequest, Present
from core.run.recorder import Recorder
from core.run.resume import plan as resume_plan
from core.run.resume.driver import CheckpointDriver
from core.runtime.background import Background, WorkerThread
from core.runtime.timers import Clock
from core.supervisor import temporary
from core.supervisor.loading_times import LoadingTimes
from core.supervisor.trainers import MakeTrainer, real_trainers
from core.supervisor.warm import WarmTrainer
from core.vocabulary import answers
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.commands import Decision
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import Message
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.state import State

CLOSE_S = 8.0
"""The most that ending the present run may take when the node ends."""


class NodeRuns:
    """One run at a time. ``emit`` must fold the event into ``state()`` before it returns.

    ``open`` before anything else, ``close`` at the end. Commands raise ``TandemError``. ``on_busy`` is called
    whenever ``busy`` changed.
    """

    def __init__(
        self,
        home: Home,
        me: DeviceId,
        *,
        state: Callable[[], State],
        links: RunLinks,
        trust: SavedTrust,
        emit: Callable[[Event], None],
        on_busy: Callable[[bool], None] = lambda busy: None,
        clock: Clock | None = None,
        make_trainer: MakeTrainer | None = None,
        limits: RunLimits | None = None,
    ) -> None:
        self._state = state
        self._links = links
        self._emit_event = emit
        self._on_busy = on_busy
        self._loop = asyncio.get_running_loop()
        self._warm = WarmTrainer()
        self._hold_warm = False
        self._recorder = Recorder(home.runs, me, self._notice)
        loading = LoadingTimes(home.loading)
        self._context = RunContext(
            me=me,
            runs=home.runs,
            temporary=home.temporary,
            store=ProjectStore(home.projects),
            loading=loading,
            links=links,
            clock=clock or self._loop,
            files=WorkerThread("files"),
            background=Background(self._on_crash),
            make_trainer=make_trainer or real_trainers(self._warm, loading),
            limits=limits or RunLimits(),
        )
        # In a run of this laptop's own, what one side sends to this laptop, the other one receives.
        self._coordinator_context = self._context.with_links(
            Loopback(me, links, self._to_participant, self._broke)
        )
        self._participant_context = self._context.with_links(
            Loopback(me, links, self._to_coordinator, self._broke)
        )
        self._admission = Admission(self._context, trust)
        self._checkpoints = CheckpointDriver(self._context, emit)
        self._held_request = HeldRequest()
        self._modules = Modules(self._context)
        self._planner = Planner(self._context, state, self._recorder, self._checkpoints, self._modules)
        self._coordinator: CoordinatorDriver | None = None
        self._participant: ParticipantDriver | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    @property
    def me(self) -> DeviceId:
        return self._context.me

    @property
    def busy(self) -> bool:
        """A run is planned, under way, or a peer's request waits for this user."""
        return self._planner.under_way or self._coordinator is not None or self._participant is not None

    # --- life -----------------------------------------

    async def open(self) -> None:
        """Read the history. What is wrong with it comes as a notice; runs are possible nevertheless."""
        await self._recorder.open()
        self._context.files.post(temporary.sweep, self._context.temporary)

    async def close(self) -> None:
        """End the present run and every trainer; returns within ``CLOSE_S`` or a little more."""
        self._closing, name = True, self._my_name()
        self._planner.end(problems.closed(name))
        if self._coordinator is not None:
            self._coordinator.handle(co.NodeEnds(name))
        elif self._participant is not None:
            self._participant.close(name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._idle.wait()
        await self._warm.end()
        await self._context.background.settle(CLOSE_S)
        await self._context.files.close()
        await self._recorder.close()

    async def set_warm(self, hold: bool) -> None:
        """Hold a trainer ready between runs, with TensorFlow imported, or end it."""
        self._hold_warm = hold
        if not hold:
            await self._warm.end()
        elif not self.busy:
            await self._warm.keep()

    # --- commands -----------------------------------------

    async def analyse(self, path: str) -> answers.ScriptRead | answers.ScriptsFound:
        return await asyncio.to_thread(planning.read_script, Path(path))

    async def plan(self, spec: RunSpec) -> answers.PlanMade:
        """What would be run, and where. Changes nothing."""
        devices = planning.choose_devices(spec, self.me, self._state())
        project = await asyncio.to_thread(planning.read_project, spec)
        plan = planning.make(spec, devices, project, self.me, self._state(), self._links)
        warnings = await self._planner.look_for_modules(plan, project)
        source = str(Path(project.folder) / plan.script)
        return await self._recorder.with_last_time(planning.shown(plan, warnings), source)

    async def start(self, spec: RunSpec) -> RunId:
        """Press Train. Returns as soon as the run is planned."""
        pressed_s = self._context.clock.time()
        if self.busy or self._closing:
            member = self._participant
            is_asked = member is not None and not member.state.local and not member.state.joined
            asked = problems.asked_first(member.state.starter_name) if member and is_asked else None
            raise TandemError.of(asked or problems.run_under_way())
        self._begin_work()
        try:
            planned = await self._planner.plan(spec)
        except BaseException:
            self._end_work_if_idle()
            raise
        plan, project = planned.plan, planned.project
        source = Path(project.folder)
        wanted = replace(spec, resume=None)
        self._recorder.begin(plan, str(source / plan.script), wanted, project.manifest, self._state())
        self._coordinator = CoordinatorDriver(
            self._coordinator_context,
            plan,
            project.manifest,
            source,
            pressed_s,
            planned.checkpoint,
            project.texts,
            emit=self._show,
            on_over=self._coordinator_over,
        )
        self._coordinator.begin()
        for words in (*project.warnings, *planned.remarks):
            self._coordinator.remark(words)
        return plan.run

    def stop(self) -> None:
        """At the end of a step; again: terminate; a third time: kill."""
        if self._coordinator is not None:
            self._coordinator.handle(co.StopWanted(self._my_name(), self._coordinator.state.next_force))
        elif self._participant is not None:
            self._participant.stop(self._my_name())
        elif self._planner.under_way:
            self._planner.end(problems.stopped_by(self._my_name()))
        else:
            raise TandemError.of(problems.no_run())

    def go_on_waiting(self, run: RunId) -> None:
        if self._coordinator is None or self._coordinator.state.plan.run != run:
            raise TandemError.of(problems.not_asked())
        self._coordinator.handle(co.WaitedOn())

    async def answer_consent(self, run: RunId, decision: Decision) -> None:
        """``once``: these very bytes and arguments; ``always``: whatever this device sends."""
        member = self._asked(run)
        if decision != "no":
            await self._admission.allow(member.state.plan, decision)
            member = self._asked(run)
        member.handle(pa.Decided(decision != "no"))

    async def look_at_request(self, run: RunId) -> answers.RequestRead:
        return await self._admission.look(self._asked(run).state)

    @property
    def history(self) -> Recorder:
        return self._recorder

    async def find_checkpoints(self, run: RunId) -> None:
        """Ask the laptops of a run that ended early for newer checkpoints than those here."""
        await self._checkpoints.look(resume_plan.before(await self._recorder.find(run, points=False)))

    # --- links -----------------------------------------

    def on_message(self, device: DeviceId, message: Message) -> None:
        """Any message of a linked device; those that are not about runs are left alone.

        Security invariant: what comes in this laptop's own name is not asked about, so the loopback alone
        brings such a message, never a link.
        """
        if device == self.me:
            return
        self._held_request.on_message(device, message)
        if self._modules.on_message(device, message):
            return
        takers = (self._checkpoints.on_message, self._to_coordinator, self._to_participant)
        taken = any(take(device, message) for take in takers)
        if isinstance(message, ms.Resumed) and not taken and not self._held_request.holds(message.run):
            self._links.send(device, stray_answer(message, self._my_name(), self._state().run))

    def _to_coordinator(self, device: DeviceId, message: Message) -> bool:
        """False: it is not about a run that was started here."""
        starter = self._coordinator
        if starter is None or isinstance(message, ms.Prepare) or ms.run_of(message) != starter.state.plan.run:
            return False
        starter.on_message(device, message)
        return True

    def _to_participant(self, device: DeviceId, message: Message) -> bool:
        """False: it is not about a run in which this laptop takes part."""
        member = self._participant
        if isinstance(message, ms.Prepare):
            self._on_prepare(device, message)
        elif member is not None and ms.run_of(message) == member.state.plan.run and member.starter == device:
            member.on_message(device, message)
        else:
            return False
        return True

    def on_link_up(self, device: DeviceId) -> None:
        if self._coordinator is not None:
            self._coordinator.handle(co.MemberReturned(device))
        elif self._participant is not None and self._participant.starter == device:
            self._participant.handle(pa.StarterReturned())

    def on_link_down(self, device: DeviceId, problem: Problem) -> None:
        self._checkpoints.on_link_down(device)
        self._held_request.on_link_down(device)
        if self._coordinator is not None:
            self._coordinator.handle(co.MemberLost(device, problem))
        elif self._participant is not None and self._participant.starter == device:
            self._participant.handle(pa.StarterLost(problem))

    # --- as a member -----------------------------------------

    def _on_prepare(self, device: DeviceId, prepare: ms.Prepare) -> None:
        peer = self._state().devices.get(device)
        own = device == self.me  # its user pressed Train: nothing to ask
        member = self._participant
        if member is not None and (member.starter, member.state.plan.run) == (device, prepare.plan.run):
            return  # said again on a new link
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
            if refusal := refusal or self._admission.take(prepare.plan.run):
                self._links.send(device, ms.Declined(run=prepare.plan.run, problem=refusal))
                return
        self._begin_work()
        name = peer.shown_name if peer else prepare.plan.member(device).name
        participant = self._participant = ParticipantDriver(
            self._participant_context, prepare, name, emit=self._show, on_gone=self._participant_gone
        )
        if own:
            participant.handle(pa.Asked(allowed=True))
        else:
            self._context.background.start("ask for consent", self._ask(participant))

    @property
    def _present(self) -> Present | None:
        starter, member = self._coordinator, self._participant
        return precedence.present(starter.state if starter else None, member.state if member else None)

    def _makes_way(self, coming: Plan) -> bool:
        """Whether the present run ends, since Train was pressed twice at the same moment; or has ended."""
        present = self._present
        if coming.starter in self._planner.devices:
            self._planner.end(precedence.lost_to(coming))
        elif not self._is_tidying_up and (present is None or not precedence.gives_way(present, coming)):
            return False
        elif self._coordinator is not None:
            self._coordinator.handle(co.GivesWay(precedence.lost_to(coming)))
        return not self._closing

    @property
    def _is_tidying_up(self) -> bool:
        """The last run is over here, but for words that are on their way."""
        over = precedence.is_over(self._participant.state if self._participant else None)
        return over and self._coordinator is None and not (self._planner.under_way or self._idle.is_set())

    async def _ask(self, participant: ParticipantDriver) -> None:
        state = participant.state
        participant.handle(await self._admission.ask(state))

    def _show(self, event: Shown) -> None:
        if isinstance(event, ev.ConsentAsked | ev.ConsentSettled):
            self._emit_event(event)
            return
        if isinstance(event, ev.RunPlanned) and not self._recorder.recording:
            self._recorder.begin(event.plan, state=self._state())
        self._emit_event(event)
        self._recorder.record(event)

    def _asked(self, run: RunId) -> ParticipantDriver:
        member = self._participant
        if member is None or member.state.plan.run != run or not isinstance(member.state.stage, pa.Asking):
            raise TandemError.of(problems.request_gone())
        return member

    def _participant_gone(self, last: pa.Participation) -> None:
        self._participant = None
        self._admission.over(last)
        self._end_work_if_idle()

    # --- as the starter -----------------------------------------

    def _coordinator_over(self) -> None:
        self._coordinator = None
        self._loop.call_soon(self._end_work_if_idle)

    def _notice(self, problem: Problem) -> None:
        self._emit_event(ev.NoticeRaised(problem=problem))

    # --- small steps -----------------------------------------

    def _begin_work(self) -> None:
        if self._idle.is_set():
            self._idle.clear()
            self._on_busy(True)

    def _end_work_if_idle(self) -> None:
        if self.busy or self._idle.is_set():
            return
        self._idle.set()
        self._on_busy(False)
        if (waiting := self._held_request.take()) is not None:
            self._on_prepare(*waiting)
        elif self._hold_warm and not self._closing:
            self._context.background.start("hold a trainer warm", self._warm.keep())

    def _my_name(self) -> str:
        me = self._state().me
        return me.name if me is not None else "this laptop"

    def _on_crash(self, name: str, error: BaseException) -> None:
        self._notice(problems.work_broke(name, error))

    def _broke(self, name: str, error: BaseException) -> None:
        """A message to oneself got lost, which the run would wait for."""
        self._on_crash(name, error)
        if self._coordinator is not None:
            self._coordinator.handle(co.Broke(problems.work_broke(name, error)))
