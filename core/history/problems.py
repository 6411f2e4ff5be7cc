"""What can be wrong with the runs that were recorded."""

from __future__ import annotations

from core.vocabulary.errors import Problem


def cut_off() -> Problem:
    """A run that was under way when the node started: the node had ended without ending it."""
    return Problem(
        code="cut-off",
        what="Tandem ended while this run was under way.",
        fix="Train again. The run's folder keeps what was written until then.",
    )
