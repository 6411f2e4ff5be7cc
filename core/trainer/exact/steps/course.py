"""The course of a traced step's audits, the same on all members: when they happen, what they have shown."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from core.project.checkpoint_store import Unaudited
from core.trainer.exact.resume.fit_progress import FitProgress
from core.vocabulary.progress import Audits

WARM_UP = 64
"""Up to this step of a trace, steps 1, 2, 4 … and the last one of an epoch are audited whatever the cost."""
SHARE = 0.025
"""Share of the elapsed time for the audits after the first ones."""
_AMONG = int(1 / SHARE)
"""Steps among which a later audit falls at random: fewer than there are from one to the next, as each takes
about a step or longer."""
AT_FIRST_S = 2.0
"""Extra time beside that share: while it lasts, every small step is audited."""
TESTS_FIRST_S = 0.5
"""The same for steps of validations and ``evaluate``."""
UNAUDITED_BEFORE = "Some of the steps before the training was resumed were"
NOT_AUDITED = "not audited: the result may differ from that of one laptop."


@dataclass(slots=True)
class AuditTime:
    """Audit time and counts over all models' training, the same on all members."""

    first_s: float = AT_FIRST_S
    elapsed_s: float = 0.0
    spent_s: float = 0.0
    audited: int = 0
    steps: int = 0
    """Shared steps."""
    why: str = ""
    """Why no step of a model can be audited; the first such model's reason."""
    random: random.Random = field(default_factory=lambda: random.Random(5))

    @property
    def counts(self) -> Audits | None:
        return Audits(steps=self.steps, audited=self.audited, why=self.why) if self.steps else None

    def affords(self, cost_s: float) -> bool:
        return self.spent_s + cost_s <= self._given_s

    def affords_at_first(self, cost_s: float) -> bool:
        return self.spent_s + cost_s <= self.first_s

    def spend(self, cost_s: float, *, is_due: bool) -> None:
        """``is_due``: the audit was due whatever its cost, so that beyond the budget it delays no other."""
        spent_s = self.spent_s + cost_s
        self.spent_s = max(self.spent_s, min(spent_s, self._given_s)) if is_due else spent_s

    @property
    def _given_s(self) -> float:
        return self.first_s + SHARE * self.elapsed_s


@dataclass(slots=True)
class Course:
    """The audits of one traced step."""

    able: bool | None = None
    """Whether the step can be audited; None until known."""
    sums_alone: bool = False
    """Only the members' sums can be audited; such audits do not count as audited steps."""
    gradient_rows: int = 0
    """If not 0, only gradients can, before the step, on up to this many rows of its batch; likewise."""
    hosts: tuple[int, ...] = ()
    """Ranks of the members with enough memory for a whole batch."""
    steps: int = 0
    audited: int = 0
    confirmed: int = 0
    """The last step that an audit confirmed, counted from 1."""
    certain: int = 0
    """The last step of the unbroken run of audited and confirmed steps."""
    confirmed_at: int = 0
    certain_at: int = 0
    """The same two, counted over the whole training: between steps of this trace there may be others."""
    is_known_since: bool = False
    """Whether a finding is known to be caused by what the script set after the last confirmed step."""
    target: int = 0
    """The next step to audit, if decided."""
    cost_s: float | None = None
    """Seconds that an audit adds to its step; None until known, as the first one traces."""
    event: bool = False
    """Something happened that must be audited as soon as there is time for it."""
    at_once: bool = False
    """The next step must be audited."""
    was_set: bool = False
    """The script set a variable that the step reads, on any member."""
    place: tuple[str, int] | None = None
    """The call and epoch of the newest steps."""
    step_s: float = 0.0
    """Mean seconds of its newest steps, over the members."""
    slower: float = 0.0
    """How many times longer a whole step took than a shared one in the newest audit; 0 if unknown."""
    present: tuple[int, ...] = ()
    """Ranks of the members that did its newest steps."""
    written: list[Any] = field(default_factory=list)
    """Handles of everything the step writes."""
    sums: dict[int, Any] = field(default_factory=dict)
    """See ``audited_values.long_sums``."""
    watched: list[Any] = field(default_factory=list)
    """Handles of variables that the step only reads."""
    values: dict[int, Any] = field(default_factory=dict)
    """The watched variables' values, by handle."""
    changed: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """Handles of variables set since the last audit, with their previous values."""
    set_before: set[int] = field(default_factory=set)
    reported: set[str] = field(default_factory=set)
    """Findings reported earlier."""
    spread: dict[str, float] = field(default_factory=dict)
    """How far perturbed last bits moved each suspected value, relative to its size."""

    def ahead(self, time: AuditTime, left: int, *, epoch_ends: bool = False) -> int | None:
        """How many steps come before the next one to be audited; None if it is none of the next `left`.

        ``epoch_ends``: an epoch ends with the last of these.
        """
        if self.at_once:
            return 0
        if not self.sums_alone and self.cost_s is not None and time.affords_at_first(self.cost_s):
            return 0
        if self.target <= self.steps and self.steps < WARM_UP:
            self.target = 1
            while self.target <= self.steps:
                self.target *= 2
        elif self.target <= self.steps or (self.event and self.steps >= WARM_UP):
            if not time.affords(self.cost_s or 0.0):
                return None
            among = max(left, _AMONG)
            self.target = self.steps + 1 + (0 if self.event else time.random.randrange(among))
        ahead = self.target - self.steps - 1
        if epoch_ends and ahead >= left and self.steps < WARM_UP:
            return left - 1
        return ahead if ahead < left else None

    def members_are(self, present: tuple[int, ...]) -> None:
        """Call between steps. With other members, rows are cut elsewhere, which must be audited."""
        self.at_once |= bool(self.present) and present != self.present
        self.present = present

    def spend(self, time: AuditTime, cost_s: float) -> None:
        """Records an audit's extra time for the next step. The first audit traces, and is free."""
        if self.audited:
            is_due = self.steps < WARM_UP and not time.affords_at_first(self.cost_s or 0.0)
            time.spend(cost_s, is_due=is_due)
            self.cost_s = cost_s
        self.audited += 1
        time.audited += not (self.sums_alone or self.gradient_rows)

    def affords_trials(self, time: AuditTime, count: int) -> bool:
        """Whether there is time for `count` more computations in the next audit."""
        if self.cost_s is None:
            return False
        return time.affords_at_first(count * self.cost_s) or time.affords(count * self.cost_s)

    def begins_at(self, step: int) -> None:
        """Call before steps. ``step``: how many steps the whole training has done."""
        if not self.steps:
            self.confirmed_at = self.certain_at = step

    @property
    def cost_words(self) -> str:
        """What it costs to compute whole steps from here on, as a further sentence."""
        return f" Such a step takes {self.slower:.1f} times as long." if self.slower >= 1.2 else ""

    def found_right(self, step: int) -> None:
        """Records that an audit confirmed the next step, the training's `step`-th."""
        self.confirmed, self.confirmed_at = self.steps + 1, step
        if self.certain == self.steps and not self.gradient_rows:
            self.certain, self.certain_at = self.confirmed, step

    def may_have_missed(self, right: int) -> bool:
        """Whether the fault found may be in one of the first `right` steps, too: not all were audited."""
        return right > self.certain and not self.is_known_since


def unaudited_among(traced: Iterable[Any]) -> Unaudited:
    """How steps were shared that may be wrong."""
    unsure = [each for each in traced if each.course.steps > each.course.certain]
    if not unsure:
        return ""
    return "gathered" if all(each.sharing.gathers for each in unsure) else "shared"


def unaudited_before(progress: FitProgress | None) -> Unaudited:
    """How such steps were shared before the training was resumed, in the fit that was under way."""
    return "" if progress is None else progress.unaudited


def whole_words(why: str, *, too_late: bool, in_doubt: bool) -> str:
    """Why all laptops compute whole batches. ``too_late``: steps were shared before the training was resumed,
    and not audited. ``in_doubt``: the result is known to differ already."""
    if too_late:
        result = f"{UNAUDITED_BEFORE} {NOT_AUDITED}"
    elif in_doubt:
        result = "Several laptops are no faster than one."
    else:
        result = "The result is exact, but several laptops are no faster than one."
    return f"Every laptop computes each batch whole, since {why}. {result}"
