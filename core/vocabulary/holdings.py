"""What of one laptop lies on another: projects that were sent, and what their runs left."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.ids import ProjectId, RunId

KEEPING = 1
"""Version of what laptops ask each other about this; ``Versions.keeping`` 0 is a Tandem that is not asked."""

MOST_LISTED = 500
"""Projects, and runs, in one answer: it has to fit a message. The newest come first."""

Where = Literal["here", "there"]
"""Whose disk is meant: this laptop's, with what it keeps of another one; or that one's, with what it keeps of
this."""


class KeptProject(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a project as they were sent. ``used_s``: Unix time of its last run there.

    ``of_others``: another laptop sent the very same one, so that removing it takes this laptop's runs alone.
    """

    project: ProjectId
    script: str
    files: int
    bytes: int
    used_s: float
    of_others: bool = False


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run left in its folder: logs, outputs, checkpoints, working copies. ``started_s`` is Unix time.

    ``record_bytes`` is what stays: that it was, with its plan, times and metrics, as the laptop's user has to
    be able to see what ran there.
    """

    run: RunId
    project: ProjectId
    script: str
    started_s: float
    bytes: int
    record_bytes: int = 0


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """``more``: projects and runs beyond those that fit. ``bytes``: of all that can be removed."""

    projects: tuple[KeptProject, ...] = ()
    runs: tuple[KeptRun, ...] = ()
    more: int = 0
    bytes: int = 0
