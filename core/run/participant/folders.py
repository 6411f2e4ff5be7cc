"""Makes the working folders of a run's trainers, and keeps what the script wrote there. Blocks: use a
thread."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.project.copy import make_working_copy
from core.project.files import ReadMeter
from core.project.outputs import collect_outputs, free_place
from core.project.scan import is_broad
from core.run import problems, written
from core.run.context import RunContext
from core.run.outputs import FolderSnapshot
from core.run.participant import state as pa
from core.run.written import OwnFiles, WrittenFiles
from core.supervisor.trainers import is_walled
from core.vocabulary.access import Grant
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import manifest_of
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import Task
from core.vocabulary.run_folder import AGREED, BESIDE, REPLACED, TASKS, task_name
from core.vocabulary.wire import to_json

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Folders:
    """``source``: the script's own folder, if the run was started here. ``wrote``: what the script wrote
    before. ``places``: where the run's data is here, by name."""

    source: Path | None
    wrote: tuple[WrittenFiles, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    by_task: dict[str, Path] = field(default_factory=dict)
    agreed: dict[str, Path] = field(default_factory=dict)
    """Lists of the files that were agreed on, for a script that runs in its user's own folder."""
    opened: tuple[Grant, ...] = ()
    snapshot: FolderSnapshot | None = None
    """The snapshot of the script's own folder, if it runs there."""
    remarks: tuple[str, ...] = ()
    """For the user: which files that the script wrote elsewhere are not put beside it, or replaced others."""

    def make(self, context: RunContext, state: pa.Participation, meter: ReadMeter) -> None:
        """The starter's own chief runs in the script's folder, unless other members act through it, or it is
        a trial; all other tasks run in a copy. Raises ``TandemError``."""
        manifest, plan = state.manifest, state.plan
        if state.opened not in (None, context.reach_of(plan)):
            raise TandemError.of(problems.lies_elsewhere())
        if state.local:
            self.places = {data.name: os.path.realpath(data.place or data.path) for data in plan.data}
        # Without walls, too, where it lies below the script's home.
        data = tuple(each.grant(self.places[each.name]) for each in plan.data)
        self.opened = context.opened(plan) + data
        run = context.folder(plan.run)
        for task in plan.tasks_of(context.me):
            home = run / TASKS / task_name(task.name)
            if self._is_in_own_folder(state, task):
                self._prepare_own_folder(context, state)
                if not plan.solo:
                    home.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self.agreed[task.name] = home / AGREED
                    (home / AGREED).write_bytes(to_json(manifest))
                assert self.source is not None
                self.by_task[task.name] = self.source
                continue
            if self.source is None:
                work = context.store.checkout(manifest, home, meter)
            else:
                work = make_working_copy(manifest, self.source, run, task, meter)
            self.by_task[task.name] = work
            for wrote in self.wrote:
                written.lay_out(wrote, work, manifest)

    def _is_in_own_folder(self, state: pa.Participation, task: Task) -> bool:
        plan = state.plan
        is_own = self.source is not None and task is plan.chief
        return is_own and not is_walled(plan, task) and plan.trial is None

    def _prepare_own_folder(self, context: RunContext, state: pa.Participation) -> None:
        """Prepare the script's own folder: take its snapshot, then add what the script wrote elsewhere."""
        assert self.source is not None
        plan, beside = state.plan, context.folder(state.plan.run) / BESIDE
        self.snapshot = FolderSnapshot(
            self.source, deep=not is_broad(self.source), limit_bytes=context.limits.outputs_bytes
        )
        # Everything that the training wrote counts, also in earlier runs.
        before = None
        if plan.resume is not None:
            before = FolderSnapshot.saved(self.source, context.folder(plan.resume.run) / BESIDE)
        before = before or self.snapshot
        try:
            beside.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            before.save(beside)
        except OSError as error:
            _log.warning("the files beside the script of %s are not recorded: %s", plan.run, error)
        for wrote in self.wrote:
            if wrote.folder == self.source or plan.resume is None:
                continue
            kept = free_place(context.folder(plan.resume.run), REPLACED)
            own = OwnFiles({path for _, path in before.changed()}, kept)
            left = written.lay_out(wrote, self.source, state.manifest, own)
            if left:
                collect_outputs(manifest_of("", left), wrote.folder, context.folder(plan.run))
                self.remarks += (written.left_out(left),)
            if kept.is_dir():
                self.remarks += (written.replaced(kept),)

    def keep(self, state: pa.Participation, run: Path) -> None:
        """Keep what the script wrote in a copy, for a run that goes on with this one. Raises as
        ``written.keep``."""
        work = next((each for each in self.by_task.values() if each != self.source), None)
        if work is not None:
            shown = state.shown.run
            was_lost = shown is None or not isinstance(shown.phase, Stopped) or shown.members[state.me].left
            before = None if was_lost else state.request.written or written.NONE
            written.keep(work, state.manifest, run, before)
