"""Why a meeting of members fails: one problem each, with its fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.net.address import Address
from core.vocabulary.errors import LEFT_RUN, Problem, TandemError
from core.vocabulary.text import plain

if TYPE_CHECKING:  # state imports numpy; a node makes keys without it
    from core.exchange.state import Call, Calls, Key, Trouble

DONE = "done"
"""The reason code of a member whose script has ended."""
MISMATCH = "exchange-mismatch"
ENDED = "exchange-ended"
LEFT = "exchange-left"
OLD = "exchange-old"
BROKEN = "exchange-broken"
DISK_FULL = "disk-full"
LOSSES = frozenset({"out-of-memory", DISK_FULL, "trainer-broke", BROKEN, LEFT_RUN})
"""Reason codes of members that leave through no fault of the others: they may go on without them."""


_APART = "The script went different ways"
_LONGEST = 400
"""Most characters shown of one member's call."""
_ONE_WAY = (
    "All members must make the same calls of fit, evaluate and predict, with the same model and data. Look "
    "for code that depends on the laptop, the time or unseeded random numbers, and for caught errors."
)
_SAYING: dict[Trouble | None, str] = {
    None: "has not been called yet",
    "refused": "is there, but nothing listens on that port",
    "silent": "did not answer on that port",
    "unreachable": "cannot be reached from here",
    "no-name": "has a name that could not be resolved",
    "stranger": "has a certificate that is not of this run, or refused ours",
    "hung-up": "closed the connection",
}
_PORTS = "Allow TCP ports 20000–32000 in the firewall of either laptop: one that can be called is enough."
_MENDS: dict[Trouble | None, str] = {
    "refused": "See that laptop's log of the run: its trainer did not start, or a firewall rejects it.",
    "silent": _PORTS,
    "unreachable": "Put both laptops into the same network.",
    "no-name": "Connect the laptops by address: tandem pair HOST:PORT.",
    "stranger": "Another program or run uses that port or address. Train again.",
    "hung-up": "See that laptop's log of the run.",
}


class ExchangeFailed(TandemError):
    """A wait ended without a result."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(code=problem.code, what=problem.what, fix=problem.fix, detail=problem.detail)


def mismatch(wants: Sequence[tuple[str, Call]], key: Key) -> Problem:
    """``wants``: two members' names in rank order, with the call of each."""
    (first, one), (second, other) = wants
    is_where = one.place == other.place and one.label != other.label
    return Problem(
        code=MISMATCH,
        what=f"{_APART}{f' in {plain(one.place)}' if is_where and one.place else ''}: "
        f"{first} wants {_unlike(one, other)}; {second} wants {_unlike(other, one)}.",
        fix=_ONE_WAY,
        detail=f"{first}: {one.numbers}; {second}: {other.numbers}; meeting {key.step}, pack {key.pack}, "
        f"generation {key.generation}, attempt {key.attempt}",
    )


def _unlike(call: Call, other: Call) -> str:
    """The part of a call that differs from the other."""
    if call.label in ("", other.label):
        return str(call)
    return plain(call.purpose if call.place == other.place else call.label, _LONGEST)


def left(who: str, reason: Problem, own: str, call: Call) -> Problem:
    """``own``: the name of this member, which waits for ``call``."""
    if reason.code == MISMATCH:
        return reason  # it found first what this member would have found
    if reason.code == DONE:
        return Problem(
            code=ENDED,
            what=f"{_APART}: on {who} it has ended; {own} wants {call}.",
            fix=_ONE_WAY,
        )
    return Problem(
        code=LEFT,
        what=f"{who} has left: {reason.what}",
        fix=reason.fix or "Train again with the remaining members.",
        detail=" ".join(filter(None, [reason.code, reason.detail])),
    )


def never_met(absent: Sequence[tuple[str, Calls]], waited_s: float, now_s: float) -> Problem:
    """``absent``: members that are not connected, and how calling them went; empty where others can't reach
    each other."""
    if not absent:
        what = "all are connected to this one, but not all to each other"
        mends = ["The other laptops' logs of the run name the missing connections."]
    else:
        what = "; ".join(f"{who} {_called(calls, now_s)}" for who, calls in absent)
        mends = [mend for trouble, mend in _MENDS.items() if trouble in {each.trouble for _, each in absent}]
    return Problem(
        code="never-met",
        what=f"The trainers did not meet within {waited_s:.0f} s: {what}.",
        fix=" ".join(mends) or _PORTS,
    )


def _called(calls: Calls, now_s: float) -> str:
    if calls.address is None:
        return "did not call"
    often = f", called {calls.tried} times in {now_s - calls.since_s:.0f} s" if calls.tried else ""
    return f"(at {Address(*calls.address)}{often}) {_SAYING[calls.trouble]}"


def incomprehensible(who: str, detail: str) -> Problem:
    return Problem(
        code="exchange-bad-frame",
        what=f"{who} sent an unexpected message.",
        fix="Install the same version of Tandem on all laptops.",
        detail=plain(detail),
    )


def restarted(who: str) -> Problem:
    return Problem(
        code="exchange-restarted",
        what=f"{who}'s trainer was restarted and has lost what was exchanged before.",
        fix="Resume from the newest checkpoint.",
    )


def old(key: Key, floor: tuple[int, int]) -> Problem:
    return Problem(
        code=OLD,
        what=f"Step {key.step} of generation {key.generation}, attempt {key.attempt} is out of date.",
        fix="Nothing to do: the remaining members compute the step again.",
        detail=f"now at generation {floor[0]}, attempt {floor[1]}",
    )


def begun_anew() -> Problem:
    return Problem(
        code=OLD,
        what="A laptop has left the run. The others repeat these steps without it.",
        fix="Nothing to do: this happens automatically.",
    )


def not_without(names: Sequence[str], place: str) -> Problem:
    """``names``: the laptops that have left; ``place``: in the script."""
    return Problem(
        code="cannot-go-on",
        what=f"{', '.join(names)} left the run; {place or 'a loop of the script'} cannot go on without them.",
        fix="Resume the run from its newest checkpoint, with the laptops that are there.",
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
        what="The exchange with the other members failed.",
        fix="Train again; if it happens again, report it with the log.",
        detail=f"{type(error).__name__}: {error}",
    )
