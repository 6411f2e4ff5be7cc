"""Why a laptop cannot be brought into a run, and what a user is told of a run that was cut off."""

from __future__ import annotations

from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import CUT_OFF, Problem
from core.vocabulary.text import plain


def comes_later(name: str) -> str:
    """The remark on a laptop that was lost where no checkpoint is kept."""
    return f"{name} does not come back while train_on_batch trains: no checkpoint is kept of that."


def not_here() -> Problem:
    return Problem(
        code="not-joinable",
        what="That run is not under way, or it was not started on this laptop.",
        fix="Add laptops on the laptop that started the run, while it trains.",
    )


def fixed() -> Problem:
    return Problem(
        code="not-joinable",
        what="The script brings a strategy of its own, which has as many laptops as it began with.",
        fix="Stop the run and train again with all laptops.",
    )


def not_all_paired() -> Problem:
    return Problem(
        code="not-joinable",
        what="A laptop of this run is not paired with this one. It goes on with the run, and with no other.",
        fix="Wait until the laptop that started the run is back, and add laptops there.",
    )


def unknown() -> Problem:
    return Problem(
        code="device-unknown",
        what="That laptop is not paired with this one.",
        fix="Pair it first: both people compare the same six digits.",
    )


def could_go_on(entry: RunEntry) -> Problem:
    return Problem(
        code=CUT_OFF,
        what=f"Tandem ended while {plain(entry.script, 60)} was training. The run can go on where it was.",
        fix=f"Press Resume at the run, or: tandem resume {entry.run}. A setting does it without asking.",
        detail=entry.run,
    )


def reaches_more() -> Problem:
    """A run that would go on here without its lost starter."""
    return Problem(
        code="reaches-more",
        what="The run does not go on here without its starter: it would reach more than this user allowed, "
        "such as a folder that was replaced by a link since.",
        fix="Wait until the laptop that started it is back, or press Resume.",
    )
