"""Makes the manifest of a script's folder. Reads every byte of it: call it off the core loop."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from core.project.files import UNWATCHED, FolderListing, FoundFile, ReadMeter, Skipped, hash_file, list_files
from core.project.hash_cache import HashCache
from core.project.ignore import TANDEM_RULES, IgnoreRules
from core.runtime.regular_file import NotRegular
from core.script.imports import read_sources, resolved
from core.script.writes import only_written
from core.vocabulary.bounds import MOST_FILES
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import (
    Manifest,
    ProjectFile,
    check_project,
    find_collision,
    manifest_of,
)
from core.vocabulary.paths import shown

_WRITTEN = "the script only writes it"
_SECRET = "it usually holds secrets (a line !NAME in .tandemignore sends it)"


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project on this laptop's disk.

    ``skipped``: links, devices and the like. ``ignored``: excluded by the user's own rules, folders with a
    ``/`` at the end. ``whole_folder`` False: only the script and the modules that it imports.
    """

    folder: str
    manifest: Manifest
    skipped: tuple[Skipped, ...] = ()
    ignored: tuple[str, ...] = ()
    whole_folder: bool = True


def scan_project(
    script: Path,
    *,
    arguments: Collection[str] = (),
    home: Path | None = None,
    hashes: Path | None = None,
    meter: ReadMeter = UNWATCHED,
    most_files: int = MOST_FILES,
) -> Project:
    """The script's folder as a project. Raises ``TandemError`` (over the limit, unreadable, colliding names).

    Rule for broad folders: where the script lies directly in the home folder, its Desktop, Documents or
    Downloads, the temporary folder, or any folder above one of these, only the script and the modules beside
    it that it imports are sent. Nobody means to send such a folder, and it may be huge or private.

    Files that the script only writes are not sent: otherwise one run's outputs would change the next run's
    project. ``arguments``: of the script; files named in them are sent. ``hashes``: the folder that caches
    hashes of unchanged files.

    Links in the script's own path are resolved first, as Python does for ``sys.path``.
    """
    script = resolved(script)
    folder = script.parent
    if is_broad(folder, home):
        return _only_imported(script, hashes, meter, most_files)
    rules, ignored = IgnoreRules(folder), list[str]()

    def leave_out(path: str, is_folder: bool) -> str | None:
        if path == script.name:
            return None
        reason = rules.why_left_out(path, is_folder=is_folder)
        if reason == "rule":
            ignored.append(shown(path) + ("/" if is_folder else ""))
        return _SECRET if reason == "secret" else None if reason is None else ""

    listing = list_files(folder, enter=rules.enter, leave_out=leave_out)
    sent = {file.path for file in listing.files if rules.sends(file.path)}
    paths = [file.path for file in listing.files if file.path not in sent]
    written = only_written(script, paths, arguments, others=sent)
    left = tuple(Skipped(path=shown(path), why=_WRITTEN) for path in sorted(written))
    files = tuple(file for file in listing.files if file.path not in written)
    listing = FolderListing(files=files, skipped=listing.skipped + left)
    _check_limits(script, listing, most_files)
    return _hashed(script, listing, tuple(ignored), hashes, meter, whole_folder=True)


def is_broad(folder: Path, home: Path | None = None) -> bool:
    """Whether a folder is one that nobody means to send as a whole."""
    try:
        home = (home or Path.home()).resolve()
    except RuntimeError:  # no home folder known
        home = None
    bases = [Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]
    if home is not None:
        bases += [home, *(home / name for name in ("Desktop", "Documents", "Downloads"))]
        bases += _named_user_folders(home)
    return any(base == folder or base.is_relative_to(folder) for base in bases)


def _named_user_folders(home: Path) -> list[Path]:
    """Desktop, Downloads and so on under their names in the user's language (XDG)."""
    try:
        text = (home / ".config" / "user-dirs.dirs").read_text("utf-8", errors="replace")
    except OSError:
        return []
    return [home / name for name in re.findall(r'^XDG_\w+_DIR="\$HOME/([^"\n]+)"', text, re.MULTILINE)]


def _only_imported(script: Path, hashes: Path | None, meter: ReadMeter, most_files: int) -> Project:
    folder = script.parent
    paths = sorted(module.path for module in read_sources(script).modules)
    files = tuple(FoundFile(path=path, size=(folder / path).stat().st_size) for path in paths)
    listing = FolderListing(files=files, skipped=())
    _check_limits(script, listing, most_files)
    return _hashed(script, listing, (), hashes, meter, whole_folder=False)


def _hashed(
    script: Path,
    listing: FolderListing,
    ignored: tuple[str, ...],
    hashes: Path | None,
    meter: ReadMeter,
    *,
    whole_folder: bool,
) -> Project:
    files, skipped = [], list(listing.skipped)
    known = None if hashes is None else HashCache(script.parent, hashes)
    meter.expect(sum(found.size for found in listing.files))
    for found in listing.files:
        try:
            path = script.parent / found.path
            size, sha256 = hash_file(path, meter) if known is None else known.hash_file(found.path, meter)
        except (OSError, NotRegular) as error:
            if found.path == script.name:
                raise _no_script(script) from error
            skipped.append(Skipped(path=shown(found.path), why="it cannot be read"))
        else:
            files.append(ProjectFile(path=found.path, size=size, sha256=sha256))
    if known is not None:
        known.save()
    if not any(file.path == script.name for file in files):
        raise _no_script(script, listing.skipped)
    if collision := find_collision(file.path for file in files):
        raise TandemError(
            code="project-names-collide",
            what=f"{shown(collision[0])} and {shown(collision[1])} have the same name on some systems.",
            fix=f"Rename one of them, or leave one out with a line in {TANDEM_RULES}.",
        )
    manifest = manifest_of(script.name, files)
    check_project(manifest)
    return Project(
        folder=str(script.parent),
        manifest=manifest,
        skipped=tuple(skipped),
        ignored=ignored,
        whole_folder=whole_folder,
    )


def _no_script(script: Path, skipped: Iterable[Skipped] = ()) -> TandemError:
    why = next((entry.why for entry in skipped if entry.path == script.name), "it is missing or unreadable")
    return TandemError(
        code="script-unreadable",
        what=f"{shown(script.name)} cannot be sent: {why}.",
        fix="Rename it, or choose another script.",
    )


def _check_limits(script: Path, listing: FolderListing, most_files: int) -> None:
    if listing.fits(most_files):
        return
    files = listing.files
    folder = script.parent
    sizes = Counter(_top(found.path) for found in files if found.path != script.name)
    largest = ", ".join(f"{shown(name)} ({count:,} files)" for name, count in sizes.most_common(3))
    raise TandemError(
        code="project-too-large",
        what=f"The script's folder {shown(str(folder))} contains {len(files):,} files, and at most "
        f"{most_files:,} can be sent (fewer with long names). Most of them: {largest}.",
        fix=f"Leave out what the script does not read: write lines such as {_rule(sizes)} "
        f"into {shown(str(folder / TANDEM_RULES))}. Or put the script into a folder of its own.",
    )


def _top(path: str) -> str:
    first, slash, _ = path.partition("/")
    return first + slash


def _rule(sizes: Counter[str]) -> str:
    (_, most), *_ = sizes.most_common(1)
    return " and ".join(f"/{shown(name)}" for name, size in sizes.most_common(2) if size >= most / 10)
