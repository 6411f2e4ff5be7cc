"""Files that a script asks to open on a member's laptop, beside its own folders. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated

import msgspec
from msgspec import Meta

from core.vocabulary.bounds import FilePath

MOST = 16
"""Limit per laptop: a request with more is rejected."""


class Access(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file, or a folder with everything in it."""

    path: Annotated[str, Meta(max_length=1_000)]
    """Below the home of that laptop's user (``~/Pictures``), or absolute."""
    write: bool = False
    """Write access as well."""

    @property
    def is_whole(self) -> bool:
        """Whether the path has a root."""
        is_rooted = self.path.startswith(("~/", "/")) and not self.path.startswith("~//")
        return is_rooted and "\0" not in self.path


Accesses = Annotated[tuple[Access, ...], Meta(max_length=MOST)]


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """An ``Access`` with its real path."""

    asked: FilePath
    path: FilePath
    """Absolute, with all links resolved."""
    write: bool = False


Grants = Annotated[tuple[Grant, ...], Meta(max_length=2 * MOST)]
"""Data folders included."""


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Whether ``path`` is one of ``folders``, or inside one."""
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def least(folders: Iterable[str], *, but: Iterable[str] = ()) -> tuple[str, ...]:
    """The outermost folders, sorted, without those inside ``but``: equal sets give equal results."""
    found = set(folders)
    outer = {each for each in found if not is_within(each, found - {each})}
    return tuple(sorted(each for each in outer if not is_within(each, but)))
