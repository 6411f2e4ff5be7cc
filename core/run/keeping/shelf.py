"""What lies on this laptop's disk of another one's projects, and removing it. Blocks: use a thread.

A run's record stays (plan, times, metrics): who has sent code here cannot have it forgotten that it ran.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from core.history.read import read_plan
from core.project.store import ProjectStore
from core.vocabulary import run_folder
from core.vocabulary.holdings import MOST_LISTED, Kept, KeptProject, KeptRun
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.plan import Plan

RECORD = frozenset(
    (
        *(run_folder.PLAN, run_folder.PROJECT, run_folder.EVENTS, run_folder.METRICS, run_folder.SUMMARY),
        *(run_folder.REPORT, run_folder.PLOT, run_folder.HISTORY_CSV, run_folder.HISTORY_JSON),
        run_folder.TENSORBOARD,
    )
)
"""Of a run's folder; whatever else is in there came from the starter's laptop, or from its script."""


class Shelf:
    """Projects in ``store`` and folders of runs in ``runs``, each of the device that started it."""

    def __init__(self, store: ProjectStore, runs: Path, me: DeviceId) -> None:
        self._store, self._runs, self._me = store, runs, me

    def of(self, device: DeviceId, allowed: Collection[ProjectId] = ()) -> Kept:
        """What is kept of ``device``. ``allowed``: its projects that may run here without asking."""
        plans = list(self._plans())
        runs = [self._run(folder, plan) for folder, plan in plans if plan.starter == device]
        mine, others = self._shared_out(plans, device, allowed)
        found = [kept for each in mine if (kept := self._project(each, each in others)) is not None]
        runs = [run for run in runs if run.bytes]
        found.sort(key=lambda project: project.used_s, reverse=True)
        runs.sort(key=lambda run: run.run, reverse=True)
        return Kept(
            projects=tuple(found[:MOST_LISTED]),
            runs=tuple(runs[:MOST_LISTED]),
            more=max(0, len(found) - MOST_LISTED) + max(0, len(runs) - MOST_LISTED),
            bytes=sum(each.bytes for each in runs) + sum(each.bytes for each in found if not each.of_others),
        )

    def remove(
        self, device: DeviceId, project: ProjectId | None = None, allowed: Collection[ProjectId] = ()
    ) -> list[str]:
        """All of ``device``, or one project of its. What could not be removed, by the system's words."""
        plans = list(self._plans())
        refused: list[str] = []
        for folder, plan in plans:
            if plan.starter == device and project in (None, plan.project):
                for path in _removable(folder):
                    _remove(path, refused)
        mine, others = self._shared_out(plans, device, allowed)
        for each in (mine if project is None else mine & {project}) - others:
            self._store.forget(each)
            if self._store.has(each):
                refused.append(f"the project {each[:8]}")
        return refused

    def _plans(self) -> Iterator[tuple[Path, Plan]]:
        """Runs whose folder is one, and tells its plan."""
        try:
            folders = sorted(path for path in self._runs.iterdir() if path.is_dir() and not path.is_symlink())
        except OSError:
            return
        for folder in folders:
            plan = read_plan(folder) if run_folder.is_run_id(folder.name) else None
            if plan is not None and plan.run == folder.name:
                yield folder, plan

    def _shared_out(
        self, plans: Sequence[tuple[Path, Plan]], device: DeviceId, allowed: Collection[ProjectId]
    ) -> tuple[set[ProjectId], set[ProjectId]]:
        """The device's projects, and those that a third laptop sent; our own user's are in no store."""
        mine = {plan.project for _, plan in plans if plan.starter == device} | set(allowed)
        return mine, {plan.project for _, plan in plans if plan.starter not in (device, self._me)}

    def _project(self, project: ProjectId, of_others: bool) -> KeptProject | None:
        manifest = self._store.manifest(project)
        if manifest is None:
            return None
        return KeptProject(
            project=project,
            script=manifest.script,
            files=len(manifest.files),
            bytes=manifest.total_bytes,
            used_s=self._store.used_s(project),
            of_others=of_others,
        )

    def _run(self, folder: Path, plan: Plan) -> KeptRun:
        return KeptRun(
            run=plan.run,
            project=plan.project,
            script=plan.script,
            started_s=_changed_s(folder / run_folder.PLAN),
            bytes=sum(_bytes(path) for path in _removable(folder)),
            record_bytes=sum(_bytes(folder / name) for name in RECORD),
        )


def _removable(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not _is_record(path.name)]
    except OSError:
        return []


def _is_record(name: str) -> bool:
    """Or a part of it that is being written just now (``write_atomically``)."""
    being_written = name.startswith(".") and name.endswith(".part")
    return (name[1:].rsplit(".", 2)[0] if being_written else name) in RECORD


def _remove(path: Path, refused: list[str]) -> None:
    """Security invariant: a link that a script left is removed, and never what it leads to."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        refused.append(f"{path.parent.name}/{path.name} ({error.strerror or error})")


def _bytes(path: Path) -> int:
    """Of a file, or of all files below a folder; links count nothing and are not followed."""
    try:
        if path.is_symlink() or not path.is_dir():
            return 0 if path.is_symlink() else path.lstat().st_size
        with os.scandir(path) as entries:
            return sum(_bytes(Path(entry.path)) for entry in entries)
    except OSError:
        return 0


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
