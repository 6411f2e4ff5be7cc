"""Data folders: files outside a project that its script reads. Blocks: use a thread."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import structs

from core.project.files import UNWATCHED, ReadMeter, Skipped, hash_file, list_files
from core.project.hash_cache import HashCache
from core.project.ignore import is_junk
from core.runtime.regular_file import NotRegular
from core.vocabulary.bounds import MOST_FILES
from core.vocabulary.data import MOST, Data, may_carry_code
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.manifest import (
    Listing,
    Manifest,
    ProjectFile,
    check_files,
    find_collision,
    manifest_of,
)
from core.vocabulary.paths import shown, why_unsafe


class LocalData(msgspec.Struct, frozen=True, kw_only=True):
    """Data on the starter's laptop: ``folder`` has the files of ``manifest``, and its path contains no links.
    ``skipped``: entries of the folder that cannot be sent."""

    data: Data
    folder: str
    manifest: Manifest
    skipped: tuple[Skipped, ...] = ()


def read_data(
    name: str,
    path: Path,
    home: Path,
    hashes: Path | None = None,
    meter: ReadMeter = UNWATCHED,
    *,
    most_files: int = MOST_FILES,
) -> LocalData:
    """The data at ``path``, as the user wrote it. ``hashes``: as in ``scan_project``. Raises
    ``TandemError``."""
    whole = Path(os.path.normpath(path.expanduser().absolute()))
    manifest, skipped = _scan(whole, whole.name, hashes, meter, most_files)
    real, is_file = whole.resolve(), whole.is_file()
    data = Data(
        name=name,
        path=whole.as_posix(),
        below_home=whole.relative_to(home).as_posix() if whole.is_relative_to(home) and whole != home else "",
        is_file=is_file,
        has_code=not is_file and may_carry_code(file.path for file in manifest.files),
        listing=Listing(digest=manifest.digest, size=len(manifest.listing())),
        files=len(manifest.files),
        total_bytes=manifest.total_bytes,
    )
    # A link may give a file another name.
    if is_file and real.name != whole.name:
        raise _unusable(path, "it is a link")
    folder = str(real.parent if is_file else real)
    return LocalData(data=data, folder=folder, manifest=manifest, skipped=skipped)


def find_again(
    data: Data, place: Path, hashes: Path | None = None, meter: ReadMeter = UNWATCHED
) -> LocalData | None:
    """Another laptop's data, if the same is at ``place`` here; None: it is not. ``hashes``: as in
    ``scan_data``."""
    try:
        if data.is_file != place.is_file() or (data.is_file and place.name != Path(data.path).name):
            return None
        if data.is_file and place.stat().st_size != data.total_bytes:
            return None
        manifest = scan_data(place, place.name, hashes, meter)
    except (OSError, TandemError):
        return None
    if manifest.digest != data.listing.digest:
        return None
    folder = place.parent if data.is_file else place
    has_code = not data.is_file and may_carry_code(file.path for file in manifest.files)
    found = structs.replace(data, place=str(place), has_code=has_code)
    return LocalData(data=found, folder=str(folder), manifest=manifest)


def read_kept(
    paths: Iterable[str], keras: Path, hashes: Path | None = None, meter: ReadMeter = UNWATCHED
) -> list[LocalData]:
    """Keras' downloads that are here. ``keras``: its folder; ``paths``: relative paths below it. Skips unsafe
    paths and unusable files."""
    found = []
    for path in paths:
        if why_unsafe(path) is not None:
            continue
        with contextlib.suppress(TandemError):
            name = path.rpartition("/")[2]
            kept = read_data(name, keras / path, keras, hashes, meter)
            found.append(structs.replace(kept, data=structs.replace(kept.data, below_home=f".keras/{path}")))
    return found


def scan_data(path: Path, name: str, hashes: Path | None = None, meter: ReadMeter = UNWATCHED) -> Manifest:
    """A folder's files, without hidden files, links and system files such as ``Thumbs.db``; or a single file,
    listed as ``name``. Raises ``TandemError``.
    """
    return _scan(path, name, hashes, meter)[0]


def _scan(
    path: Path, name: str, hashes: Path | None, meter: ReadMeter, most_files: int = MOST_FILES
) -> tuple[Manifest, tuple[Skipped, ...]]:
    if path.is_file():
        meter.expect(path.stat().st_size)
        known = None if hashes is None else HashCache(path.parent.resolve() / path.name, hashes)
        size, sha256 = _hashed(path, "", known, meter)
        if known is not None:
            known.save()
        return _checked(path, manifest_of("", [ProjectFile(path=name, size=size, sha256=sha256)])), ()
    listing = list_files(path, leave_out=_leave_out)
    if not listing.fits(most_files):
        count = f"{len(listing.files):,}"
        why = f"it contains {count} files, and at most {most_files:,} can be sent (fewer with long names)"
        raise _unusable(path, why, _SPLIT)
    known = None if hashes is None else HashCache(path.resolve(), hashes)
    meter.expect(sum(found.size for found in listing.files))
    files = []
    for found in listing.files:
        size, sha256 = _hashed(path, found.path, known, meter)
        files.append(ProjectFile(path=found.path, size=size, sha256=sha256))
    if known is not None:
        known.save()
    return _checked(path, manifest_of("", files)), listing.skipped


def _leave_out(path: str, is_folder: bool) -> str | None:
    name = path.rpartition("/")[2]
    return "" if name.startswith(".") or is_junk(name) else None


def _hashed(path: Path, inside: str, known: HashCache | None, meter: ReadMeter) -> tuple[int, str]:
    try:
        return hash_file(path / inside, meter) if known is None else known.hash_file(inside, meter)
    except (OSError, NotRegular) as error:
        raise _unusable(path / inside, "it cannot be read") from error


def _checked(path: Path, manifest: Manifest) -> Manifest:
    if not manifest.files:
        raise _unusable(path, "it contains no files")
    if collision := find_collision(file.path for file in manifest.files):
        one, other = map(shown, collision)
        raise _unusable(
            path, f"its {one} and {other} have the same name on some systems", "Rename one of them."
        )
    check_files(manifest.files)
    return manifest


def left_behind(data: LocalData) -> Problem:
    """A warning: part of the data cannot be sent."""
    first, more = data.skipped[0], len(data.skipped) - 1
    return Problem(
        code="data-left",
        what=f"The data {data.data.name} is sent without {first.path} ({first.why})"
        + (f", and without {more:,} more." if more else "."),
        fix="Rename or replace what cannot be sent: a script that reads it would train on different data "
        "elsewhere.",
    )


def too_many_data(data: LocalData) -> Problem:
    """A warning: a run has no room for another Keras download."""
    return Problem(
        code="data-left",
        what=f"{data.data.asked} is not sent: a run can have at most {MOST} data folders and files.",
        fix="Keras downloads it on each laptop. If a laptop is offline, make the script use fewer files.",
    )


_SPLIT = f"Pack them into fewer files, such as TFRecord, or name its subfolders instead ({MOST} at most)."
_READABLE = "Choose a folder or file that you can read and that no program is changing."


def _unusable(path: Path, why: str, fix: str = _READABLE) -> TandemError:
    what = f"{shown(str(path))} cannot be used as data: {why}."
    return TandemError(code="data-unusable", what=what, fix=fix)
