"""Why a meeting of members comes to nothing: one problem each, with its mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.text import plain

if TYPE_CHECKING:  # the state knows numpy, and a node, which makes the keys, does without
    from core.exchange.state import Call, Key

MISMATCH = "exchange-mismatch"
LEFT = "exchange-left"
OLD = "exchange-old"
BROKEN = "exchange-broken"


class ExchangeFailed(TandemError):
    """A wait ended without a result."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(code=problem.code, what=problem.what, fix=problem.fix, detail=problem.detail)


def mismatch(rank: int, theirs: Call, own_rank: int, own: Call, key: Key) -> Problem:
    wants = sorted([(rank, theirs), (own_rank, own)], key=lambda each: each[0])
    return Problem(
        code=MISMATCH,
        what="Two members do not agree on what to exchange: "
        + ", ".join(f"member {number} wants a {call}" for number, call in wants)
        + ".",
        fix="The script took different ways on the two: look for what depends on the machine, the time, or "
        "chance without a seed.",
        detail=f"step {key.step}, pack {key.pack}, generation {key.generation}, attempt {key.attempt}",
    )


def left(rank: int, reason: Problem) -> Problem:
    return Problem(
        code=LEFT,
        what=f"Member {rank} has left: {reason.what}",
        fix=reason.fix or "Train again with the members that are there.",
        detail=" ".join(filter(None, [reason.code, reason.detail])),
    )


def incomprehensible(rank: int, detail: str) -> Problem:
    return Problem(
        code="exchange-bad-frame",
        what=f"Member {rank} sent something that does not belong there.",
        fix="Install the same version of Tandem on all laptops.",
        detail=plain(detail),
    )


def restarted(rank: int) -> Problem:
    return Problem(
        code="exchange-restarted",
        what=f"Member {rank} has forgotten what was exchanged before: its trainer was started anew.",
        fix="Go on from the newest checkpoint.",
    )


def old(key: Key, floor: tuple[int, int]) -> Problem:
    return Problem(
        code=OLD,
        what=f"Step {key.step} of generation {key.generation}, attempt {key.attempt} is not met any more.",
        fix="Nothing: the step is computed again with the members that are there now.",
        detail=f"now at generation {floor[0]}, attempt {floor[1]}",
    )


def unsendable(why: str) -> TandemError:
    return TandemError(
        code="exchange-unsendable",
        what=f"This can't be exchanged between members: {why}.",
        fix="Split it into smaller arrays of plain numbers.",
    )


def bad_pins(why: str) -> TandemError:
    return TandemError(
        code="exchange-pins",
        what=f"The members' certificates of this run can't be used: {why}.",
        fix="Start the run again: it makes new ones.",
    )


def broken(error: Exception) -> Problem:
    return Problem(
        code=BROKEN,
        what="The exchange with the other members broke.",
        fix="Train again; if it happens again, report it with the log.",
        detail=f"{type(error).__name__}: {error}",
    )
