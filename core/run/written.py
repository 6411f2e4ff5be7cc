"""What a run's script wrote, such as logs and models of callbacks, for the run that continues it: every
laptop of that run has these files before its script begins. Blocks: use a thread."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from core.home.private_file import write_atomically
from core.project import checkpoint_store
from core.project.copy import Changed, check_room, copy_file, copy_project, storing
from core.project.files import hash_file
from core.project.ignore import IgnoreRules
from core.project.outputs import LIMIT_BYTES, LIMIT_FILES, find_outputs
from core.project.scan import is_broad
from core.run.outputs import FolderSnapshot, is_model
from core.runtime.regular_file import Folder, NotRegular, open_regular
from core.runtime.removal import remove_tree
from core.vocabulary import run_folder, wire
from core.vocabulary.data import may_carry_code
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.manifest import Manifest, ProjectFile, check_files, find_collision, manifest_of
from core.vocabulary.paths import folded_path, shown
from core.vocabulary.text import listed

_log = logging.getLogger(__name__)
LIST_BYTES = 64_000
"""Limit of the list of files, as MessagePack: it is part of the request for a run."""
_LOGS = (".csv", ".log", ".weights.h5", ".keras")
"""Logs and models without code, beside TensorBoard's. Keras reads ``.keras`` in its safe mode."""
_EVENTS = re.compile(r"events\.out\.tfevents\.\d+\.[\w.-]+?(\.\d+\.\d+(\.v2)?|\.profile-empty)")
"""TensorBoard's names: time, host, process, number, kind. None of its endings is that of a file with code."""
_NEW = (".tsv", ".png", ".jpg", ".jpeg")
"""Other kinds that no program reads as its settings."""
_UNSAFE = (b"safe_mode", b"unsafe_deserialization")
"""Words of a script that may turn Keras' safe mode off."""
_ARCHIVE = b"PK\x03\x04"
_LIST, _NEW_LIST, _FILES = "list.json", "new.json", "files"
NONE = Manifest(script="", files=())


class WrittenFiles(NamedTuple):
    """``files`` lie in ``folder``."""

    folder: Path
    files: Manifest


class _Brought(msgspec.Struct, frozen=True):
    """The files that came with a checkpoint, by its digest."""

    checkpoint: ProjectId
    files: Manifest


class OwnFiles(NamedTuple):
    """``changed``: paths beside the user's own script that changed since the training began. ``replaced``:
    the folder for those that are replaced."""

    changed: Collection[str]
    replaced: Path


def may_travel(path: str) -> bool:
    """Whether the file is of a kind that cannot carry code: users were asked about the project's code."""
    if any(name.startswith(".") for name in path.split("/")):
        return False  # a hidden file may be another program's settings
    return _is_log(path) or not may_carry_code([path])


def select(found: Manifest, project: Manifest) -> Manifest:
    """The files that the next run may get: the smallest ones where the list would be too long."""
    taken = {folded_path(file.path) for file in project.files}
    chosen, room = [], LIST_BYTES
    for file in sorted(found.files, key=lambda file: file.size):
        if folded_path(file.path) in taken or is_model(file.path) or not may_travel(file.path):
            continue
        room -= len(wire.to_msgpack(file))
        if room >= 0:
            chosen.append(file)
    return manifest_of("", chosen)


def check(written: Manifest, project: Manifest = NONE) -> None:
    """Raises ``TandemError`` unless a list from another laptop is safe.

    Security invariant: no file is one of the project's, or of a kind that may carry code. Otherwise a user
    who allowed one script would run another.
    """
    check_files(written.files, limit_bytes=LIMIT_BYTES, limit_files=LIMIT_FILES)
    wrong = [file.path for file in written.files if not may_travel(file.path)]
    wrong += find_collision(file.path for file in chain(project.files, written.files)) or ()
    if wrong:
        raise TandemError(
            code="written-refused",
            what=f"{shown(wrong[-1])!r} cannot be a file that the script wrote before.",
            fix="Nothing was written. Start the training again.",
        )


def keep(work: Path, project: Manifest, run: Path, before: Manifest | None = None) -> None:
    """Keep what the script wrote in a working copy, if the run has a checkpoint to go on from. ``before``:
    what lay there already; None: this laptop was lost. Raises ``TandemError``, ``OSError``, ``Changed``."""
    if checkpoint_store.newest_by_size(run / run_folder.CHECKPOINTS) is None:
        return
    place = run / run_folder.WRITTEN
    remove_tree(place)
    found = select(find_outputs(work, project).manifest, project)
    if found.files:
        copy_project(found, work, place / _FILES)
        if before is not None:
            new = manifest_of("", set(found.files).difference(before.files))
            write_atomically(place / _NEW_LIST, wire.to_json(new))
        write_atomically(place / _LIST, wire.to_json(found))


def brought(run: Path) -> Path:
    """Where to put the files that another laptop's script wrote."""
    return run / run_folder.BROUGHT / _FILES


def keep_brought(run: Path, checkpoint: ProjectId, files: Manifest) -> WrittenFiles:
    """The files lie in their place: note with which checkpoint they came. Raises ``OSError``."""
    write_atomically(run / run_folder.BROUGHT / _LIST, wire.to_json(_Brought(checkpoint, files)))
    return WrittenFiles(brought(run), files)


def find_brought(run: Path, checkpoint: ProjectId) -> WrittenFiles | None:
    """The files that came with that checkpoint when an earlier attempt fetched it."""
    with suppress(OSError, NotRegular, msgspec.DecodeError):
        with open_regular(run / run_folder.BROUGHT / _LIST) as file:
            kept = wire.from_json(file.read(), _Brought)
        if kept.checkpoint == checkpoint:
            return WrittenFiles(brought(run), kept.files)
    return None


def find_instead(run: Path, coming: Manifest) -> WrittenFiles | None:
    """Files with these names that the script wrote on this laptop up to the end of an earlier run, to use in
    place of another laptop's. Their bytes may differ: Keras puts a time into each model. Reads them."""
    place, names = run / run_folder.WRITTEN, {file.path for file in coming.files}
    with suppress(OSError, NotRegular, msgspec.DecodeError):
        with open_regular(place / _NEW_LIST) as file:
            new = wire.from_json(file.read(), Manifest)
        files = [file for file in select(new, NONE).files if file.path in names]
        same = (file for file in files if _is_same(place / _FILES, file))
        return _whole(place / _FILES, manifest_of("", same))
    return None


def find(run: Path, project: Manifest = NONE, source: Path | None = None) -> WrittenFiles | None:
    """Find what the script of an earlier run wrote here. ``source``: the script's own folder, in which it may
    have run.

    Security invariant: only logs and models travel from there: its user may have put anything else into it.
    """
    place = run / run_folder.WRITTEN
    with suppress(OSError, NotRegular, msgspec.DecodeError):
        with open_regular(place / _LIST) as file:
            kept = wire.from_json(file.read(), Manifest)
        return _whole(place / _FILES, select(kept, project))
    before = None if source is None else FolderSnapshot.saved(source, run / run_folder.BESIDE)
    if before is None or source is None or is_broad(source):
        return None
    rules, (manifest, _) = IgnoreRules(source), before.written()
    files = [file for file in manifest.files if _is_log(file.path) and not rules.keeps_here(file.path)]
    return _whole(source, select(manifest_of("", files), project))


def _is_same(folder: Path, file: ProjectFile) -> bool:
    with suppress(OSError, NotRegular):
        return hash_file(folder.joinpath(*file.path.split("/"))) == (file.size, file.sha256)
    return False


def _whole(folder: Path, found: Manifest) -> WrittenFiles | None:
    """Leaves out models that were being saved when the script was killed; None: nothing is left."""
    files = manifest_of("", (file for file in found.files if not _is_cut_off(folder, file.path)))
    return WrittenFiles(folder, files) if files.files else None


def _is_cut_off(folder: Path, path: str) -> bool:
    """Whether a model begins as Keras' archive does, but does not end as one."""
    if not _is_keras(path):
        return False
    with suppress(OSError, NotRegular), open_regular(folder.joinpath(*path.split("/"))) as file:
        return file.read(len(_ARCHIVE)) == _ARCHIVE and not zipfile.is_zipfile(file)
    return True


def lay_out(
    written: WrittenFiles, folder: Path, project: Manifest, own: OwnFiles | None = None
) -> tuple[ProjectFile, ...]:
    """Copy the files into a working copy, or beside the user's own script if there is ``own``. Returns those
    left out. Raises ``TandemError``.

    Security invariant: beside a user's own script, replaces only what changed since the training began, and
    keeps that; adds only logs, pictures and models, and follows no link. No model comes to a script that may
    read it without Keras' safe mode.
    """
    left, is_unsafe = [], _may_be_unsafe(folder, project)
    with storing(folder), Folder(written.folder) as opened:
        check_room(folder, written.files.total_bytes)
        for file in written.files.files:
            target = folder.joinpath(*file.path.split("/"))
            if _is_same(folder, file):
                continue
            is_foreign = own is not None and file.path not in own.changed and not _may_be_new(target)
            if is_foreign or _has_link(folder, target) or (is_unsafe and _is_keras(file.path)):
                left.append(file)
                continue
            part = target.with_name(f".{secrets.token_hex(4)}.part")
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                copy_file(file, partial(opened.open_regular, file.path, buffering=0), part)
                if own is not None and os.path.lexists(target):
                    _keep_replaced(target, own.replaced.joinpath(*file.path.split("/")))
                part.replace(target)
            except Changed:
                _log.warning("%s has changed since the script wrote it", shown(file.path))
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                left.append(file)
            finally:
                with suppress(OSError):
                    part.unlink(missing_ok=True)
    return tuple(left)


def left_out(files: tuple[ProjectFile, ...]) -> str:
    """The remark on what was not put beside the script."""
    them = listed([shown(file.path) for file in files[:3]]) + (" and more" if len(files) > 3 else "")
    return f"Written by the script on another laptop, and not put beside it: {them}. See the run's outputs."


def replaced(folder: Path) -> str:
    """The remark on where that is kept."""
    return f"Files beside the script are now those of another laptop. The former ones are kept in {folder}."


def _keep_replaced(target: Path, kept: Path) -> None:
    with storing(kept.parent):
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            os.link(target, kept, follow_symlinks=False)
        except (OSError, NotImplementedError):  # another disk, or one without links
            shutil.copy2(target, kept, follow_symlinks=False)


def _is_log(path: str) -> bool:
    return path.lower().endswith(_LOGS) or _EVENTS.fullmatch(path.rpartition("/")[2]) is not None


def _may_be_new(target: Path) -> bool:
    return not os.path.lexists(target) and (_is_log(target.name) or target.name.lower().endswith(_NEW))


def _is_keras(path: str) -> bool:
    return path.lower().endswith(".keras")


def _has_link(folder: Path, target: Path) -> bool:
    steps = [target, *target.parents]
    return any(step.is_symlink() for step in steps[: steps.index(folder)])


def _may_be_unsafe(folder: Path, project: Manifest) -> bool:
    code = (file.path for file in project.files if file.path.endswith((".py", ".ipynb")))
    try:
        texts = [folder.joinpath(*path.split("/")).read_bytes() for path in code]
    except OSError:  # unreadable: assume the worst
        return True
    return any(word in text for text in texts for word in _UNSAFE)
