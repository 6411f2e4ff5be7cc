"""Every run of this node: the one under way, as starter or as member, and the history. On the core loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from core.home.home import Home
from core.home.trust_file import SavedTrust
from core.project.store import ProjectStore
from core.run import planning, problems
from core.run.admission import Admission
from core.run.context import Loopback, RunContext, RunLimits, RunLinks
from core.run.coordinator import state as co
from core.run.coordinator.driver import CoordinatorDriver
from core.run.draft import Shown
from core.run.participant import state as pa
from core.run.participant.driver import ParticipantDriver
from core.run.recorder import Recorder
from core.run.resume import plan as resume_plan
from core.run.resume.driver import CheckpointDriver
from core.runtime.background import Background, WorkerThread
from core.runtime.timers import Clock
from core.supervisor.trainers import MakeTrainer, real_trainers
from core.supervisor.warm import WarmTrainer
from core.vocabulary import answers
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.commands import Decision
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Message
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.state import Device, State

CLOSE_S = 8.0
"""The most that ending the present run may take when the node ends."""
PART_S = 5.0
"""How long a participant whose user pressed Stop a third time still waits for the starter's answer."""


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
        self._context = RunContext(
            me=me,
            runs=home.runs,
            store=ProjectStore(home.projects),
            links=links,
            clock=clock or self._loop,
            files=WorkerThread("files"),
            background=Background(self._on_crash),
            make_trainer=make_trainer or real_trainers(self._warm),
            limits=limits or RunLimits(),
        )
        # In a run of this laptop's own, what one side sends to this laptop, the other one receives.
        self._coordinator_context = self._context.with_links(Loopback(me, links, self._to_participant))
        self._participant_context = self._context.with_links(Loopback(me, links, self._to_coordinator))
        self._admission = Admission(self._context, trust)
        self._checkpoints = CheckpointDriver(self._context, emit)
        self._planning = False
        self._stop_planning = False
        self._coordinator: CoordinatorDriver | None = None
        self._participant: ParticipantDriver | None = None
        self._stops_pressed = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    @property
    def me(self) -> DeviceId:
        return self._context.me

    @property
    def busy(self) -> bool:
        """A run is planned, under way, or a peer's request waits for this user."""
        return self._planning or self._coordinator is not None or self._participant is not None

    # --- life -----------------------------------------

    async def open(self) -> None:
        """Read the history. What is wrong with it comes as a notice; runs are possible nevertheless."""
        await self._recorder.open()

    async def close(self) -> None:
        """End the present run and every trainer; returns within ``CLOSE_S`` or a little more."""
        self._closing = self._stop_planning = True
        self._checkpoints.stop()
        name = self._my_name()
        if self._coordinator is not None:
            self._coordinator.handle(co.NodeEnds(name))
        elif self._participant is not None:
            self._participant.handle(pa.StarterLost(problems.closed(name)))
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._idle.wait()
        except TimeoutError:
            pass
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
        source = str(Path(project.folder) / plan.script)
        return await self._recorder.with_last_time(planning.shown(plan), source)

    async def start(self, spec: RunSpec) -> RunId:
        """Press Train. Returns as soon as the run is planned; what follows comes as events."""
        pressed_s = self._context.clock.time()
        if self.busy or self._closing:
            raise TandemError.of(problems.run_under_way())
        self._begin_work()
        self._planning, self._stop_planning = True, False
        checkpoint: tuple[Path, Manifest] | None = None
        remarks: tuple[str, ...] = ()
        try:
            devices = planning.choose_devices(spec, self.me, self._state())
            project = await asyncio.to_thread(planning.read_project, spec)
            if spec.resume is None:
                plan = planning.make(spec, devices, project, self.me, self._state(), self._links)
            else:
                plan, checkpoint, remarks = await self._resumed(spec, spec.resume, devices, project)
            if self._stop_planning:
                raise TandemError.of(problems.stopped_by(self._my_name()))
        except BaseException:
            self._planning = False
            self._end_work_if_idle()
            raise
        self._planning = False
        source = Path(project.folder)
        self._recorder.begin(plan, str(source / plan.script), replace(spec, resume=None), project.manifest)
        self._coordinator = CoordinatorDriver(
            self._coordinator_context,
            plan,
            project.manifest,
            source,
            pressed_s,
            checkpoint,
            emit=self._show,
            on_over=self._coordinator_over,
        )
        self._coordinator.begin()
        for words in (*project.warnings, *remarks):
            self._coordinator.remark(words)
        return plan.run

    async def _resumed(
        self, spec: RunSpec, run: RunId, devices: tuple[DeviceId, ...], project: planning.LocalProject
    ) -> tuple[Plan, tuple[Path, Manifest], tuple[str, ...]]:
        """The plan that resumes a run, its newest checkpoint, fetched, and remarks on it."""
        details = await self._recorder.find(run)
        old = resume_plan.before(details)
        then = await asyncio.to_thread(self._checkpoints.project_of, old)
        remarks = resume_plan.check_code(then, project.manifest, old)
        spec = resume_plan.asked(spec, old, devices)
        plan = planning.make(spec, devices, project, self.me, self._state(), self._links)
        if self._stop_planning or (got := await self._checkpoints.fetch(old)) is None:
            raise TandemError.of(problems.stopped_by(self._my_name()))
        plan = resume_plan.continued(plan, spec, old, got.found)
        return plan, (got.folder, got.found.files), remarks + got.remarks

    def stop(self) -> None:
        """At the end of a step; again: terminate; a third time: kill."""
        if self._coordinator is not None:
            self._coordinator.handle(co.StopWanted(self._my_name(), self._coordinator.state.next_force))
        elif self._participant is not None and isinstance(self._participant.state.stage, pa.Asking):
            self._participant.handle(pa.Decided(False))
        elif self._participant is not None:
            force = min(self._stops_pressed, 2)
            self._stops_pressed += 1
            plan = self._participant.state.plan
            self._links.send(plan.starter, ms.StopAsked(run=plan.run, force=force))
            if self._participant.state.away_s is not None:
                self._leave_starter(self._participant)
            elif force == 2:
                self._context.clock.call_later(PART_S, partial(self._leave_starter, self._participant))
        elif self._planning:
            self._stop_planning = True
            self._checkpoints.stop()
        else:
            raise TandemError.of(problems.no_run())

    def go_on_waiting(self, run: RunId) -> None:
        """The user was asked whether to."""
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

    async def list_runs(self, limit: int) -> answers.RunList:
        return await self._recorder.newest(limit)

    async def get_run(self, run: str) -> answers.RunDetails:
        """``run`` may be a unique beginning of an id."""
        return await self._recorder.find(run)

    async def find_checkpoints(self, run: RunId) -> None:
        """Ask the laptops of a run that ended early for newer checkpoints than those here."""
        await self._checkpoints.look(resume_plan.before(await self._recorder.find(run)))

    # --- links -----------------------------------------

    def on_message(self, device: DeviceId, message: Message) -> None:
        """Any message of a linked device; those that are not about runs are left alone.

        Security invariant: what comes in this laptop's own name is not asked about, so the loopback alone
        brings such a message, never a link.
        """
        if device == self.me:
            return
        about_a_run = (
            self._checkpoints.on_message(device, message)
            or self._to_coordinator(device, message)
            or self._to_participant(device, message)
        )
        if not about_a_run and isinstance(message, ms.Resumed):
            self._answer_stray(device, message)

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

    def _answer_stray(self, device: DeviceId, message: ms.Resumed) -> None:
        """A laptop is back, and wants to go on with a run of which nothing is here any more."""
        answer: Message
        if message.from_starter:
            answer = ms.Declined(run=message.run, problem=problems.part_gone())
        else:
            answer = ms.RunAbandoned(run=message.run, problem=problems.over_meanwhile(self._my_name()))
        self._links.send(device, answer)

    def on_link_up(self, device: DeviceId) -> None:
        if self._coordinator is not None:
            self._coordinator.handle(co.MemberReturned(device))
        elif self._participant is not None and self._participant.starter == device:
            self._participant.handle(pa.StarterReturned())

    def on_link_down(self, device: DeviceId, problem: Problem) -> None:
        self._checkpoints.on_link_down(device)
        if self._coordinator is not None:
            self._coordinator.handle(co.MemberLost(device, problem))
        elif self._participant is not None and self._participant.starter == device:
            self._participant.handle(pa.StarterLost(problem))

    # --- as a member -----------------------------------------

    def _on_prepare(self, device: DeviceId, prepare: ms.Prepare) -> None:
        peer = self._state().devices.get(device)
        own = device == self.me  # its user pressed Train: nothing to ask
        refusal = None if own else self._why_refused(device, prepare, peer)
        if refusal is not None:
            self._links.send(device, ms.Declined(run=prepare.plan.run, problem=refusal))
            return
        self._begin_work()
        self._stops_pressed = 0
        name = peer.shown_name if peer else prepare.plan.member(device).name
        participant = self._participant = ParticipantDriver(
            self._participant_context, prepare, name, emit=self._show, on_gone=self._participant_gone
        )
        if own:
            participant.handle(pa.Asked(allowed=True))
        else:
            self._context.background.start("ask for consent", self._ask(participant))

    def _why_refused(self, device: DeviceId, prepare: ms.Prepare, peer: Device | None) -> Problem | None:
        unlike = peer.problem if peer else None
        return self._admission.why_refused(device, prepare, unlike=unlike, busy=self.busy or self._closing)

    async def _ask(self, participant: ParticipantDriver) -> None:
        state = participant.state
        participant.handle(await self._admission.ask(state.plan, state.manifest, state.checkpoint))

    def _show(self, event: Shown) -> None:
        if isinstance(event, ev.ConsentAsked | ev.ConsentSettled):
            self._emit_event(event)
            return
        if isinstance(event, ev.RunPlanned) and not self._recorder.recording:
            self._recorder.begin(event.plan)
        self._emit_event(event)
        self._recorder.record(event)

    def _leave_starter(self, member: ParticipantDriver) -> None:
        if member is self._participant:
            member.handle(pa.StarterLost(problems.stopped_by(self._my_name())))

    def _asked(self, run: RunId) -> ParticipantDriver:
        member = self._participant
        if member is None or member.state.plan.run != run or not isinstance(member.state.stage, pa.Asking):
            raise TandemError.of(problems.request_gone())
        return member

    def _participant_gone(self) -> None:
        self._participant = None
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
        if self._hold_warm and not self._closing:
            self._context.background.start("hold a trainer warm", self._warm.keep())

    def _my_name(self) -> str:
        me = self._state().me
        return me.name if me is not None else "this laptop"

    def _on_crash(self, name: str, error: BaseException) -> None:
        problem = error.problem if isinstance(error, TandemError) else None
        self._notice(problem or problems.work_broke(name, error))
