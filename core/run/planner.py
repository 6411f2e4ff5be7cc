"""From pressing Train to a plan: the project is read, the plan made and, for a run that resumes another, its
checkpoint fetched. On the core loop; one at a time, which may be told to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from core.run import planning
from core.run.context import RunContext
from core.run.modules import Modules
from core.run.recorder import Recorder
from core.run.resume import plan as resume_plan
from core.run.resume.driver import CheckpointDriver
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.state import State


@dataclass(frozen=True, slots=True)
class Planned:
    """``checkpoint``: the folder and the files with which the run resumes another. ``remarks``: on that."""

    plan: Plan
    project: planning.LocalProject
    checkpoint: tuple[Path, Manifest] | None = None
    remarks: tuple[str, ...] = ()


class Planner:
    """``devices``: who is to take part in the plan that is being made; empty while there is none."""

    def __init__(
        self,
        context: RunContext,
        state: Callable[[], State],
        recorder: Recorder,
        checkpoints: CheckpointDriver,
        modules: Modules,
    ) -> None:
        self._context = context
        self._state = state
        self._recorder = recorder
        self._checkpoints = checkpoints
        self._modules = modules
        self._ended: Problem | None = None
        self.under_way = False
        self.devices: tuple[DeviceId, ...] = ()

    async def plan(self, spec: RunSpec) -> Planned:
        """Raises ``TandemError`` for what cannot be, and with the words of ``end``."""
        self.under_way, self._ended = True, None
        try:
            self.devices = planning.choose_devices(spec, self._context.me, self._state())
            planning.check_company(spec, self.devices, self._state())
            missing = planning.who_is_missing(spec, self.devices, self._state())
            project = await asyncio.to_thread(planning.read_project, spec)
            if spec.resume is None:
                planned = Planned(self._make(spec, project), project)
            else:
                planned = await self._resumed(spec, spec.resume, project)
            unsure = await self.look_for_modules(planned.plan, project)
            self._check_ended()
            remarks = tuple(f"{words} The run goes without it." for words in missing)
            remarks += planning.no_shares(spec, planned.plan) + planned.remarks
            return replace(planned, remarks=remarks + tuple(map(str, unsure)))
        finally:
            self.under_way, self.devices = False, ()

    async def look_for_modules(self, plan: Plan, project: planning.LocalProject) -> tuple[Problem, ...]:
        """Warnings of what a laptop may miss. Raises ``TandemError`` for what the script surely misses."""
        running = {member.device: member.name for member in planning.running_the_script(plan, project)}
        here = running.pop(self._context.me, None) is not None
        known = self._state().devices
        others = {
            device: name
            for device, name in running.items()
            if device in known and (told := known[device].versions) is not None and told.tells_modules
        }
        return await self._modules.check(project.needs, others, here=here)

    def end(self, why: Problem) -> None:
        """Whoever waits for the plan hears ``why`` there is none."""
        self._ended = why
        self._checkpoints.stop()

    def _check_ended(self) -> None:
        if self._ended is not None:
            raise TandemError.of(self._ended)

    def _make(self, spec: RunSpec, project: planning.LocalProject) -> Plan:
        me, links = self._context.me, self._context.links
        return planning.make(spec, self.devices, project, me, self._state(), links)

    async def _resumed(self, spec: RunSpec, run: RunId, project: planning.LocalProject) -> Planned:
        """The plan that resumes a run, with its newest checkpoint, fetched."""
        old = resume_plan.before(await self._recorder.find(run))
        then = await asyncio.to_thread(self._checkpoints.project_of, old)
        remarks = resume_plan.check_code(then, project.manifest, old)
        spec = resume_plan.asked(spec, old, self.devices)
        plan = self._make(spec, project)
        self._check_ended()
        got = await self._checkpoints.fetch(old)
        self._check_ended()
        assert got is not None, "only ``end`` stops it"
        plan = resume_plan.continued(plan, spec, old, got.found)
        return Planned(plan, project, (got.folder, got.found.files), remarks + got.remarks)
