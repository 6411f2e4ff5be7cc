"""The shipped examples. A run writes beside its script, so each is first copied out of the program."""

from __future__ import annotations

import shutil
from pathlib import Path

import resources
from core.vocabulary.errors import TandemError

EXAMPLES = {
    "digits": ("Digits", "Handwritten digits of 8 × 8 pixels, a small convolutional network"),
    "images": ("Image folder", "Pictures, one folder for each class"),
    "table": ("CSV table", "178 wines by 13 measurements, a dense network"),
    "text": ("Text", "Sorts dictionary definitions by topic"),
}
"""Folder in resources/examples: title and description."""


def copied(name: str, place: Path) -> Path:
    """``place/name`` with this version's files of the example; other files there stay.

    Blocks (up to a few hundred small files). Raises ``TandemError`` if ``place`` is not writable.
    """
    source = Path(resources.__file__).parent / "examples" / name
    try:
        shutil.copytree(
            source, place / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
    except (OSError, shutil.Error) as error:
        raise TandemError(
            code="example-not-copied",
            what=f"The example can't be copied to {place}.",
            fix="Free some space on that disk or make the folder writable, and choose the example again.",
            detail=str(error),
        ) from error
    return place / name
