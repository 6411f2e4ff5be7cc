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
from core.run.admission import Reception
from core.run.context import RunLinks, Workplace
from core.run.coordinator import state as co
from core.run.coordinator.driver import StarterSide
from core.run.participant import state as pa
from core.run.participant.driver import MemberSide
from core.run.recorder import Keeping
from core.run.resume import plan as resume_plan
from core.run.resume.driver import Exchange
from core.runtime.background import Background
from core.runtime.timers import Clock
from core.runtime.worker_thread import WorkerThread
from core.supervisor.trainers import MakeTrainer, real_trainers
from core.supervisor.warm import WarmTrainer
from core.vocabulary import answers
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.commands import Decision
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event, RunEvent
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Message
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.state import State

CLOSE_S = 8.0
"""The most that ending the present run may take when the node ends."""
PART_S = 5.0
"""A member's user who presses Stop a third time does not depend on the starter's answer for longer."""


class Runs:
    """One run at a time. ``emit`` must fold the event into ``state()`` before it returns.

    ``open`` before anything else, ``close`` at the end. Commands raise ``TandemError``. ``on_busy`` is told
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
    ) -> None:
        self._state = state
        self._links = links
        self._emit_event = emit
        self._on_busy = on_busy
        self._loop = asyncio.get_running_loop()
        self._warm = WarmTrainer()
        self._keep_warm = False
        self._keeping = Keeping(home.runs, me, self._notice)
        self._place = Workplace(
            me=me,
            runs=home.runs,
            store=ProjectStore(home.projects),
            links=links,
            clock=clock or self._loop,
            files=WorkerThread("files"),
            background=Background(self._on_crash),
            make_trainer=make_trainer or real_trainers(self._warm),
        )
        self._reception = Reception(self._place, trust)
        self._exchange = Exchange(self._place, emit)
        self._planning = False
        self._stop_planning = False
        self._starter: StarterSide | None = None
        self._member: MemberSide | None = None
        self._stops_pressed = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    @property
    def me(self) -> DeviceId:
        return self._place.me

    @property
    def busy(self) -> bool:
        """A run is planned, under way, or a peer's request waits for this user."""
        return self._planning or self._starter is not None or self._member is not None

    # --- life -----------------------------------------

    async def open(self) -> None:
        """Read the history. What is wrong with it comes as a notice; runs are possible all the same."""
        await self._keeping.open()

    async def close(self) -> None:
        """End the present run and every trainer; returns within ``CLOSE_S`` or a little more."""
        self._closing = self._stop_planning = True
        self._exchange.stop()
        name = self._my_name()
        if self._starter is not None:
            self._starter.tell(co.NodeEnds(name))
        elif self._member is not None:
            self._member.tell(pa.StarterLost(problems.closed(name)))
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._idle.wait()
        except TimeoutError:
            pass
        await self._warm.end()
        await self._place.background.settle(CLOSE_S)
        await self._place.files.close()
        await self._keeping.close()

    async def set_warm(self, keep: bool) -> None:
        """Keep a trainer with TensorFlow imported ready between runs, or end it."""
        self._keep_warm = keep
        if not keep:
            await self._warm.end()
        elif not self.busy:
            await self._warm.keep()

    # --- commands -----------------------------------------

    async def analyse(self, path: str) -> answers.ScriptRead | answers.ScriptsFound:
        return await asyncio.to_thread(planning.read_script, Path(path))

    async def plan(self, spec: RunSpec) -> answers.PlanMade:
        """What would be run, and where. Changes nothing."""
        devices = planning.devices_of(spec, self.me, self._state())
        project = await asyncio.to_thread(planning.read_project, spec)
        plan = planning.make(spec, devices, project, self.me, self._state(), self._links)
        source = str(Path(project.folder) / plan.script)
        return await self._keeping.with_last_time(planning.shown(plan), source)

    async def start(self, spec: RunSpec) -> RunId:
        """Press Train. Returns as soon as the run is planned; what follows comes as events."""
        pressed_s = self._place.clock.time()
        if self.busy or self._closing:
            raise TandemError(
                code="busy",
                what="This laptop has a run under way.",
                fix="Wait until it has ended, or stop it first.",
            )
        self._begin_work()
        self._planning, self._stop_planning = True, False
        checkpoint: tuple[Path, Manifest] | None = None
        remarks: tuple[str, ...] = ()
        try:
            devices = planning.devices_of(spec, self.me, self._state())
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
        self._keeping.begin(plan, str(source / plan.script), replace(spec, resume=None), project.manifest)
        self._starter = StarterSide(
            self._place,
            plan,
            project.manifest,
            source,
            pressed_s,
            checkpoint,
            hear_here=self._hear_own_starter,
            emit=self._emit,
            on_over=self._starter_over,
        )
        self._starter.begin()
        for words in (*project.warnings, *remarks):
            self._starter.remark(words)
        return plan.run

    async def _resumed(
        self, spec: RunSpec, run: RunId, devices: tuple[DeviceId, ...], project: planning.ReadProject
    ) -> tuple[Plan, tuple[Path, Manifest], tuple[str, ...]]:
        """The plan that goes on with a run, its newest checkpoint, brought here, and what to say of it."""
        details = await self._keeping.find(run)
        old = resume_plan.before(details)
        then = await asyncio.to_thread(self._exchange.project_of, old)
        remarks = resume_plan.check_code(then, project.manifest, old)
        spec = resume_plan.asked(spec, old, devices)
        plan = planning.make(spec, devices, project, self.me, self._state(), self._links)
        if self._stop_planning or (got := await self._exchange.bring(old)) is None:
            raise TandemError.of(problems.stopped_by(self._my_name()))
        plan = resume_plan.continued(plan, spec, old, got.found)
        return plan, (got.folder, got.found.files), remarks + got.remarks

    def stop(self) -> None:
        """At the end of a step; again: terminate; a third time: kill."""
        if self._starter is not None:
            self._starter.tell(co.StopWanted(self._my_name(), self._starter.known.stop + 1))
        elif self._member is not None and self._member.known.stage == "consent":
            self._member.tell(pa.Decided(False))
        elif self._member is not None:
            force = min(self._stops_pressed, 2)
            self._stops_pressed += 1
            self._links.send(self._member.starter, ms.StopAsked(run=self._member.known.plan.run, force=force))
            if force == 2:
                self._place.clock.call_later(PART_S, partial(self._part_from_starter, self._member))
        elif self._planning:
            self._stop_planning = True
            self._exchange.stop()
        else:
            raise TandemError(
                code="no-run", what="No run is under way here.", fix="There is nothing to stop."
            )

    async def answer_consent(self, run: RunId, decision: Decision) -> None:
        """``once``: these very bytes and arguments; ``always``: whatever this device sends."""
        member = self._asked(run)
        if decision != "no":
            await self._reception.allow(member.known.plan, decision)
            member = self._asked(run)
        member.tell(pa.Decided(decision != "no"))

    async def list_runs(self, limit: int) -> answers.RunList:
        return await self._keeping.newest(limit)

    async def get_run(self, run: str) -> answers.RunDetails:
        """``run`` may be a unique beginning of an id."""
        return await self._keeping.find(run)

    async def find_checkpoints(self, run: RunId) -> None:
        """Ask the laptops of a run that ended before its time for newer ones than ours."""
        await self._exchange.look(resume_plan.before(await self._keeping.find(run)))

    # --- links -----------------------------------------

    def on_message(self, device: DeviceId, message: Message) -> None:
        """Any message of a linked device; those that are not about runs are left alone."""
        starter, member = self._starter, self._member
        if isinstance(message, ms.Prepare):
            self._on_prepare(device, message)
            return
        if self._exchange.hear(device, message):
            return
        run = ms.run_of(message)
        if run is None:
            return
        if starter is not None and starter.known.plan.run == run:
            starter.hear(device, message)
        elif member is not None and member.known.plan.run == run and member.starter == device:
            member.hear(message)

    def on_link_down(self, device: DeviceId, problem: Problem) -> None:
        self._exchange.link_down(device)
        if self._starter is not None:
            self._starter.tell(co.MemberLost(device, problem))
        elif self._member is not None and self._member.starter == device:
            self._member.tell(pa.StarterLost(problem))

    # --- as a member -----------------------------------------

    def _on_prepare(self, device: DeviceId, prepare: ms.Prepare) -> None:
        peer = self._state().devices.get(device)
        refusal = self._reception.why_refused(
            device, prepare, unlike=peer.problem if peer else None, busy=self.busy or self._closing
        )
        if refusal is not None:
            self._links.send(device, ms.Declined(run=prepare.plan.run, problem=refusal))
            return
        self._begin_work()
        name = peer.shown_name if peer else prepare.plan.member(device).name
        member = self._take_part(prepare, name, tell=partial(self._tell_starter, device))
        self._place.background.start("ask for consent", self._ask(member))

    async def _ask(self, member: MemberSide) -> None:
        known = member.known
        member.tell(await self._reception.ask(known.plan, known.manifest, known.checkpoint))

    def _take_part(
        self, prepare: ms.Prepare, starter_name: str, *, tell: Callable[[Message], None]
    ) -> MemberSide:
        self._stops_pressed = 0
        self._member = MemberSide(
            self._place, prepare, starter_name, tell=tell, show=self._show, on_gone=self._member_gone
        )
        return self._member

    def _tell_starter(self, device: DeviceId, message: Message) -> None:
        self._links.send(device, message)  # a lost link comes as on_link_down

    def _show(self, event: RunEvent | ev.ConsentAsked | ev.ConsentSettled) -> None:
        if isinstance(event, ev.ConsentAsked | ev.ConsentSettled):
            self._emit_event(event)
            return
        if isinstance(event, ev.RunPlanned) and not self._keeping.recording:
            self._keeping.begin(event.plan)
        self._emit(event)

    def _part_from_starter(self, member: MemberSide) -> None:
        if member is self._member:
            member.tell(pa.StarterLost(problems.stopped_by(self._my_name())))

    def _asked(self, run: RunId) -> MemberSide:
        member = self._member
        if member is None or member.known.plan.run != run or member.known.stage != "consent":
            raise TandemError(
                code="no-such-question",
                what="That request is not open any more.",
                fix="The other laptop can start the run again.",
            )
        return member

    def _member_gone(self) -> None:
        self._member = None
        self._end_work_if_idle()

    # --- as the starter -----------------------------------------

    def _hear_own_starter(self, message: Message) -> None:
        """Like a link, this delivers after the present step."""
        self._loop.call_soon(self._deliver_to_own_part, message)

    def _deliver_to_own_part(self, message: Message) -> None:
        if isinstance(message, ms.Prepare):
            member = self._take_part(message, self._my_name(), tell=self._tell_own_starter)
            member.tell(pa.Asked(allowed=True))
        elif self._member is not None:
            self._member.hear(message)

    def _tell_own_starter(self, message: Message) -> None:
        self._loop.call_soon(self._deliver_to_own_starter, message)

    def _deliver_to_own_starter(self, message: Message) -> None:
        if self._starter is not None:
            self._starter.hear(self.me, message)

    def _starter_over(self) -> None:
        self._starter = None
        self._loop.call_soon(self._end_work_if_idle)

    def _emit(self, event: RunEvent) -> None:
        self._emit_event(event)
        self._keeping.keep(event)

    def _notice(self, problem: Problem) -> None:
        self._emit_event(ev.NoticeRaised(problem=problem))

    # --- small steps -----------------------------------------

    def _begin_work(self) -> None:
        self._idle.clear()
        self._on_busy(True)

    def _end_work_if_idle(self) -> None:
        if self.busy or self._idle.is_set():
            return
        self._idle.set()
        self._on_busy(False)
        if self._keep_warm and not self._closing:
            self._place.background.start("keep a trainer warm", self._warm.keep())

    def _my_name(self) -> str:
        me = self._state().me
        return me.name if me is not None else "this laptop"

    def _on_crash(self, name: str, error: BaseException) -> None:
        problem = error.problem if isinstance(error, TandemError) else None
        self._notice(
            problem
            or Problem(
                code="run-work-broke",
                what=f"Something went wrong inside Tandem ({name}).",
                fix="Save the diagnostics and report it, please.",
                detail=repr(error),
            )
        )
