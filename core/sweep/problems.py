"""A sweep's failures, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from core.vocabulary import units
from core.vocabulary.errors import SWEEP_CUT_OFF, Problem
from core.vocabulary.sweep import MOST_SETS, MOST_TRIALS
from core.vocabulary.text import listed, plain


def too_many(sets: int) -> Problem:
    return Problem(
        code="bad-sweep",
        what=f"A sweep has 1 to {MOST_SETS} sets of arguments, and at most {MOST_TRIALS:,} trials; this one "
        f"would have {sets:,} sets.",
        fix="Give fewer values, or try random combinations (--random N).",
    )


def too_many_trials(trials: int) -> Problem:
    return Problem(
        code="bad-sweep",
        what=f"A sweep has 1 to {MOST_TRIALS:,} trials; this one would have {trials:,}.",
        fix="Repeat each set of arguments less often, or give fewer values.",
    )


def empty_value(word: str) -> Problem:
    return Problem(
        code="bad-sweep",
        what=f"{plain(word, 60)} has an empty value.",
        fix="Separate values by single commas. Write \\, for a comma that belongs to a value.",
    )


def nobody() -> Problem:
    return Problem(
        code="bad-sweep",
        what="No laptop is set to take trials.",
        fix="Name other laptops, or let this one take trials, too.",
    )


def under_way() -> Problem:
    return Problem(
        code="busy",
        what="A sweep is already under way here.",
        fix="Wait until it has ended, or stop it first.",
    )


def no_sweep() -> Problem:
    return Problem(code="no-sweep", what="No sweep is under way here.", fix="Start one with tandem sweep.")


def unknown(sweep: str) -> Problem:
    return Problem(
        code="sweep-unknown",
        what=f"No sweep {plain(sweep, 60)} was started here." if sweep else "No sweep was started here yet.",
        fix="Start one: tandem sweep SCRIPT -- --lr 0.1,0.01",
    )


def complete() -> Problem:
    return Problem(
        code="sweep-complete",
        what="Every trial of this sweep has a result.",
        fix="Give more values, or start a new sweep.",
    )


def changed(script: str) -> Problem:
    return Problem(
        code="sweep-changed",
        what=f"{plain(script, 60)}, or a file beside it, was changed since the sweep began. Its trials could "
        "not be compared.",
        fix="Start a new sweep, or undo the change.",
    )


def taken_back(laptop: str) -> Problem:
    return Problem(
        code="stopped",
        what=f"The trial was stopped on {laptop}, which takes no more trials.",
        fix="Resume the sweep to let it take trials again.",
    )


def nobody_left(why: Sequence[Problem]) -> Problem:
    """No laptop takes trials any more. ``why``: each one's reason."""
    first = why[0]
    return Problem(
        code=first.code,
        what="No laptop takes another trial: " + " ".join(dict.fromkeys(each.what for each in why)),
        fix=f"{first.fix} Then resume the sweep.".strip(),
        detail=first.detail,
    )


def nobody_came(names: Sequence[str], waited_s: float) -> Problem:
    return Problem(
        code="device-away",
        what=f"{listed(names)} could take no trial for {units.duration(waited_s)}.",
        fix="Check that Tandem is open and connected there; then resume the sweep.",
    )


def cut_off(script: str, sweep: str) -> Problem:
    return Problem(
        code=SWEEP_CUT_OFF,
        what=f"Tandem ended while a sweep of {plain(script, 60)} was under way. It can go on.",
        fix=f"Press Resume under Train, or: tandem sweep --resume {sweep}. A setting makes this automatic.",
        detail=sweep,
    )
