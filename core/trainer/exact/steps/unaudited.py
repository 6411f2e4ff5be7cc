"""Steps of a training that were not audited, and what is said of them once a fault is found."""

from __future__ import annotations

from collections.abc import Iterable

from core.project.checkpoint_store import Unaudited
from core.trainer.exact.resume.fit_progress import FitProgress
from core.trainer.exact.steps.result import Traced

BEFORE = "Some of the steps before the training was resumed were"
NOT_SURE = "not audited: the result may differ from that of one laptop."


def among(traced: Iterable[Traced]) -> Unaudited:
    """How steps were shared that may be wrong."""
    unsure = [each for each in traced if each.course.steps > each.course.certain]
    if not unsure:
        return ""
    return "gathered" if all(each.sharing.gathers for each in unsure) else "shared"


def before(progress: FitProgress | None) -> Unaudited:
    """How such steps were shared before the training was resumed, in the fit that was under way."""
    return "" if progress is None else progress.unaudited


def whole_words(why: str, *, too_late: bool, in_doubt: bool) -> str:
    """Why all laptops compute whole batches. ``too_late``: steps were shared before the training was resumed,
    and not audited. ``in_doubt``: the result is known to differ already."""
    if too_late:
        result = f"{BEFORE} {NOT_SURE}"
    elif in_doubt:
        result = "Several laptops are no faster than one."
    else:
        result = "The result is exact, but several laptops are no faster than one."
    return f"Every laptop computes each batch whole, since {why}. {result}"
