"""Messages that explain what a seal is, and why a trainer has none."""

from __future__ import annotations

from collections.abc import Sequence

from core.vocabulary.errors import Problem

NOT_SEALED = "not-sealed"
"""The code of every failure that would leave TensorFlow's port open."""
_INSTEAD = "Or train with model.fit or MirroredStrategy, which need no seal."


def words(*, downloads: bool) -> str:
    """The message about a seal that holds. ``downloads``: whether the script may download."""
    network = "What it downloads goes through Tandem's proxy." if downloads else "It has no network."
    return (
        "Sealed: the script is in a network of its own, and only the members of this run can reach "
        f"TensorFlow. {network}"
    )


def not_sealed(error: OSError) -> Problem:
    """The system does not give an ordinary user a separate network."""
    return Problem(
        code=NOT_SEALED,
        what=f"TensorFlow's port cannot be sealed on this laptop ({error.strerror or error}), and would "
        "be open to the whole network.",
        fix=f"`tandem doctor` shows why user namespaces cannot be used here. {_INSTEAD}",
    )


def reachable(places: Sequence[str]) -> Problem:
    """``places``: ``address:port``."""
    return Problem(
        code=NOT_SEALED,
        what=f"The trainer listens at {', '.join(places)}, where others than the run's members can reach "
        "it, so it was stopped before the members connected.",
        fix=f"Make the script listen on 127.0.0.1 only. {_INSTEAD}",
    )


def not_apart() -> Problem:
    return Problem(
        code=NOT_SEALED,
        what="The trainer is not in a network of its own, so it was stopped before the members connected.",
        fix=f"The script must not change its network. {_INSTEAD}",
    )


def relay_ended() -> Problem:
    return Problem(
        code="relay-ended",
        what="The relay between the sealed trainer and the other laptops ended unexpectedly, so the trainer "
        "was stopped.",
        fix="Train again. If it happens again, look for the cause in this laptop's system log: it may be a "
        "lack of memory.",
    )


def relay_broke(error: Exception) -> Problem:
    return Problem(
        code="relay-broke",
        what=f"The relay between the sealed trainer and the others could not be started: {error}.",
        fix="Train again: Tandem then chooses another port. If it happens again, report it with the log.",
    )
