"""Drives the participant's machine: store, working copies, ports, trainers, outputs. On the core loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from core.exchange import keys
from core.exchange.keys import RunPair
from core.project import checkpoint_store
from core.project.copy import Changed
from core.project.files import ReadMeter
from core.project.outputs import collect_outputs, find_outputs
from core.project.send import ManifestReader
from core.run import outputs, problems
from core.run.context import RunContext
from core.run.participant import machine
from core.run.participant import state as pa
from core.run.participant.folders import Folders
from core.run.transfer import Delivery, fetch_manifest, problem_of, work_meter
from core.run.written import WrittenFiles
from core.runtime.removal import remove_tree
from core.runtime.timers import CancelTimer, SetTimer, TimerFired, Timers
from core.supervisor.ports import HeldPorts, hold_ports
from core.supervisor.trainers import Trainers
from core.transfer.offer import OfferedFiles
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Shown
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Stopping
from core.vocabulary.progress import LogLines
from core.vocabulary.run_folder import OUTPUTS, TASKS
from core.vocabulary.traffic import From, Send

_log = logging.getLogger(__name__)

PART_S = 5.0
"""How long a participant whose user pressed Stop a third time still waits for the starter's answer."""


class ParticipantDriver:
    """This node's part in one run, from ``Prepare`` on. ``on_gone`` is called once, at its end."""

    def __init__(
        self,
        context: RunContext,
        prepare: ms.Prepare,
        starter_name: str,
        *,
        emit: Callable[[Shown], None],
        on_gone: Callable[[pa.Participation], None],
    ) -> None:
        self.context = context
        self.state = pa.Participation(context.me, prepare.plan, prepare, starter_name)
        self._emit = emit
        self._on_gone = on_gone
        self._folders = Folders(source=Path(prepare.source) if self.state.local else None)
        if self.state.local and prepare.written is not None:
            self._folders.wrote = (WrittenFiles(Path(prepare.written_at), prepare.written),)
        self._timers = Timers[Wait](context.clock, lambda wait: self.handle(TimerFired(wait)))
        self._trainers = Trainers(
            context.make_trainer,
            context.temporary,
            on_report=lambda task, report: self.handle(pa.TrainerReported(task, report)),
            on_output=lambda lines: self.handle(pa.TrainerWrote(lines)),
            on_exit=lambda task, end: self.handle(pa.TrainerEnded(task, end)),
        )
        self._receiving: asyncio.Task[None] | None = None
        self._delivery: Delivery | None = None
        self._giver: asyncio.Future[DeviceId] = asyncio.get_running_loop().create_future()
        """The member that the starter lets this laptop fetch from."""
        self._withdraw: Callable[[], None] = lambda: None
        """Withdraws the offer of the script's outputs."""
        self._held = HeldPorts()
        self._pairs: dict[str, RunPair] = {}
        """Keys of this run only. The state has the certificates; the private keys are only here."""
        self._stops_pressed = 0

    @property
    def folder(self) -> Path:
        return self.context.folder(self.state.plan.run)

    @property
    def starter(self) -> DeviceId:
        return self.state.plan.starter

    def handle(self, input: pa.Input) -> None:
        # The run's clock may have stood still while this laptop slept.
        state = replace(self.state, unix_offset_s=self.context.unix_offset_s)
        self.state, effects = machine.step(state, input, self.context.clock.time())
        for effect in effects:
            self._do(effect)

    def on_message(self, device: DeviceId, message: Message) -> None:
        """A message from the starter."""
        self.handle(From(device, message))

    async def complete_request(self) -> None:
        """Fetch the manifest if it was too long for a message. Raises ``TandemError``. Leaving cancels it."""
        if (listing := self.state.request.listing) is None:
            return
        self._receiving = asyncio.current_task()
        try:
            self.handle(pa.ManifestCame(await fetch_manifest(self.context, self.starter, listing)))
        finally:
            self._receiving = None

    def stop(self, by: str) -> None:
        """The user pressed Stop. At the third press, or while the starter is away, this laptop leaves; once
        it has left, only its own screen stops."""
        if isinstance(self.state.stage, pa.Asking):
            self.handle(pa.Decided(False))
            return
        if self.state.me in self.state.gone:
            self._leave_starter(by, problems.stopped_by(by))
            return
        force = min(max(self._stops_pressed, _next_force(self.state)), 2)
        self._stops_pressed += 1
        self.context.send(self.starter, ms.StopAsked(run=self.state.plan.run, force=force))
        if self.state.away_s is not None:
            self._leave_starter(by, problems.stopped_by(by))
        elif self._stops_pressed > 2:
            stopped = problems.stopped_by(by)
            self.context.clock.call_later(PART_S, partial(self._leave_starter, by, stopped))

    def close(self, by: str) -> None:
        """Tandem is being closed on this laptop."""
        self._leave_starter(by, problems.closed(by))

    async def fall_silent(self) -> None:
        """The trainers end, and nothing is said or recorded any more."""
        self.state = replace(self.state, stage=pa.Gone())
        self._timers.cancel_all()
        if self.state.plan.solo:  # With others, those have the newest checkpoint once they have stopped.
            self._trainers.stop(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.context.limits.silent_s):
                    await self._trainers.wait_ended()
        self._trainers.stop(2)
        await self._trainers.wait_ended()

    def _leave_starter(self, by: str, why: Problem) -> None:
        if not isinstance(self.state.stage, pa.Gone):
            self.context.send(self.starter, ms.Declined(run=self.state.plan.run, problem=why))
            self.handle(pa.Abandoned(why, by))

    # --- effects -------------------------------------------------------------------------------------------

    def _do(self, effect: pa.Effect) -> None:
        match effect:
            case Send(device, message):
                self.context.send(device, message)  # a lost link is reported as LinkLost
            case SetTimer(wait, seconds):
                self._timers.set(wait, seconds)
            case CancelTimer(wait):
                self._timers.cancel(wait)
            case pa.ListMissing():
                self._receiving = self.context.background.start("receive a project", self._receive())
            case pa.FetchFrom(giver):
                self._giver.set_result(giver)
            case pa.GiveTo(device):
                if self._delivery is not None:
                    self._delivery.forwarding.offer_to(device)
            case pa.MakeReady():
                self.context.background.start("make a run ready", self._make_ready())
            case pa.StartTrainers(plan, meet_s):
                self._end_forwarding()
                self._held.release()
                own_keys = {task: pair.private_key for task, pair in self._pairs.items()}
                self._trainers.start(
                    plan,
                    self.context.me,
                    self._folders.by_task,
                    self.folder,
                    own_keys,
                    meet_s,
                    self._folders.agreed,
                    self._folders.opened,
                    self._elsewhere(),
                )
            case pa.StopTrainers(force):
                self._trainers.stop(force)
            case pa.OrderTrainers(order):
                self._trainers.order(order)
            case pa.CheckTrainers():
                self.handle(pa.TrainersChecked(self._trainers.stopped(), self._trainers.cpu_s()))
            case pa.FindOutputs():
                self.context.background.start("find a run's outputs", self._find_outputs())
            case pa.SendOutputs(manifest):
                if not self.state.local:
                    self._offer_outputs(manifest)
            case pa.Leave(outputs_taken, joined):
                self._leave(outputs_taken, joined)
            case event:
                self._emit(event)

    def _elsewhere(self) -> dict[str, str]:
        """Where this laptop has the data for which the script's text names another place."""
        data = [each for each in self.state.plan.data if each.place or not self.state.local]
        found = ((path, self._folders.places[each.name]) for each in data for path in each.spellings)
        return {path: place for path, place in found if path != place}

    async def _receive(self) -> None:
        state = self.state
        try:
            folders = await self.context.files.do(self.context.data_folders, state.plan)
            delivery = Delivery(self.context, state.request, folders=folders, on_work=self.handle)
            self._delivery = delivery
            total_bytes = await self.context.files.do(delivery.begin)
            self._folders.places = delivery.places
            self._folders.wrote += delivery.wrote
            self.handle(pa.Listed(total_bytes))
            if total_bytes:
                giver, shown = await self._giver, self.state.shown.run
                await delivery.fetch(giver, self.handle, joins=shown is None)
                await self.context.files.do(delivery.store)
                self.handle(pa.FilesHere())
        except Exception as error:
            self._preparing_failed(error)

    def _end_forwarding(self) -> None:
        if self._delivery is not None:
            self._delivery.forwarding.end()

    async def _make_ready(self) -> None:
        try:
            meter = work_meter(self.handle, "copying files")
            load_s = await self.context.files.do(self._make_folders, meter)
        except Exception as error:
            self._preparing_failed(error)
            return
        for remark in self._folders.remarks:
            self._say(remark)
        if not isinstance(self.state.stage, pa.Copying):
            await self.context.files.do(self._tidy, True)
            return
        tasks = self.state.plan.tasks_of(self.context.me)
        if self.state.plan.solo:
            self.handle(pa.MadeReady({task.name: 0 for task in tasks}, load_s=load_s))
            return
        try:
            self._held = hold_ports(tasks)
        except TandemError as error:
            self._preparing_failed(error)
            return
        self._pairs = {task.name: keys.make() for task in tasks}
        certificates = {task: pair.cert_der for task, pair in self._pairs.items()}
        self.handle(pa.MadeReady(self._held.ports, certificates, load_s))

    def _make_folders(self, meter: ReadMeter) -> float:
        """On the files' thread. Returns the longest time in seconds that TensorFlow may take to load here."""
        self._folders.make(self.context, self.state, meter)
        return self.context.loading.limit_s()

    def _preparing_failed(self, error: Exception) -> None:
        self.handle(
            pa.PreparingFailed(
                problem_of(
                    error,
                    "not-prepared",
                    "The run could not be made ready.",
                    "Start the run again; the node's log has the details.",
                )
            )
        )

    # --- trainers ------------------------------------------------------------------------------------------

    async def _find_outputs(self) -> None:
        try:
            manifest, problem = await self.context.files.do(self._outputs)
        except Exception as error:
            problem = problem_of(
                error,
                "outputs-unread",
                "What the script wrote cannot be read.",
                "Look into the run's folder.",
            )
            manifest = Manifest(script="", files=())
        self.handle(pa.OutputsFound(manifest, problem))

    def _outputs(self) -> tuple[Manifest, Problem | None]:
        """On the files' thread."""
        snapshot = self._folders.snapshot
        if snapshot is not None and self.state.chief == self.state.plan.chief:
            return snapshot.written()
        work, saved = self._folders.by_task[self.state.chief.name], self.folder / run_folder.SAVED
        name = self.state.plan.member(self.context.me).name
        limit_bytes = self.context.limits.outputs_bytes
        left: Problem | None = None
        models: tuple[str, ...] = ()
        try:
            if outputs.saved_bytes(saved) > limit_bytes:
                outputs.move_models(saved, self.folder / OUTPUTS)
                left = problems.model_too_large(name)
            models = outputs.move_models(saved, work)
        except OSError as error:
            left = problems.model_unmoved(name, error)
        found = find_outputs(work, self.state.manifest, first=models, limit_bytes=limit_bytes)
        more_left = outputs.keep_left(found, work, self.folder / run_folder.LEFT, name)
        return found.manifest, left or more_left

    def _offer_outputs(self, manifest: Manifest) -> None:
        chief = self.state.chief

        def failed(error: TandemError) -> None:
            self._say(error.what)

        reader = ManifestReader(self._folders.by_task[chief.name], manifest)
        self._withdraw = self.context.transfers.offer(self.starter, OfferedFiles(reader, failed))

    def _say(self, text: str) -> None:
        self.handle(pa.TrainerWrote(LogLines(task=self.state.chief.name, stream="tandem", text=text)))

    # --- the end -------------------------------------------------------------------------------------------

    def _leave(self, outputs_taken: bool, joined: bool) -> None:
        self._timers.cancel_all()
        self._held.release()
        self._pairs = {}
        if self._receiving is not None:
            self._receiving.cancel()
        self._end_forwarding()
        self._withdraw()
        if joined:  # before that, nothing was made here
            tidying = self.context.files.do(self._tidy, outputs_taken)
            self.context.background.start("tidy up after a run", tidying)
        if self.state.left_out:
            _log.info(
                "left out %d events of %s that did not fit", self.state.left_out, self.state.starter_name
            )
        self._on_gone(self.state)

    def _tidy(self, outputs_taken: bool) -> None:
        """On the files' thread. Outputs of the chief that nobody fetched stay in ``outputs``."""
        remove_tree(self.folder / run_folder.BROUGHT)
        try:
            outputs.move_models(self.folder / run_folder.SAVED, self.folder / OUTPUTS)
        except OSError:
            pass  # then it stays where it was saved
        chief = self._folders.by_task.get(self.state.chief.name)
        if chief not in (None, self._folders.source) and not outputs_taken and chief.is_dir():
            try:
                limit_bytes = self.context.limits.outputs_bytes
                found = find_outputs(chief, self.state.manifest, limit_bytes=limit_bytes)
                if found.manifest.files:
                    collect_outputs(found.manifest, chief, self.folder)
                name = self.state.plan.member(self.context.me).name
                if left := outputs.keep_left(found, chief, self.folder / run_folder.LEFT, name):
                    _log.info("%s: %s %s", self.state.plan.run, left.what, left.fix)
            except (TandemError, OSError):
                return  # then keep the working copy
        try:
            self._folders.keep(self.state, self.folder)
        except (TandemError, OSError, Changed) as error:
            _log.warning("what the script of %s wrote is not kept: %s", self.state.plan.run, error)
        remove_tree(self.folder / TASKS)
        # A trainer within walls can empty its folders, but not remove them.
        for emptied in self.folder.glob(f"{run_folder.CHECKPOINTS}*") if self._folders.by_task else ():
            with contextlib.suppress(OSError):
                emptied.rmdir()
        with contextlib.suppress(OSError):  # it is empty where this laptop was only invited
            self.folder.rmdir()
        checkpoint_store.trim(self.context.runs)


def _next_force(state: pa.Participation) -> int:
    """The least force with which a further Stop has an effect: the starter may have begun with more."""
    run = state.shown.run
    return state.asked_force + 1 if run is not None and isinstance(run.phase, Stopping) else 0
