"""A run's outputs: files that its script wrote beside itself, and the models that Tandem saved.

Blocks: use a thread.

A working copy is compared by content (``core.project.outputs``); the user's own folder may hold far more than
the project (data sets, environments), so only names, sizes and times are compared here.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from core.home.private_file import write_atomically
from core.project.files import hash_file, list_files
from core.project.ignore import is_junk
from core.project.outputs import LIMIT_BYTES, LIMIT_FILES, Outputs
from core.runtime.regular_file import Folder, NotRegular
from core.runtime.removal import remove_tree
from core.vocabulary import wire
from core.vocabulary.bounds import MOST_FILES, FilePath
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.manifest import Manifest, ProjectFile, manifest_of
from core.vocabulary.paths import shown
from core.vocabulary.run_folder import LEFT, TRAINED

_NAME = re.compile(r"model(-\d+)?\.(keras|weights\.h5)")
_PATH = re.compile(rf"{TRAINED}(-\d+)?/{_NAME.pattern}")

Stamp = tuple[int, int, int]
"""Size, time of change, inode."""
_SKIPPED = frozenset([".git", ".venv", "venv", "node_modules", ".tox", ".mypy_cache", ".ipynb_checkpoints"])


class SavedStamps(msgspec.Struct, frozen=True):
    """A ``FolderSnapshot`` on disk."""

    folder: FilePath
    stamps: Annotated[dict[FilePath, Stamp], Meta(max_length=MOST_FILES)]
    deep: bool = False


class FolderSnapshot:
    """A folder's files before the script ran. ``deep`` False: only the top level. ``before``: the files, as
    they were then."""

    def __init__(
        self,
        folder: Path,
        *,
        deep: bool,
        limit_bytes: int = LIMIT_BYTES,
        before: Mapping[str, Stamp] | None = None,
    ) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.deep = deep
        self._before: Mapping[str, Stamp]
        if before is not None:
            self._before = before
            return
        try:
            self._before = self._stamps()
        except TandemError:
            # Too much lies below, or some of it is unreadable: compare the top level only.
            self.deep = False
            self._before = self._stamps()

    @classmethod
    def saved(cls, folder: Path, file: Path) -> FolderSnapshot | None:
        """The snapshot that ``save`` wrote of this folder; None: unreadable, or another folder's."""
        try:
            found = wire.from_json(file.read_bytes(), SavedStamps)
        except (OSError, msgspec.DecodeError):
            return None
        return cls(folder, deep=found.deep, before=found.stamps) if found.folder == str(folder) else None

    def save(self, file: Path) -> None:
        """Raises ``OSError``."""
        write_atomically(file, wire.to_json(SavedStamps(str(self.folder), dict(self._before), self.deep)))

    def changed(self) -> list[tuple[int, str]]:
        """Sizes and paths of new and changed files."""
        return [(stamp[0], path) for path, stamp in self._stamps().items() if self._before.get(path) != stamp]

    def written(self) -> tuple[Manifest, Problem | None]:
        """New and changed files, smallest first until the limit; and why some are missing."""
        files: list[ProjectFile] = []
        room, left_out = self.limit_bytes, list[str]()
        for size, path in sorted(self.changed()):
            if size > room or len(files) == LIMIT_FILES:
                left_out.append(shown(path))
                continue
            try:
                size, sha256 = hash_file(self.folder / path)
            except (OSError, NotRegular):
                left_out.append(shown(path))
                continue
            room -= size
            files.append(ProjectFile(path=path, size=size, sha256=sha256))
        problem = _left_out(self.folder, left_out) if left_out else None
        return manifest_of("", files), problem

    def _stamps(self) -> dict[str, Stamp]:
        listing = list_files(self.folder, leave_out=_leave_out(deep=self.deep))
        stamps: dict[str, Stamp] = {}
        for found in listing.files:
            try:
                state = (self.folder / found.path).lstat()
            except OSError:
                continue  # it vanished
            stamps[found.path] = (state.st_size, state.st_mtime_ns, state.st_ino)
        return stamps


def _leave_out(*, deep: bool) -> Callable[[str, bool], str | None]:
    def reason(path: str, is_folder: bool) -> str | None:
        name = path.rpartition("/")[2]
        if is_folder and (not deep or name in _SKIPPED):
            return ""
        return "" if is_junk(name) else None

    return reason


def _left_out(folder: Path, paths: list[str]) -> Problem:
    return Problem(
        code="outputs-left",
        what=f"Not copied into the run's folder: {_listed(paths)}.",
        fix=f"All of it is beside the script, in {shown(str(folder))}.",
    )


def _listed(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def keep_left(found: Outputs, work: Path, folder: Path, name: str) -> Problem | None:
    """Move outputs that are not brought back out of a working copy, which will be deleted, into ``folder`` on
    the same disk. Returns what to tell the user; None: nothing is left. ``name``: this laptop's.

    Security invariant: no file outside the working copy is moved, even if the script left a link to it, or
    one of its processes makes one meanwhile.
    """
    kept = list[str]()
    with Folder(work) as below:
        for path in found.left:
            with contextlib.suppress(OSError, NotRegular):
                below.move(path, folder / path)
                kept.append(shown(path))
    if not found.skipped:
        return None
    first, more = found.skipped[0], len(found.skipped) - 1
    fix = "Have the script save fewer or smaller files, under plain names."
    if kept:
        them = "what was too much" if len(kept) == len(found.left) else _listed(kept)
        fix = f"{name} keeps {them}, in the run's folder {LEFT}, as long as its settings say. {fix}"
    what = f"Not brought back: {first.path} ({first.why})" + (f", and {more} more." if more else ".")
    return Problem(code="outputs-left", what=what, fix=fix)


def is_model(path: str) -> bool:
    """Whether an output is a model that Tandem saved: ``trained/model.keras``."""
    return _PATH.fullmatch(path) is not None


def saved_bytes(saved: Path) -> int:
    """Total size of the models that Tandem saved in ``saved``."""
    return sum(path.stat().st_size for path in _models(saved))


def move_models(saved: Path, folder: Path) -> tuple[str, ...]:
    """Move the models below ``folder``, on the same disk; their paths there. Nothing is overwritten."""
    models = _models(saved)
    if not models:
        remove_tree(saved)
        return ()
    names = (f"{TRAINED}-{number}" if number > 1 else TRAINED for number in count(1))
    name = next(name for name in names if not os.path.lexists(folder / name))
    (folder / name).mkdir(mode=0o700, parents=True)
    for model in models:
        model.rename(folder / name / model.name)
    remove_tree(saved)  # including half-written files of a killed trainer
    return tuple(f"{name}/{model.name}" for model in models)


def _models(saved: Path) -> list[Path]:
    """Skips links, which a script may have made."""
    if not saved.is_dir():
        return []
    found = (path for path in saved.iterdir() if _NAME.fullmatch(path.name))
    return sorted(path for path in found if path.is_file() and not path.is_symlink())
