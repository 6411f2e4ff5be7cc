"""From pressing Train to a plan: reads the project, makes the plan and, for a run that resumes another,
fetches its checkpoint. On the core loop; one at a time, which can be cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from core.project.data import LocalData
from core.project.files import ReadMeter
from core.run import planning, written
from core.run.context import RunContext
from core.run.modules import Modules
from core.run.recorder import Recorder
from core.run.resume import plan as resume_plan
from core.run.resume.driver import CheckpointDriver
from core.run.written import WrittenFiles
from core.vocabulary.answers import PlanMade, ScriptRead, ScriptsFound
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import FilesRead
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.options import RunOptions
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.plan import Plan, RunSpec, TrialOf
from core.vocabulary.run_folder import RESUMED, WORK

Back = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class TrialWanted:
    """A run that is a trial. ``project``: read once for the whole sweep, so that every trial has the same
    files."""

    run: RunId
    place: TrialOf
    project: planning.LocalProject


@dataclass(frozen=True, slots=True)
class Planned:
    """``checkpoint``: the folder and files of the checkpoint to resume from. ``written``: what the script of
    that run had written. ``remarks``: on both, for the user."""

    plan: Plan
    project: planning.LocalProject
    checkpoint: tuple[Path, Manifest] | None = None
    written: WrittenFiles | None = None
    remarks: tuple[str, ...] = ()
    falls_back: bool = False
    """As in ``Coordination``."""

    @property
    def request(self) -> Prepare:
        """The request to the members."""
        project, wrote = self.project, self.written
        return Prepare(
            plan=self.plan,
            manifest=project.manifest,
            listing=project.listing,
            source=project.folder,
            checkpoint=None if self.checkpoint is None else self.checkpoint[1],
            written=None if wrote is None else wrote.files,
            written_at="" if wrote is None else str(wrote.folder),
            texts=project.texts,
        )


class Planner:
    """``devices``: the members of the plan being made; empty while there is none."""

    def __init__(
        self,
        context: RunContext,
        recorder: Recorder,
        checkpoints: CheckpointDriver,
        modules: Modules,
    ) -> None:
        self._context = context
        self._recorder = recorder
        self._checkpoints = checkpoints
        self._modules = modules
        self._ended: Problem | None = None
        self.under_way = False
        self.devices: tuple[DeviceId, ...] = ()

    async def read(self, script: str) -> ScriptRead | ScriptsFound:
        """Raises ``TandemError``."""
        with self._metered(script) as meter:
            return await asyncio.to_thread(planning.read_script, Path(script), self._context.hashes, meter)

    async def read_project(self, spec: RunSpec, found: Sequence[LocalData] = ()) -> planning.LocalProject:
        """``found`` as in ``planning.read_project``. Raises ``TandemError``."""
        with self._metered(spec.script) as meter:
            return await asyncio.to_thread(planning.read_project, spec, self._context.hashes, found, meter)

    @contextlib.contextmanager
    def _metered(self, script: str) -> Iterator[ReadMeter]:
        """Emits ``FilesRead`` while reading takes long, and once more when it has ended."""
        loop, told = asyncio.get_running_loop(), False

        def emit(done: int, total: int) -> None:
            nonlocal told
            if not over:
                told = True
                self._context.emit(FilesRead(script=script, done=done, total=total))

        over = False
        try:
            yield ReadMeter(lambda done, total: loop.call_soon_threadsafe(emit, done, total))
        finally:
            over = True
            if told:
                self._context.emit(FilesRead(script=script, done=0, total=0))

    async def plan(
        self, spec: RunSpec, back: Back = None, trial: TrialWanted | None = None, from_others: bool = False
    ) -> Planned:
        """Make the plan. Raises ``TandemError`` if that is impossible, or with the problem passed to ``end``.

        ``back``: not None where a run goes on automatically, with these laptops as well. ``from_others``:
        other members have gone on with it.
        """
        self.under_way, self._ended = True, None
        try:
            me, goes_on = self._context.me, back is not None
            self.devices = planning.choose_devices(spec, me, self._context.state(), goes_on=goes_on)
            planning.check_company(spec, self.devices, self._context.state())
            missing = planning.who_is_missing(spec, self.devices, self._context.state())
            found: Sequence[LocalData] = ()
            if spec.resume is not None and not spec.script:
                spec, found = await self._with_stored_project(spec, spec.resume)
            project = await self.read_project(spec, found) if trial is None else trial.project
            if trial is not None:
                plan = self._make(spec, self.devices, project)
                planned = Planned(structs.replace(plan, run=trial.run, trial=trial.place), project)
            elif spec.resume is None:
                planned = Planned(self._make(spec, self.devices, project), project)
            else:
                planned = await self._resumed(spec, spec.resume, project, back, from_others)
            unsure = await self._look_for_modules(planned.plan, project)
            self._check_ended()
            remarks = tuple(f"{words} The run goes without it." for words in missing)
            remarks += planning.no_shares(spec, planned.plan) + planned.remarks
            plan = structs.replace(planned.plan, of_another=self._is_of_another(project))
            return replace(planned, plan=plan, remarks=remarks + tuple(map(str, unsure)))
        finally:
            self.under_way, self.devices = False, ()

    async def invite(self, spec: RunSpec, device: DeviceId, present: Plan) -> Planned:
        """The plan to send to one laptop that is invited into a run under way. Raises ``TandemError``."""
        found: Sequence[LocalData] = ()
        if not spec.script and present.resume is not None:
            spec, found = await self._with_stored_project(spec, present.resume.run)
        project = await self.read_project(spec, found)
        then = await asyncio.to_thread(self._checkpoints.project_of, present)
        resume_plan.check_code(then, project.manifest, present)
        project = planning.with_files_of(project, then)
        devices = (self._context.me, device)
        return Planned(
            self._make(resume_plan.for_devices(spec, devices, devices[0]), devices, project), project
        )

    async def preview(self, spec: RunSpec) -> PlanMade:
        """The run's plan and devices, without changing anything."""
        devices = planning.choose_devices(spec, self._context.me, self._context.state())
        project = await self.read_project(spec)
        plan = self._make(spec, devices, project)
        warnings = await self._look_for_modules(plan, project)
        return await self._recorder.with_last_time(planning.plan_for_screen(plan, warnings), project.source)

    async def _look_for_modules(self, plan: Plan, project: planning.LocalProject) -> tuple[Problem, ...]:
        """Warnings about modules that a laptop may lack. Raises ``TandemError`` for those the script surely
        needs."""
        known = self._context.state().devices
        running = {
            member.device: member.name
            for member in planning.running_the_script(plan, project)
            if member.device not in known or known[member.device].paired  # the others ran it before
        }
        here = running.pop(self._context.me, None) is not None
        return await self._modules.check(project.needs, running, here=here)

    def end(self, why: Problem) -> None:
        """Cancel planning; its waiters fail with ``why``."""
        self._ended = why
        self._checkpoints.stop()

    def _check_ended(self) -> None:
        if self._ended is not None:
            raise TandemError.of(self._ended)

    def _make(self, spec: RunSpec, devices: tuple[DeviceId, ...], project: planning.LocalProject) -> Plan:
        me, links = self._context.me, self._context.links
        return planning.make(spec, devices, project, me, self._context.state(), links)

    def _is_of_another(self, project: planning.LocalProject) -> bool:
        """Whether it is another laptop's project, stored by ``_with_stored_project``: later runs may name its
        folder."""
        return Path(project.folder).resolve().is_relative_to(self._context.runs.resolve())

    async def _with_stored_project(self, spec: RunSpec, run: RunId) -> tuple[RunSpec, Sequence[LocalData]]:
        """The request that resumes another laptop's run here, and the data for it. The project, the data, the
        arguments and options are those of then; data folders that the user names now replace all data."""
        old = resume_plan.plan_to_resume(await self._recorder.find(run))
        store, folder = self._context.store, self._context.folder(run) / RESUMED
        manifest = await asyncio.to_thread(store.manifest, old.project)
        if manifest is None:
            raise resume_plan.no_project(old)
        script = folder / WORK / old.script
        if not script.is_file():
            script = await self._context.files.do(store.checkout, manifest, folder) / old.script
        wanted = {name: getattr(old, name) for name in RunOptions.__struct_fields__}
        wanted |= {"accept_differences": spec.accept_differences}
        found = [] if spec.data else await asyncio.to_thread(self._context.find_again, old)
        return structs.replace(spec, script=str(script), arguments=old.arguments, **wanted), found

    async def _resumed(
        self, spec: RunSpec, run: RunId, project: planning.LocalProject, back: Back, from_others: bool
    ) -> Planned:
        """The plan that resumes a run, with its newest checkpoint, fetched."""
        details = await self._recorder.find(run)
        old = resume_plan.plan_to_resume(details)
        then = await asyncio.to_thread(self._checkpoints.project_of, old)
        remarks = resume_plan.check_code(then, project.manifest, old)
        if back is not None:
            project = planning.with_files_of(project, then)
        spec = resume_plan.with_old_tasks(spec, old, self.devices)
        plan = self._make(spec, self.devices, project)
        self._check_ended()
        is_newest = not from_others and resume_plan.saw_the_end(details, self._context.me)
        got = await self._checkpoints.fetch(old, own=back is not None and is_newest)
        self._check_ended()
        assert got is not None, "only ``end`` stops it"
        owner = resume_plan.stood_in_for(old, self._context.me) if back is not None else None
        plan = resume_plan.continued(plan, spec, old, got.found, back or (), owner, got.here.head.exactness)
        files = got.folder, got.found.files
        if back:
            remarks += (resume_plan.going_on_with(back, plan),)
        found = await self._written(old, project, got.written)
        return Planned(plan, project, files, found, remarks + got.remarks, falls_back=back is not None)

    async def _written(
        self, old: Plan, project: planning.LocalProject, brought: WrittenFiles | None
    ) -> WrittenFiles | None:
        """What the script wrote on the laptop that the checkpoint came from, otherwise what it wrote here."""
        if brought is not None:
            files = written.select(brought.files, project.manifest)
            return brought._replace(files=files) if files.files else None
        folder, source = self._context.folder(old.run), Path(project.folder)
        return await self._context.files.do(written.find, folder, project.manifest, source)
