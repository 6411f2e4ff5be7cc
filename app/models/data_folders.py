"""Data folders as written by a user: ``photos=~/Pictures/photos``, several as on a command line. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from core.vocabulary.data import bad_folder, check_folders

FORM = "NAME=PATH"
HELP = (
    "a folder or file outside the project that the script reads (photos=~/Pictures/photos). It is sent to "
    "the other laptops, except those with a data folder of that name and the same files"
)
HELP_HERE = (
    "a data folder here (photos=~/Pictures/photos): other laptops' runs with data of that name read it "
    "if the files are the same. You are asked first"
)


def read_line(text: str) -> dict[str, str]:
    """Raises ``TandemError``."""
    try:
        return read(shlex.split(text))
    except ValueError as error:
        raise bad_folder(text) from error


def read(words: Iterable[str]) -> dict[str, str]:
    """Raises ``TandemError``."""
    found = {}
    for word in words:
        name, _, path = word.partition("=")
        if not path:
            raise bad_folder(word)
        found[name] = str(Path(path).expanduser().absolute())
    check_folders(found)
    return found


def written(folders: Mapping[str, str]) -> str:
    return shlex.join(f"{name}={path}" for name, path in folders.items())
