"""Removes folders that a script may have filled: it can nest them deeper than Python recurses. Blocks."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from itertools import count
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove a folder with everything in it, except for files that the system refuses to remove. Links are
    removed, never followed."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    # rmtree holds a descriptor for each level: it may run out of them before it recurses too deeply.
    if folder.is_dir() and not folder.is_symlink():
        with contextlib.suppress(OSError):
            _flatten(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _flatten(folder: Path) -> None:
    """Moves every folder below directly into it. Uses descriptors: such paths exceed the system's limit."""
    if sys.platform == "win32":
        return
    opening = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    top = os.open(folder, opening)
    try:
        numbers, left = count(), _folders(top)
        while left:
            inside = os.open(left.pop(), opening, dir_fd=top)
            try:
                for name in _folders(inside):
                    free = next(each for n in numbers if not _is_there(each := f"{n}-{os.getpid()}", top))
                    os.rename(name, free, src_dir_fd=inside, dst_dir_fd=top)
                    left.append(free)
            finally:
                os.close(inside)
    finally:
        os.close(top)


def _folders(at: int) -> list[str]:
    return [
        name
        for name in os.listdir(at)
        if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    ]


def _is_there(name: str, at: int) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
