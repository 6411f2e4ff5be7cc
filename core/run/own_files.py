"""Finds this laptop's own files that another one would send back, when it goes on with a run that was started
here. Blocks: use a thread."""

from __future__ import annotations

from pathlib import Path

from core.history.read import read_entry, read_plan, read_project
from core.project.data import find_again
from core.project.files import UNWATCHED, ReadMeter
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Plan

RUNS_SEARCHED = 50
"""The number of newest runs searched."""


def own_files(
    runs: Path, me: DeviceId, coming: Plan, hashes: Path, meter: ReadMeter = UNWATCHED
) -> dict[str, Path]:
    """Where this laptop has the files of the run that ``coming`` goes on with, by SHA-256. The paths are from
    that run's record: the files may have changed since. Empty if no such run was started here. ``hashes``: as
    in ``scan_data``.

    Security invariant: the laptop that goes on was in that run, so it got these files then. Knowing a file's
    hash is not enough to get it.
    """
    for folder in sorted(runs.glob("*/"), reverse=True)[:RUNS_SEARCHED]:  # ids sort by time
        old = read_plan(folder)
        if old is None or (old.starter, old.owner, old.script) != (me, None, coming.script):
            continue
        if coming.starter in {member.device for member in old.members}:
            return _files_of(folder, old, coming, hashes, meter)
    return {}


def _files_of(folder: Path, old: Plan, coming: Plan, hashes: Path, meter: ReadMeter) -> dict[str, Path]:
    found = dict[str, Path]()
    entry, project = read_entry(folder), read_project(folder)
    if entry is not None and entry.source and project is not None:
        root = Path(entry.source).parents[old.script.count("/")]
        found |= {file.sha256: root.joinpath(*file.path.split("/")) for file in project.files}
    wanted = {data.listing.digest for data in coming.data}
    for data in old.data:
        if data.listing.digest in wanted:
            here = find_again(data, Path(data.place or data.path), hashes, meter)
            if here is not None:
                place = Path(here.folder)
                found |= {file.sha256: place.joinpath(*file.path.split("/")) for file in here.manifest.files}
    return found
