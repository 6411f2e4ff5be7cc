"""What a seal is, and why a trainer has none, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from core.vocabulary.errors import Problem

NOT_SEALED = "not-sealed"
"""The code of every failure by which TensorFlow's port would be open."""
_INSTEAD = (
    "Or train by model.fit or MirroredStrategy, which need no seal; or accept an open port for this one run, "
    "in a network whose members you all trust: --open-port."
)


def words(way: str, *, downloads: bool) -> str:
    """What the user is told of a seal that holds. ``downloads``: the script may."""
    if way == "loopback":
        return (
            "Sealed against the network: TensorFlow listens on this laptop's loopback alone, as the system "
            "gives the trainer no network of its own. Other users of this laptop could reach it."
        )
    network = "What it downloads goes through Tandem's proxy." if downloads else "It has no network."
    return (
        "Sealed: the script is in a network of its own, and TensorFlow is reached by the members of this run "
        f"alone. {network}"
    )


def not_sealed(error: OSError) -> Problem:
    """The system does not give an ordinary user a network of its own."""
    return Problem(
        code=NOT_SEALED,
        what=f"TensorFlow's port cannot be sealed on this laptop ({error.strerror or error}), and it would "
        "be open to the whole network.",
        fix=f"`tandem doctor` says what keeps user namespaces from being used here. {_INSTEAD}",
    )


def not_kept_in(error: OSError) -> Problem:
    """``--no-downloads``, where the script cannot be kept from the network."""
    return Problem(
        code=NOT_SEALED,
        what=f"The script is to reach no network, and this laptop gives it no other one than its own "
        f"({error.strerror or error}).",
        fix="Train without --no-downloads; or allow user namespaces: `tandem doctor` says how.",
    )


def reachable(places: Sequence[str]) -> Problem:
    """``places``: ``address:port``."""
    return Problem(
        code=NOT_SEALED,
        what=f"The trainer listens at {', '.join(places)}, where others than the members of the run reach "
        "it, so it was ended before the members met.",
        fix=f"Let the script listen on 127.0.0.1 alone. {_INSTEAD}",
    )


def not_apart() -> Problem:
    return Problem(
        code=NOT_SEALED,
        what="The trainer is not in a network of its own, so it was ended before the members met.",
        fix=f"Let the script leave its network as it is. {_INSTEAD}",
    )


def relay_ended() -> Problem:
    return Problem(
        code="relay-ended",
        what="The relay between the sealed trainer and the other laptops ended by itself, so the trainer was "
        "ended.",
        fix="Train again. If it happens again, see in this laptop's system log what ended it (it may be want "
        "of memory).",
    )


def relay_broke(error: Exception) -> Problem:
    return Problem(
        code="relay-broke",
        what=f"The relay between the sealed trainer and the others could not be started: {error}.",
        fix="Train again: another port is chosen then. If it happens again, report it with the log.",
    )
