"""Why a laptop cannot join a run under way, or a run cannot go on: typed problems."""

from __future__ import annotations

from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import CUT_OFF, Problem
from core.vocabulary.text import plain


def comes_later(name: str) -> str:
    """The remark on a laptop that was lost where no checkpoint is kept."""
    return f"{name} does not come back while train_on_batch trains, which has no checkpoints."


def not_here() -> Problem:
    return Problem(
        code="not-joinable",
        what="That run is not under way, or it was not started on this laptop.",
        fix="Add laptops on the laptop that started the run, while it trains.",
    )


def fixed() -> Problem:
    return Problem(
        code="not-joinable",
        what="The script has its own strategy, which cannot add laptops during a run.",
        fix="Stop the run and train again with all laptops.",
    )


def not_all_paired() -> Problem:
    return Problem(
        code="not-joinable",
        what="A laptop of this run is not paired with this one: it takes part in this run only.",
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
        what=f"Tandem ended while {plain(entry.script, 60)} was training. The run can go on from there.",
        fix=f"Press Resume, or use tandem resume {entry.run}. A setting resumes such runs without asking.",
        detail=entry.run,
    )


def reaches_more() -> Problem:
    """A run that would go on here without its lost starter."""
    return Problem(
        code="reaches-more",
        what="The run does not go on here without its starter: it would reach more than this user allowed, "
        "such as a folder that has since been replaced by a link.",
        fix="Wait until the laptop that started it is back, or press Resume.",
    )
