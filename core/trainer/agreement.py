"""Checks that a script in its user's own folder is still what the other laptops' users were asked about."""

from __future__ import annotations

from pathlib import Path

from core.project.files import hash_file
from core.runtime.regular_file import NotRegular
from core.vocabulary.errors import Problem
from core.vocabulary.manifest import Manifest, ProjectFile
from core.vocabulary.paths import shown
from core.vocabulary.wire import from_json


def why_not(listing: Path, folder: Path) -> Problem | None:
    """Why the script may not run: a file of ``folder`` that differs from the manifest in ``listing``."""
    manifest = from_json(listing.read_bytes(), Manifest)
    for file in sorted(manifest.files, key=lambda each: each.path != manifest.script):
        if not _is_same(folder, file):
            return Problem(
                code="project-changed",
                what=f"{shown(file.path)} changed since the others were asked.",
                fix="Press Train again to ask them about the current files.",
            )
    return None


def _is_same(folder: Path, file: ProjectFile) -> bool:
    try:
        return hash_file(folder.joinpath(*file.path.split("/"))) == (file.size, file.sha256)
    except (OSError, NotRegular):
        return False
