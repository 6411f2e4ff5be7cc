"""Why a pairing ends without a pair: one problem each, with its fix."""

from __future__ import annotations

from collections.abc import Sequence

from core.vocabulary import units
from core.vocabulary.errors import Problem, TandemError

_AGAIN = "Press Pair again."


def attack(what: str) -> Problem:
    return Problem(
        code="pairing-attack",
        what=f"Possible attack: {what} Nothing was stored.",
        fix="Try once more on a network you trust. If it happens again, somebody is between the two laptops.",
    )


def different(by_us: bool, name: str) -> Problem:
    where = "here" if by_us else f"on {name}"
    return Problem(
        code="pairing-different",
        what=f"Different was pressed {where}: the codes did not match. Nothing was stored.",
        fix="Pair again and compare all six digits. If they differ again, somebody may be in between.",
    )


def cancelled(by_us: bool, name: str) -> Problem:
    where = "here" if by_us else f"on {name}"
    return Problem(code="pairing-cancelled", what=f"Pairing was cancelled {where}.", fix=_AGAIN)


def busy(name: str) -> Problem:
    return Problem(
        code="pairing-busy",
        what=f"{name} is pairing with another device at the moment.",
        fix="Wait until it is done, then press Pair again.",
    )


def paused(where: str, left_s: float | None = None) -> Problem:
    how_long = "for a while" if left_s is None else f"for {left_s:.0f} more seconds"
    return Problem(
        code="pairing-paused",
        what=f"Pairing is paused {where} {how_long}, because several attempts failed.",
        fix="Wait, then press Pair again. The pause keeps others from guessing codes.",
    )


def version(theirs: int, ours: int) -> Problem:
    return Problem(
        code="pairing-version",
        what=f"The other device uses version {theirs} of the pairing protocol, and this one version {ours}.",
        fix=f"Update Tandem on {'this laptop' if theirs > ours else 'the other laptop'}, then pair again.",
    )


def pairing_under_way(name: str) -> TandemError:
    return TandemError(
        code="pairing-busy",
        what=f"A pairing with {name} is under way.",
        fix="Answer or cancel it first.",
    )


def new_key(name: str) -> Problem:
    return Problem(
        code="pairing-new-key",
        what=f"A device named {name} is paired already, with another key, or one whose name looks the same. "
        "This may be somebody else.",
        fix="Go on only if you set up Tandem again on that laptop; then forget its old entry.",
    )


def mixed_name(name: str, alphabets: Sequence[str]) -> Problem:
    return Problem(
        code="pairing-mixed-name",
        what=f"The name {name} mixes letters of different alphabets: {' and '.join(alphabets)}.",
        fix="Such a name can imitate another. Go on only if its owner confirms it.",
    )


def itself() -> Problem:
    return Problem(
        code="pairing-self",
        what="That address is this device's own.",
        fix="Enter the address that the other laptop shows.",
    )


def malformed(why: str) -> Problem:
    return Problem(
        code="pairing-malformed",
        what=f"The program that answered does not use Tandem's pairing protocol: {why}.",
        fix="Check the address and that both laptops run the same version of Tandem.",
    )


def refused(name: str) -> Problem:
    return Problem(
        code="pairing-refused",
        what=f"{name} refused this device's certificate or message.",
        fix="Install the same version of Tandem on both laptops, then pair again.",
    )


def lost(name: str) -> Problem:
    return Problem(
        code="pairing-lost",
        what=f"The connection to {name} broke before the pairing was complete.",
        fix="Check that both laptops are still on the same network, then press Pair again on one of them.",
    )


def no_code(name: str, address: str, limit_s: float) -> Problem:
    return Problem(
        code="pairing-timeout",
        what=f"{name} at {address} did not get to the code within {units.duration(limit_s)}.",
        fix="Check that Tandem is open there and that no firewall is in the way, then press Pair again.",
    )


def no_answer(by_us: bool, name: str, limit_s: float) -> Problem:
    where = "here" if by_us else f"on {name}"
    return Problem(
        code="pairing-unanswered",
        what=f"Nobody pressed Same or Different {where} within {units.duration(limit_s)}.",
        fix="Press Pair again and compare the codes on both screens.",
    )


def gave_up_waiting(name: str) -> Problem:
    return Problem(
        code="pairing-unanswered",
        what=f"{name} waited for an answer and gave up.",
        fix="Press Pair again; then compare the codes and answer on both laptops within a minute.",
    )


def no_proof(name: str, limit_s: float, detail: str = "") -> Problem:
    return Problem(
        code="pairing-unproven",
        what=f"{name} did not prove its key within {units.duration(limit_s)} after the codes were confirmed.",
        fix="Press Pair again. If it repeats, check the firewall: the proof is a second connection.",
        detail=detail,
    )


def nothing_to_answer() -> TandemError:
    return TandemError(
        code="no-pairing",
        what="There is no code to compare at the moment.",
        fix="Press Pair first, or wait until another device asks.",
    )
