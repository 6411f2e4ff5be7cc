"""What can go wrong where one laptop asks another what it keeps, or has it removed: in words."""

from __future__ import annotations

from collections.abc import Sequence

from core.vocabulary.errors import Problem
from core.vocabulary.text import plain


def keeping_unknown(name: str) -> Problem:
    return Problem(
        code="keeping-unknown",
        what=f"The Tandem on {name} is older and does not tell what it keeps.",
        fix=f"Update Tandem on {name}, then ask again.",
    )


def keeping_untold(name: str, limit_s: float) -> Problem:
    return Problem(
        code="keeping-untold",
        what=f"{name} did not tell within {limit_s:g} s what it keeps.",
        fix="Ask again later: it may be busy.",
    )


def removal_untold(name: str, limit_s: float) -> Problem:
    return Problem(
        code="removal-untold",
        what=f"{name} did not say within {limit_s:g} s that the files are removed.",
        fix="It may be at it still: look again later at what it keeps.",
    )


def not_here(name: str) -> Problem:
    return Problem(
        code="not-linked", what=f"{name} is not connected.", fix="Open Tandem there, in the same network."
    )


def kept_in_use() -> Problem:
    return Problem(
        code="kept-in-use",
        what="A run between these two laptops is under way, or waits for an answer: nothing was removed.",
        fix="Remove it once the run is over.",
    )


def not_all_removed(refused: Sequence[str]) -> Problem:
    return Problem(
        code="not-all-removed",
        what=f"Not everything could be removed: {plain(', '.join(refused[:3]), 300)}.",
        fix="Look for these in the folders projects and runs of Tandem's home on that laptop.",
    )


def removed(name: str, size: int) -> Problem:
    """No failure, but the user has to know."""
    return Problem(
        code="kept-removed",
        what=f"{plain(name, 40)} removed files of its runs from this laptop ({size / 1e6:.1f} MB).",
        fix="Nothing has to be done. The list of runs still has them.",
    )
