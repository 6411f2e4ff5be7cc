"""A node: owns the state, and joins neighbours, runs and telemetry. Everything here is on the core loop.

The state changes only in its store, by ``core.vocabulary.state.apply``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Self

from msgspec.structs import replace

from core.doctor.trial import Trials
from core.doctor.view import Examined
from core.home import settings_file
from core.home.home import Home
from core.home.opened_home import OpenedHome, open_home
from core.node import diagnostics
from core.node.local_socket import LocalSocket
from core.node.neighbours import Neighbours
from core.node.store import Store
from core.node.sweeps import Sweeps
from core.report.correspondence import Reports
from core.run.context import RunLimits
from core.run.runs import NodeRuns
from core.runtime.awake import Awake
from core.runtime.background import Background, WorkerClosed, bounded
from core.supervisor import seals
from core.supervisor.trainers import MakeTrainer
from core.telemetry.sampler import Sampler
from core.telemetry.watch import Watch
from core.vocabulary import answers as an
from core.vocabulary import commands as cm
from core.vocabulary import events as ev
from core.vocabulary import settings
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.node import Listener
from core.vocabulary.peer_messages import BusyTold, Hello, Message, ReachAsked, ReportSent, TelemetrySent
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import State
from core.vocabulary.versions import installed

RUN_ENDS_S = 22.0
"""Longer than the limit of ``NodeRuns.close``. Trainers still alive then end with this process."""
PART_ENDS_S = 5.0
"""How long any other part of a node may take to end."""
_log = logging.getLogger(__name__)


class Node:
    """One per home, made by ``start``. Until ``stop`` it takes commands and sends its listeners events."""

    def __init__(
        self,
        opened: OpenedHome,
        watch: Watch,
        hardware: Hardware,
        make_trainer: MakeTrainer | None = None,
        part_ends_s: float = PART_ENDS_S,
        run_limits: RunLimits | None = None,
    ) -> None:
        self.home = opened.home
        self._store = Store()
        self._opened = opened
        self._watch = watch
        self._hardware = hardware
        self._versions = installed()
        self._settings = opened.settings
        self._changing_settings = asyncio.Lock()
        self._background = Background(self._on_crash)
        self._stopping: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self._part_ends_s = part_ends_s
        self._neighbours = Neighbours(
            opened,
            hello=self._hello,
            emit=self._emit,
            on_message=self._on_message,
            on_link=lambda news: self._runs.on_link(news),
            background=self._background,
        )
        self._trials = Trials(self._neighbours.links, self._background)
        links, background = self._neighbours.links, self._background
        self._reports = Reports(opened.home.received, links, lambda: self.state, self._emit, background)
        self._runs = NodeRuns(
            opened.home,
            opened.identity.device_id,
            state=lambda: self.state,
            links=self._neighbours.links,
            transfers=self._neighbours.transfers,
            trust=self._neighbours.trust,
            emit=self._emit,
            on_busy=self._on_busy,
            make_trainer=make_trainer,
            limits=run_limits,
        )
        self._sweeps = Sweeps(
            opened.home,
            self._runs,
            state=lambda: self.state,
            emit=self._emit,
            on_active=self._stay_awake,
            background=self._background,
        )
        self._socket = LocalSocket(opened.home, self)
        self._awake = Awake()

    # --- life ----------------------------------------------------------------------------------------------

    @classmethod
    async def start(
        cls,
        home: Home,
        *,
        watch: Watch | None = None,
        make_trainer: MakeTrainer | None = None,
        part_ends_s: float = PART_ENDS_S,
        run_limits: RunLimits | None = None,
    ) -> Self:
        """Raises ``TandemError`` where this home can have no node now; nothing is left open then.

        ``watch``, ``make_trainer``, ``part_ends_s``, ``run_limits``: for tests, replacements for telemetry,
        trainers, and the limits for ending a part and within runs.
        """
        began_s = time.monotonic()
        watch = watch or Watch(make_sampler=partial(Sampler, disk=home.folder))
        opened = await asyncio.to_thread(open_home, home)
        token = opened.log.enter()
        try:
            node = cls(opened, watch, await watch.start(), make_trainer, part_ends_s, run_limits)
            try:
                await node._begin()
            except BaseException:
                await node.stop()
                raise
            _log.info("ready on port %d after %.2f s", node._neighbours.port, time.monotonic() - began_s)
            return node
        finally:
            opened.log.leave(token)

    async def _begin(self) -> None:
        await self._runs.open()
        self._versions = replace(self._versions, seal=await asyncio.to_thread(seals.find))
        taken = await self._neighbours.listen()
        self._emit(
            ev.NodeStarted(
                device=self._opened.identity.device_id,
                name=self._name,
                addresses=self._neighbours.addresses,
                versions=self._versions,
                hardware=self._hardware,
                settings=self._settings,
                home=str(self.home.folder),
            )
        )
        for problem in (*self._opened.notices, *((taken,) if taken else ())):
            self._notice(problem)
        self._neighbours.meet_paired()
        self._runs.begin_trim()
        await self._sweeps.open(go_on=self._settings.go_on)
        await self._runs.returns.recover(self._runs.history, go_on=self._settings.go_on)
        try:
            await self._socket.open()
        except TandemError as error:
            self._notice(error.problem)
        self._watch.begin(self._on_reading, lambda error: self._on_crash("telemetry", error))
        if self._settings.warm_trainer:
            self._background.start("a warm trainer", self._runs.warm.hold(True, busy=False))

    async def stop(self) -> None:
        """End runs, say goodbye, close everything; bounded. A second call waits for the first."""
        await asyncio.shield(self._begin_stop())

    def _begin_stop(self, *, leaves: bool = False) -> asyncio.Task[None]:
        if self._stopping is None:
            # Not one of the node's background tasks, which it ends.
            self._stopping = asyncio.create_task(self._stop(leaves), name="node-stop")
        return self._stopping

    async def wait_stopped(self) -> None:
        """Wait until the node has ended, by ``stop`` or by ``Quit``."""
        await self._stopped.wait()

    async def _stop(self, leaves: bool) -> None:
        self._opened.log.enter()
        await bounded("the sweep", self._sweeps.close(), self._part_ends_s)
        await bounded("the run", self._runs.close(leaves=leaves), RUN_ENDS_S)
        await bounded("the neighbours", self._neighbours.close(), self._part_ends_s)
        await bounded("staying awake", self._awake.close(), self._part_ends_s)
        await bounded("telemetry", self._watch.stop(), self._part_ends_s)
        await bounded("tasks under way", self._background.settle(self._part_ends_s / 2), self._part_ends_s)
        if self.state.me is not None:
            self._emit(ev.NodeStopped())
        await bounded("the local socket", self._socket.close(), self._part_ends_s)
        await asyncio.to_thread(self._opened.close)
        self._stopped.set()

    # --- the state -----------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._store.state

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """``listener`` receives every event from now on, in order, with the resulting state."""
        return self._store.subscribe(listener)

    def _emit(self, event: ev.Event) -> None:
        self._store.add(event)
        self._neighbours.introduced.on_event(event)
        if isinstance(event, ev.TelemetryReported):
            self._runs.history.note_use(event)
        elif isinstance(event, ev.DeviceEvent):
            self._runs.returns.on_news()
        self._sweeps.on_event(event)

    def _notice(self, problem: Problem) -> None:
        self._emit(ev.NoticeRaised(problem=problem))

    def _on_crash(self, name: str, error: BaseException) -> None:
        self._notice(diagnostics.broke(name, error))

    # --- commands ------------------------------------------------------------------------------------------

    async def submit(self, command: cm.Command) -> an.Answer:
        """Never raises: failures are answered with ``Refused``."""
        token = self._opened.log.enter()
        try:
            if self._stopping is not None and not isinstance(command, cm.GetState | cm.Quit):
                return an.Refused(problem=diagnostics.ENDING)
            return await self._do(command)
        except TandemError as error:
            if error.problem.code == "not-sealed" and await self._recheck_seal():
                return await self.submit(command)  # it was allowed after this laptop was checked
            return an.Refused(problem=error.problem)
        except WorkerClosed:  # it was under way when the node began to end
            return an.Refused(problem=diagnostics.ENDING)
        except Exception as error:
            _log.exception("%s failed", type(command).__name__)
            return an.Refused(problem=diagnostics.internal(error))
        finally:
            self._opened.log.leave(token)

    async def _do(self, command: cm.Command) -> an.Answer:
        match command:
            case cm.Pair():
                self._neighbours.pair(command, self.state)
            case cm.AnswerPairing(same=same):
                self._neighbours.pairing.answer(same)
            case cm.CancelPairing():
                self._neighbours.pairing.cancel()
            case cm.Forget(device=device):
                await self._neighbours.forget(device)
            case cm.Rename(device=device, nickname=nickname):
                await self._neighbours.rename(device, nickname)
            case cm.SetCodePolicy(device=device, policy=policy):
                await self._neighbours.set_policy(device, policy)
            case cm.AnalyseScript(path=path):
                self._runs.readiness.foresee()
                return await self._runs.planner.read(path)
            case cm.ForeseeRun():
                self._runs.readiness.foresee()
            case cm.PlanRun(spec=spec):
                return await self._runs.planner.preview(spec)
            case cm.StartRun(spec=spec):
                return an.RunAccepted(run=await self._runs.start(spec))
            case cm.StopRun() if not self._sweeps.stops():
                self._runs.stop()
            case cm.StopRun() | cm.StopSweep():
                self._sweeps.stop()
            case cm.StartSweep(spec=swept):
                return an.SweepAccepted(sweep=await self._sweeps.start(swept))
            case cm.ResumeSweep(sweep=sweep, argument_sets=more):
                return an.SweepAccepted(sweep=await self._sweeps.resume(sweep, more))
            case cm.GoOnWaiting(run=run):
                self._runs.go_on_waiting(run)
            case cm.AddLaptops(run=run, devices=devices):
                self._runs.returns.add(run, devices)
            case cm.LeaveRun(run=run):
                self._runs.departure.leave(run)
            case cm.AnswerConsent(run=run, decision=decision):
                await self._runs.answer_consent(run, decision)
            case cm.LookAtRequest(run=run):
                return await self._runs.look_at_request(run)
            case cm.ListRuns(limit=limit):
                return replace(await self._runs.history.newest(limit), reports=await self._reports.kept())
            case cm.GetRun(run=run, points=points):
                return await self._runs.history.find(run, points=points)
            case cm.LabelRun(run=run) | cm.DeleteRun(run=run):
                await self._runs.history.change(command)
                self._emit(ev.HistoryChanged(run=run))
            case cm.SendReport(run=run, device=device):
                await self._runs.history.reports_written()
                await self._reports.send((await self._runs.history.find(run, points=False)).entry, device)
            case cm.DeleteReport(path=path):
                await self._reports.delete(path)
            case cm.AskToInstall() | cm.Install():
                self._runs.modules.installs.do(command)
            case cm.FindCheckpoints(run=run):
                await self._runs.find_checkpoints(run)
            case cm.GetState():
                return an.StateNow(state=self.state)
            case cm.RunDoctor(deep=deep):
                await self._recheck_seal()
                return an.Findings(findings=await diagnostics.examine(self._view, deep=deep))
            case cm.Mend(code="socket-gone"):
                await self._socket.reopen()
            case cm.Mend(code=code):
                await diagnostics.mend(self._view, code)
            case cm.SaveDiagnostics(path=path):
                return an.Saved(path=await diagnostics.save_diagnostics(self._view, path))
            case cm.ChangeSettings(change=change):
                await self._change_settings(change)
            case cm.MeasureStorage():
                return await self._runs.trimming.measure(await self._reports.size())
            case cm.Clear():
                return an.Cleared(freed_bytes=await self._runs.clear(self._reports.clear))
            case cm.Quit(leaves=leaves):
                self._begin_stop(leaves=leaves)
        return an.Done()

    @property
    def _view(self) -> Examined:
        return Examined(
            self.home, self._settings, self.state, self._neighbours.port, try_reach=self._trials.try_with
        )

    async def _recheck_seal(self) -> bool:
        """Check the seal again, and tell the others if it changed. Returns whether it did."""
        seal = await asyncio.to_thread(seals.find)
        if seal == self._versions.seal:
            return False
        self._versions = replace(self._versions, seal=seal)
        self._emit(ev.SealChanged(device=self._opened.identity.device_id, seal=seal))
        self._neighbours.tell_paired(BusyTold(busy=self._runs.busy, seal=seal))
        return True

    async def _change_settings(self, change: SettingsChange) -> None:
        # One at a time: each changes the result of the previous one.
        async with self._changing_settings:
            before, wanted = self._settings, settings.changed(self._settings, change)
            settings_file.check(wanted)
            await asyncio.to_thread(settings_file.write, self.home.settings, wanted)
            self._settings = wanted
            self._emit(ev.SettingsChanged(settings=wanted))
        if before.port != wanted.port:
            self._notice(diagnostics.LATER_PORT)
        await self._neighbours.apply_settings(before, wanted, self._name)
        if (before.warm_trainer, before.foresee) != (wanted.warm_trainer, wanted.foresee):
            await self._runs.warm.hold(wanted.warm_trainer, busy=self._runs.busy)
        if (before.keep_days, before.keep_gb) != (wanted.keep_days, wanted.keep_gb):
            self._runs.begin_trim()
        self._stay_awake()

    def _stay_awake(self, *, busy: bool = False) -> None:
        busy = busy or self._runs.busy or self._sweeps.active
        self._awake.keep(busy and self._settings.stay_awake)

    # --- events --------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return settings.own_name(self._settings)

    def _hello(self) -> Hello:
        return Hello(
            name=self._name,
            versions=self._versions,
            hardware=self._hardware,
            port=self._neighbours.port,
            busy=self._runs.busy,
        )

    def _on_reading(self, reading: Reading) -> None:
        self._emit(ev.TelemetryReported(device=self._opened.identity.device_id, reading=reading))
        self._neighbours.tell_paired(TelemetrySent(reading=reading))
        self._runs.warm.on_memory(reading.memory_total_bytes - reading.memory_used_bytes)
        if problem := self._runs.departure.on_reading(reading, self._settings.leave_below_pct):
            self._notice(problem)

    def _on_busy(self, busy: bool) -> None:
        self._neighbours.links.send_all(BusyTold(busy=busy))
        self._stay_awake(busy=busy)
        self._sweeps.check_laptops()

    def _on_message(self, device: DeviceId, message: Message) -> None:
        if isinstance(message, ReachAsked):
            self._trials.on_asked(device, message)
        elif isinstance(message, ReportSent):
            self._reports.on_sent(device, message)
        else:
            self._runs.on_message(device, message)
