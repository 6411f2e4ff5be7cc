"""Drives the participant's machine: store, working copies, ports, trainers, outputs. On the core loop."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path

from core.exchange import keys
from core.exchange.keys import RunPair
from core.project import checkpoint_store
from core.project.copy import Changed, copy_project
from core.project.outputs import collect_outputs, find_outputs
from core.project.scan import is_broad
from core.run import outputs, problems
from core.run.context import RunContext
from core.run.draft import Send, Shown
from core.run.outputs import FolderSnapshot
from core.run.participant import machine
from core.run.participant import state as pa
from core.run.transfer import Delivery, problem_of, send_pieces
from core.runtime.timers import CancelTimer, SetTimer, TimerFired, Timers
from core.supervisor.ports import HeldPorts, hold_ports
from core.supervisor.trainers import Trainers
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.peer_messages import From, Message
from core.vocabulary.phases import Exit
from core.vocabulary.progress import LogLines
from core.vocabulary.run_folder import OUTPUTS, TASKS, task_name
from core.vocabulary.trainer_messages import Report

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
        self.state = machine.take_part(context.me, prepare, starter_name)
        self._emit = emit
        self._on_gone = on_gone
        self._source = Path(prepare.source) if self.state.local else None
        self._timers = Timers[Wait](context.clock, lambda wait: self.handle(TimerFired(wait)))
        self._trainers = Trainers(
            context.make_trainer,
            context.temporary,
            on_report=self._on_report,
            on_output=self._on_output,
            on_exit=self._on_exit,
        )
        self._delivery: Delivery | None = None
        self._held = HeldPorts()
        self._pairs: dict[str, RunPair] = {}
        """Of this run alone. In the state there are the certificates, the private keys are only here."""
        self._folders: dict[str, Path] = {}
        self._snapshot: FolderSnapshot | None = None
        self._stops_pressed = 0
        self._offers = 0

    @property
    def folder(self) -> Path:
        return self.context.folder(self.state.plan.run)

    @property
    def starter(self) -> DeviceId:
        return self.state.plan.starter

    def handle(self, input: pa.Input) -> None:
        # The run's clock may have stood still while this laptop slept.
        state = replace(self.state, unix_s=self.context.unix_s)
        self.state, effects = machine.step(state, input, self.context.clock.time())
        for effect in effects:
            self._do(effect)

    def on_message(self, device: DeviceId, message: Message) -> None:
        """A message from the starter."""
        if isinstance(message, ms.Chunk):
            self._on_chunk(message)
        else:
            self.handle(From(device, message))

    def stop(self, by: str) -> None:
        """The user pressed Stop. Pressed a third time, or while the starter is away, this laptop leaves."""
        if isinstance(self.state.stage, pa.Asking):
            self.handle(pa.Decided(False))
            return
        force = min(max(self._stops_pressed, self.state.next_force), 2)
        self._stops_pressed += 1
        self.context.links.send(self.starter, ms.StopAsked(run=self.state.plan.run, force=force))
        if self.state.away_s is not None:
            self._leave_starter(by, problems.stopped_by(by))
        elif self._stops_pressed > 2:
            stopped = problems.stopped_by(by)
            self.context.clock.call_later(PART_S, partial(self._leave_starter, by, stopped))

    def close(self, by: str) -> None:
        """Tandem is being closed on this laptop."""
        self._leave_starter(by, problems.closed(by))

    def _leave_starter(self, by: str, why: Problem) -> None:
        if not isinstance(self.state.stage, pa.Gone):
            self.context.links.send(self.starter, ms.Declined(run=self.state.plan.run, problem=why))
            self.handle(pa.StarterLost(why, by))

    # --- effects -------------------------------------------------------------------------------------------

    def _do(self, effect: pa.Effect) -> None:
        match effect:
            case Send(device, message):
                self.context.links.send(device, message)  # a lost link comes as StarterLost
            case SetTimer(wait, seconds):
                self._timers.set(wait, seconds)
            case CancelTimer(wait):
                self._timers.cancel(wait)
            case pa.ListMissing():
                self._start("list the project's files", self._list_missing())
            case pa.MakeReady():
                self._start("make a run ready", self._make_ready())
            case pa.StartTrainers(plan, meet_s):
                self._held.release()
                own_keys = {task: pair.private_key for task, pair in self._pairs.items()}
                self._trainers.start(plan, self.context.me, self._folders, self.folder, own_keys, meet_s)
            case pa.StopTrainers(force):
                self._trainers.stop(force)
            case pa.LookAtTrainers():
                self.handle(pa.TrainersSeen(self._trainers.stopped(), self._trainers.cpu_s()))
            case pa.FindOutputs():
                self._start("find a run's outputs", self._find_outputs())
            case pa.SendOutputs(manifest):
                if not self.state.local:
                    self._offers += 1
                    self._start("send a run's outputs", self._send_outputs(manifest))
            case pa.Leave(outputs_taken, joined):
                self._leave(outputs_taken, joined)
            case event:
                self._emit(event)

    def _start(self, name: str, work: Coroutine[object, object, None]) -> None:
        self.context.background.start(name, work)

    async def _list_missing(self) -> None:
        state = self.state
        if self._delivery is not None:
            if self._delivery.complete:
                return  # all of it came before the link was lost, and is being stored
            self._delivery.end()
        self._delivery = Delivery(
            self.context,
            state.plan,
            state.manifest,
            state.checkpoint,
            on_piece=lambda done, total: self.handle(pa.PiecesCame(done, total)),
            on_complete=lambda: self._start("store what came for a run", self._store()),
            on_trouble=self._preparing_failed,
        )
        try:
            missing = await self.context.files.do(self._delivery.begin)
        except Exception as error:
            self._preparing_failed(error)
            return
        self.handle(pa.Listed(missing))

    async def _store(self) -> None:
        assert self._delivery is not None
        try:
            await self.context.files.do(self._delivery.store)
        except Exception as error:
            self._preparing_failed(error)
            return
        self.handle(pa.FilesHere())

    def _on_chunk(self, chunk: ms.Chunk) -> None:
        if not isinstance(self.state.stage, pa.Receiving) or self._delivery is None:
            return
        if not self._delivery.take(chunk):
            self.handle(pa.PreparingFailed(problems.bad_message(self.state.starter_name)))

    async def _make_ready(self) -> None:
        try:
            load_s = await self.context.files.do(self._make_folders)
        except Exception as error:
            self._preparing_failed(error)
            return
        if not isinstance(self.state.stage, pa.Copying):
            await self._clean_up(outputs_taken=True)
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
        if self.state.plan.has_keys:
            self._pairs = {task.name: keys.make() for task in tasks}
        certificates = {task: pair.cert_der for task, pair in self._pairs.items()}
        self.handle(pa.MadeReady(self._held.ports, certificates, load_s))

    def _make_folders(self) -> float:
        """On the files' thread. The starter's own chief runs where the script lies; all others on a copy.

        The longest that TensorFlow may take to load here, in seconds.
        """
        manifest, plan = self.state.manifest, self.state.plan
        for task in plan.tasks_of(self.context.me):
            home = self.folder / TASKS / task_name(task.name)
            if self._source is None:
                self._folders[task.name] = self.context.store.checkout(manifest, home)
            elif task is plan.chief:
                self._snapshot = FolderSnapshot(
                    self._source,
                    deep=not is_broad(self._source),
                    limit_bytes=self.context.limits.outputs_bytes,
                )
                self._folders[task.name] = self._source
            else:
                self._folders[task.name] = _copied(manifest, self._source, home / "work")
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

    def _on_report(self, task: str, report: Report) -> None:
        self.handle(pa.TrainerSaid(task, report))

    def _on_output(self, lines: LogLines) -> None:
        self.handle(pa.TrainerWrote(lines))

    def _on_exit(self, task: str, end: Exit) -> None:
        self.handle(pa.TrainerEnded(task, end))

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
        if self._snapshot is not None:
            return self._snapshot.written()
        work, saved = self._folders[self.state.plan.chief.name], self.folder / run_folder.SAVED
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
        if left is not None or not found.skipped:
            return found.manifest, left
        first, more = found.skipped[0], len(found.skipped) - 1
        return found.manifest, Problem(
            code="outputs-left",
            what=f"Not brought back: {first.path} ({first.why})" + (f", and {more} more." if more else "."),
        )

    async def _send_outputs(self, manifest: Manifest) -> None:
        run, work = self.state.plan.run, self._folders[self.state.plan.chief.name]
        files = tuple(range(len(manifest.files)))
        offer = self._offers

        def goes_on() -> bool:
            """On another link they are offered anew, and sent from the first on."""
            state = self.state
            lost = state.away_s is not None or state.resuming or offer != self._offers
            at_work = isinstance(state.stage, pa.Running | pa.Trained | pa.Leaving)
            return at_work and not (lost or state.outputs_taken)

        try:
            await send_pieces(
                self.context,
                self.starter,
                run,
                manifest.digest,
                work,
                manifest,
                files,
                goes_on,
            )
        except TandemError as error:
            # The starter's wait for the next piece runs out and names this laptop.
            lines = LogLines(task=self.state.plan.chief.name, stream="tandem", text=error.what)
            self.handle(pa.TrainerWrote(lines))

    # --- the end -------------------------------------------------------------------------------------------

    def _leave(self, outputs_taken: bool, joined: bool) -> None:
        self._timers.cancel_all()
        self._held.release()
        self._pairs = {}
        if self._delivery is not None:
            self._delivery.end()
        if joined:  # before that, nothing was made here that could be tidied up
            self._start("tidy up after a run", self._clean_up(outputs_taken=outputs_taken))
        self._on_gone(self.state)

    async def _clean_up(self, *, outputs_taken: bool) -> None:
        await self.context.files.do(self._tidy, outputs_taken)

    def _tidy(self, outputs_taken: bool) -> None:
        """On the files' thread. What the chief wrote and nobody fetched stays in ``outputs``."""
        try:
            outputs.move_models(self.folder / run_folder.SAVED, self.folder / OUTPUTS)
        except OSError:
            pass  # then it stays where it was saved
        chief = self._folders.get(self.state.plan.chief.name)
        if chief is not None and self._source is None and not outputs_taken and chief.is_dir():
            try:
                found = find_outputs(chief, self.state.manifest)
                if found.manifest.files:
                    collect_outputs(found.manifest, chief, self.folder)
            except (TandemError, OSError):
                return  # then the working copy stays as it is
        shutil.rmtree(self.folder / TASKS, ignore_errors=True)
        self.context.store.trim(keep=frozenset([self.state.plan.project]))
        checkpoint_store.trim(self.context.runs)


def _copied(manifest: Manifest, source: Path, work: Path) -> Path:
    try:
        copy_project(manifest, source, work)
    except Changed as changed:
        raise TandemError(
            code="project-changed",
            what=f"{shown(changed.path)} changed while the run was being prepared.",
            fix="Save your files, let no other program write there, and start the run again.",
        ) from changed
    return work
