"""Why a link ends or fails to come up: one problem each, with its fix."""

from __future__ import annotations

from core.link.budgets import BUDGETS, Kind
from core.vocabulary import units
from core.vocabulary.errors import Problem

_TRIES = "Tandem keeps trying."


def silent(name: str, limit_s: float) -> Problem:
    return Problem(
        code="link-silent",
        what=f"{name} fell silent: nothing received for {units.duration(limit_s)}.",
        fix=f"Check that it is awake and on the same network. {_TRIES}",
    )


def slept(name: str, seconds: float) -> Problem:
    """For a connection that ended because this laptop slept: the peer is not to blame."""
    return Problem(
        code="link-slept",
        what=f"This laptop slept or froze for {units.duration(seconds)}, and its connection to {name} ended.",
        fix=f"Keep it awake while it trains with others. {_TRIES}",
    )


def closed(name: str, detail: str = "") -> Problem:
    return Problem(
        code="link-closed",
        what=f"The connection to {name} closed.",
        fix=f"Check that Tandem is open there. {_TRIES}",
        detail=detail,
    )


def turned_away(name: str, detail: str = "") -> Problem:
    """The peer closed the connection before its hello; TLS 1.3 tells a client of a refusal only then."""
    return Problem(
        code="link-refused",
        what=f"{name} closed the connection before it said hello.",
        fix="If this laptop was forgotten there, forget that one here too, then pair the two again.",
        detail=detail,
    )


def out_of_turn(name: str, message: str) -> Problem:
    return Problem(
        code="link-out-of-turn",
        what=f"{name} sent an unexpected message.",
        fix="Install the same version of Tandem on both laptops.",
        detail=message,
    )


def excess(name: str, kind: Kind) -> Problem:
    budget = BUDGETS[kind]
    how = "drops most of them" if budget.replaceable else "reads them slowly"
    return Problem(
        code="link-excess",
        what=f"{name} sends more {budget.counts} than any normal run. This laptop {how}.",
        fix="Check what runs there. If that laptop was stolen, or its Tandem was changed, forget it.",
    )


def slow(name: str, waiting_bytes: int) -> Problem:
    return Problem(
        code="link-slow",
        what=f"{name} does not keep up with what is sent to it: {units.size(waiting_bytes)} are waiting.",
        fix=f"Check the network between the two laptops. {_TRIES}",
    )


def stalled(name: str, limit_s: float) -> Problem:
    return Problem(
        code="link-stalled",
        what=f"{name} has accepted nothing from this laptop for {units.duration(limit_s)}.",
        fix=f"Check the network between the two laptops, and that {name} is not overloaded. {_TRIES}",
    )


def renewed(name: str) -> Problem:
    return Problem(
        code="link-renewed",
        what=f"{name} has forgotten its connection with this laptop: "
        "Tandem was restarted there, or gave up on this laptop.",
    )


def worn(name: str) -> Problem:
    return Problem(
        code="link-worn",
        what=f"The connection to {name} has used up its keys, so a new one replaces it.",
    )


def crossed(name: str) -> Problem:
    return Problem(
        code="link-crossed",
        what=f"Both laptops connected at once; the other connection to {name} is kept.",
    )


def bad_hello(name: str) -> Problem:
    return Problem(
        code="link-bad-hello",
        what=f"{name} sent a greeting that this version of Tandem can't read.",
        fix="Install the same version of Tandem on both laptops.",
    )


def forgotten() -> Problem:
    return Problem(
        code="forgotten",
        what="One of the two laptops forgot the other.",
        fix="Pair the two laptops again to use them together.",
    )


def failed(name: str) -> Problem:
    return Problem(
        code="link-failed",
        what=f"A message from {name} could not be handled.",
        fix=f"The log has the details. {_TRIES}",
    )
