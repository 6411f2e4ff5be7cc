"""Removes other laptops' projects and runs from this disk, and outputs of own runs that were too large to
bring back. Blocks: see ``Trimming``.

A run's record stays (plan, times, metrics): a laptop that sent code here must not be able to erase that it
ran.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from core.history.read import read_entry, read_plan
from core.project.files import DiskUse, disk_use
from core.project.store import ProjectStore
from core.runtime.background import Background, WorkerThread
from core.runtime.removal import remove_tree
from core.vocabulary import run_folder
from core.vocabulary.answers import StorageMeasured
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId, short
from core.vocabulary.plan import Plan
from core.vocabulary.text import plain

DAY_S, GB = 86_400, 10**9

RECORD = frozenset(
    (
        *(run_folder.PLAN, run_folder.PROJECT, run_folder.EVENTS, run_folder.METRICS, run_folder.SUMMARY),
        *(run_folder.REPORT, run_folder.HISTORY_CSV, run_folder.HISTORY_JSON, run_folder.TENSORBOARD),
    )
)
"""The record in a run's folder; everything else there came from the starter's laptop, or from its script."""


@dataclass(frozen=True, slots=True)
class _Leftover:
    """One project (its id), a partly received one, or one run's files (its id). ``used_s``: Unix time."""

    name: str
    used_s: float
    use: DiskUse
    paths: tuple[Path, ...] = ()


class Leftovers:
    """Projects in ``store``, the files of runs in ``runs`` that another laptop started, and files of own runs
    that were too much to be brought back."""

    def __init__(self, store: ProjectStore, runs: Path, me: DeviceId) -> None:
        self._store, self._runs, self._me = store, runs, me

    def trim(self, keep_s: float, keep_bytes: int) -> int:
        """Remove everything unused for ``keep_s``, then the oldest until the rest fits into ``keep_bytes``.

        The newest of each kind stays, however large: it may be a model's only copy. So does everything
        that another laptop sent for its last run, even in part. Returns the freed bytes. Raises
        ``TandemError`` where something could not be removed.
        """
        now_s, kept, removed, refused = time.time(), DiskUse(), DiskUse(), list[str]()
        kinds = [sorted(kind, key=_used_s) for kind in self._kinds()]
        newest, sent = [each for kind in kinds for each in kind[-1:]], self._last_sent()
        for each in sorted((each for kind in kinds for each in kind), key=_used_s, reverse=True):
            stays = each in newest or bool(sent & {each.name, *(path.name for path in each.paths)})
            fits = stays or kept.total + each.use.beyond(kept) <= keep_bytes
            if fits and max(0.0, now_s - each.used_s) < keep_s:
                kept |= each.use
                continue
            left = self._remove(each)
            refused += left
            if not left:
                removed |= each.use
        if refused:
            raise TandemError.of(_not_all_removed(refused))
        return removed.beyond(kept)

    def measure(self) -> tuple[int, int, int, int]:
        """Bytes of projects (partly received ones, too), data, other laptops' runs and own runs."""
        projects, data, unfinished, others, own = self._kinds()
        counted, sizes = DiskUse(), list[int]()
        for kind in ((*projects, *unfinished), data, others, own):
            before = counted
            for each in kind:
                counted |= each.use
            sizes.append(counted.total - before.total)
        return sizes[0], sizes[1], sizes[2], sizes[3]

    def _kinds(self) -> tuple[Iterable[_Leftover], ...]:
        """Projects, data, what is partly received, files of other laptops' runs and of own ones."""
        return *self._stored(), self._unfinished(), self._run_files(own=False), self._run_files(own=True)

    def _stored(self) -> tuple[list[_Leftover], list[_Leftover]]:
        """Projects, and data."""
        projects, data = list[_Leftover](), list[_Leftover]()
        for digest in self._store.digests():
            manifest = self._store.manifest(digest)
            kind = data if manifest is not None and not manifest.script else projects
            kind.append(_Leftover(digest, self._store.used_s(digest), self._store.disk_use(digest)))
        return projects, data

    def _unfinished(self) -> Iterator[_Leftover]:
        for path in self._store.unfinished():
            with suppress(OSError):
                yield _Leftover("incoming", path.stat().st_mtime, disk_use(path), (path,))

    def _run_files(self, *, own: bool) -> Iterator[_Leftover]:
        for used_s, folder, plan in self._plans(own=own):
            with suppress(OSError):  # it was deleted meanwhile
                goes = _is_left if own else _is_leftover
                paths = tuple(path for path in folder.iterdir() if goes(path.name))
                if paths:
                    yield _Leftover(plan.run, used_s, disk_use(*paths), paths)

    def _plans(self, *, own: bool) -> Iterator[tuple[float, Path, Plan]]:
        """Runs with their folders and the Unix times of their plans; the newest first."""
        found = list[tuple[float, Path]]()
        with suppress(OSError):
            for folder in self._runs.iterdir():
                if run_folder.is_run_id(folder.name) and folder.is_dir() and not folder.is_symlink():
                    with suppress(OSError):
                        found.append(((folder / run_folder.PLAN).stat().st_mtime, folder))
        for used_s, folder in sorted(found, reverse=True):
            plan = read_plan(folder)
            if plan is not None and plan.run == folder.name and self._is_own(plan, folder) == own:
                yield used_s, folder, plan

    def _last_sent(self) -> frozenset[str]:
        """Digests of the project and data of the last run that another laptop started, and of the last one
        that this laptop was to join."""
        expected = self._store.expected()
        for _, _, plan in self._plans(own=False):
            return expected | {plan.project, *(data.listing.digest for data in plan.data)}
        return expected

    def _is_own(self, plan: Plan, folder: Path) -> bool:
        """True even if this laptop had another key when it started the run."""
        entry = read_entry(folder)
        return plan.starter == self._me or (entry is not None and bool(entry.spec or entry.source))

    def _remove(self, each: _Leftover) -> list[str]:
        """Returns what could not be removed."""
        if not each.paths:
            self._store.forget(ProjectId(each.name))
            return [f"the project {short(each.name)}"] if self._store.has(ProjectId(each.name)) else []
        for path in each.paths:
            _remove(path)
        return [f"{each.name}/{path.name}" for path in each.paths if os.path.lexists(path)]


def sweep_copies(runs: Path) -> None:
    """Remove what a killed Tandem left for its trainers, except a chief's working copy, which may hold
    unfetched outputs."""
    for task in runs.glob(f"*/{run_folder.TASKS}/*"):
        if task.name != run_folder.task_name("chief:0") or not (task / run_folder.WORK).is_dir():
            _remove(task)
    for emptied in runs.glob(f"*/{run_folder.TASKS}"):
        with suppress(OSError):
            emptied.rmdir()


class Trimming:
    """Trims on the files' thread; measures on a thread of its own, as a run may be under way. On the core
    loop."""

    def __init__(self, leftovers: Leftovers, files: WorkerThread, background: Background) -> None:
        self._leftovers, self._files, self._background = leftovers, files, background
        self._begun: dict[tuple[int, int], asyncio.Task[int]] = {}
        """The latest task for each pair of limits."""
        self._measuring: asyncio.Task[tuple[int, int, int, int]] | None = None

    async def do(self, keep_s: float, keep_bytes: int) -> int:
        """As ``Leftovers.trim``."""
        try:
            return await self._files.do(self._leftovers.trim, keep_s, keep_bytes)
        finally:
            self._measuring = None  # its result is outdated

    async def clear(self, also: Callable[[], Awaitable[int]]) -> int:
        """Remove everything; ``also`` removes more, even if some could not be removed. Returns the freed
        bytes. Raises ``TandemError``."""
        try:
            freed_bytes = await self.do(0, 0)
        finally:
            more_bytes = await also()
        return freed_bytes + more_bytes

    async def measure(self, reports_bytes: int) -> StorageMeasured:
        """After trims under way; one at a time. ``reports_bytes``: of received reports."""
        if trims := [trim for trim in self._begun.values() if not trim.done()]:
            await asyncio.wait(trims)
        if self._measuring is None or self._measuring.done():
            work = asyncio.to_thread(self._leftovers.measure)
            self._measuring = self._background.start("measure what is stored", work)
        projects, data, others, own = await asyncio.shield(self._measuring)
        return StorageMeasured(
            projects_bytes=projects,
            data_bytes=data,
            runs_bytes=others,
            reports_bytes=reports_bytes,
            own_bytes=own,
        )

    def begin(self, keep_s: int, keep_bytes: int) -> None:
        """Start unless a trim with the same limits is under way."""
        kept = keep_s, keep_bytes
        if (trim := self._begun.get(kept)) is None or trim.done():
            self._begun[kept] = self._background.start("remove leftovers", self.do(*kept))


def _used_s(each: _Leftover) -> float:
    return each.used_s


def _is_left(name: str) -> bool:
    return name == run_folder.LEFT


def _is_leftover(name: str) -> bool:
    """False for the record, and for a part of it being written (``write_atomically``)."""
    being_written = name.startswith(".") and name.endswith(".part")
    return (name[1:].rsplit(".", 2)[0] if being_written else name) not in RECORD


def _remove(path: Path) -> None:
    """Security invariant: removes a link that a script left, and never its target."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # the caller reports what is left


def _not_all_removed(refused: list[str]) -> Problem:
    return Problem(
        code="not-all-removed",
        what=f"Not everything could be removed: {plain(', '.join(refused[:3]), 300)}.",
        fix="Look for these in the folders projects and runs of Tandem's home.",
    )
