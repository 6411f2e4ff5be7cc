"""Why a link ends or does not come about: one problem each, with its mend."""

from __future__ import annotations

from core.vocabulary.errors import Problem

_TRIES = "Tandem keeps trying."


def silent(name: str, limit_s: float) -> Problem:
    return Problem(
        code="link-silent",
        what=f"{name} fell silent: nothing came from it for {limit_s:.0f} s.",
        fix=f"Check that it is awake and on the same network. {_TRIES}",
    )


def slept(name: str, seconds: float) -> Problem:
    """The peer is not to blame that it gave this laptop up, or that nothing comes over the old connection."""
    return Problem(
        code="link-slept",
        what=f"This laptop slept or stood still for {seconds:.0f} s, and its connection to {name} ended.",
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
    """It ended the connection before it said hello; TLS 1.3 tells a client of a refusal only so late."""
    return Problem(
        code="link-refused",
        what=f"{name} closed the connection before it said hello.",
        fix="If this laptop was forgotten there, forget that one here too, then pair the two again.",
        detail=detail,
    )


def out_of_turn(name: str, message: str) -> Problem:
    return Problem(
        code="link-out-of-turn",
        what=f"{name} sent a message that does not belong there.",
        fix="Install the same version of Tandem on both laptops.",
        detail=message,
    )


def slow(name: str, waiting_bytes: int) -> Problem:
    return Problem(
        code="link-slow",
        what=f"{name} does not keep up with what is sent to it: {waiting_bytes >> 20} MiB are waiting.",
        fix=f"Check the network between the two laptops. {_TRIES}",
    )


def stalled(name: str, limit_s: float) -> Problem:
    return Problem(
        code="link-stalled",
        what=f"{name} has accepted none of what is sent to it for {limit_s:.0f} s.",
        fix=f"Check the network between the two laptops, and that {name} is not overloaded. {_TRIES}",
    )


def replaced(name: str) -> Problem:
    return Problem(
        code="link-replaced",
        what=f"A newer connection between this laptop and {name} took the place of the old one.",
    )


def crossed(name: str) -> Problem:
    return Problem(
        code="link-crossed",
        what=f"Both laptops called each other at once; the other call to {name} is kept.",
    )


def bad_hello(name: str) -> Problem:
    return Problem(
        code="link-bad-hello",
        what=f"The hello of {name} can't be understood.",
        fix="Install the same version of Tandem on both laptops.",
    )


def renamed(before: str, name: str) -> Problem:
    return Problem(
        code="renamed",
        what=f"{before} is called {name} now.",
        fix="Nothing: the two laptops are connected again in a moment.",
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
        what=f"A message of {name} could not be handled.",
        fix=f"The log has the details. {_TRIES}",
    )
