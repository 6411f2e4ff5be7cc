"""Identifiers. Each is its own type, so that one cannot be used for another."""

from datetime import UTC, datetime
from typing import NewType

from core.vocabulary.bounds import Name, Word

DeviceId = NewType("DeviceId", Word)
"""SHA-256 of the device's certificate (DER), lower-case hex, 64 characters."""

RunId = NewType("RunId", Name)
"""Start time and four random bytes, e.g. ``20261121-191204-9f3a01bc``: sorts by time, fits a file name."""

SweepId = NewType("SweepId", Name)
"""Like ``RunId``, for a sweep."""
ProjectId = NewType("ProjectId", Word)
"""SHA-256 of a project's manifest, lower-case hex, 64 characters."""


def short(identifier: str) -> str:
    """The first eight characters: enough to tell devices or projects apart on a screen."""
    return identifier[:8]


def started_s(run: RunId, recorded_s: float) -> float:
    """When a run was started (Unix time), from its id and so the same on every laptop. A laptop's own record
    (``recorded_s``) is a little later, by another clock."""
    try:
        began = datetime.strptime("-".join(run.split("-")[:2]), "%Y%m%d-%H%M%S")
    except ValueError:
        return recorded_s
    return began.replace(tzinfo=UTC).timestamp()
