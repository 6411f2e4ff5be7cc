"""The texts of a project that travel with the request to run it, for users to read before they answer.

Blocks: use a thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from core.runtime.regular_file import NotRegular, open_regular
from core.script.analysis import SUFFIXES
from core.script.notebook import SUFFIX as NOTEBOOK
from core.script.syntax import Mistake
from core.vocabulary import units
from core.vocabulary.manifest import Manifest, ProjectFile
from core.vocabulary.paths import shown

LIMIT_TEXTS_BYTES = 500_000
"""Limit of all texts of a request together."""
ENTRY_BYTES = 16
"""A text's overhead in a message, besides its path."""


def read_texts(folder: Path, manifest: Manifest) -> dict[str, bytes]:
    """As many texts as fit, by path: first the script, then other Python files, then the rest, small ones
    first.

    Leaves out files that changed since the manifest was made: their bytes would not be the ones that run.
    """
    room, texts = LIMIT_TEXTS_BYTES, dict[str, bytes]()
    for file in sorted(manifest.files, key=lambda file: _order(file, manifest.script)):
        needed = file.size + len(file.path.encode()) + ENTRY_BYTES
        if needed > room:
            continue
        data = read_exactly(folder.joinpath(*file.path.split("/")), file)
        if data is not None and is_text(data):
            texts[file.path] = data
            room -= needed
    return texts


def find_unseen(manifest: Manifest) -> tuple[Mistake, ...]:
    """Reports a script that is too large to come with the request: usually a notebook with pictures."""
    script = next((file for file in manifest.files if file.path == manifest.script), None)
    if script is None or script.size <= LIMIT_TEXTS_BYTES:
        return ()
    is_notebook = script.path.endswith(NOTEBOOK)
    return (
        Mistake(
            code="script-unseen",
            path=script.path,
            line=0,
            what=f"{shown(script.path)} is too large ({units.size(script.size)}) for the other laptops' "
            f"users to read it before they allow it. The limit is {units.size(LIMIT_TEXTS_BYTES)}.",
            fix="In Jupyter, choose Edit → Clear Outputs of All Cells."
            if is_notebook
            else "Move its data into separate files.",
        ),
    )


def match_manifest(texts: Mapping[str, bytes], manifest: Manifest) -> bool:
    """Whether texts match the manifest byte by byte.

    Security invariant: the texts that a user reads before saying yes are the ones that run afterwards.
    """
    hashes = {file.path: file.sha256 for file in manifest.files}
    return sum(map(len, texts.values())) <= LIMIT_TEXTS_BYTES and all(
        hashes.get(path) == hashlib.sha256(data).hexdigest() for path, data in texts.items()
    )


def read_exactly(path: Path, file: ProjectFile) -> bytes | None:
    """A file's bytes; None where they differ from the manifest, or cannot be read."""
    try:
        with open_regular(path) as opened:
            data = opened.read(file.size + 1)
    except (OSError, NotRegular):
        return None
    return data if hashlib.sha256(data).hexdigest() == file.sha256 else None


def is_text(data: bytes) -> bool:
    """Whether a person can read it."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _order(file: ProjectFile, script: str) -> tuple[bool, bool, int, str]:
    return file.path != script, not file.path.endswith(SUFFIXES), file.size, file.path
