"""Steps kept for a rerun: which, starting where, and what happens to the values."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from core.trainer.exact.steps.course import WARM_UP, Course
from core.vocabulary.plan import Moment

pytestmark = pytest.mark.cluster


class Kept:
    """A step that adds each batch to a variable, and its kept steps."""

    def __init__(self, tf: Any, most_bytes: int = 1 << 20, **course: Any) -> None:
        from core.trainer.exact.steps.rerun import Rerun

        self.total = tf.Variable(0.0)
        self.traced: Any = SimpleNamespace(course=Course(able=True, written=[self.total.handle], **course))
        self.rerun = Rerun(most_bytes)
        self._tf = tf

    def unaudited(self, *numbers: float) -> None:
        self.rerun.begin(self.traced)
        self.rerun.add([self._tf.constant([number]) for number in numbers])
        self._done(*numbers)

    def audited(self, number: float) -> None:
        self.traced.course.found_right(self.traced.course.steps + 1)
        self.rerun.passed(self.traced, self._tf.constant([number]))
        self._done(number)

    def take_back(self) -> list[float]:
        return [float(batch[0]) for batch in self.rerun.take_back(self.traced)]

    def _done(self, *numbers: float) -> None:
        for number in numbers:
            self.total.assign_add(number)
            self.traced.course.steps += 1


def test_steps_since_the_last_certain_one_are_undone_past_audits_between(tf: Any) -> None:
    kept = Kept(tf)
    kept.audited(1.0)
    kept.audited(2.0)
    kept.unaudited(3.0)
    kept.audited(4.0)
    kept.unaudited(5.0, 6.0)
    assert kept.take_back() == [3.0, 4.0, 5.0, 6.0]
    assert float(kept.total) == 3.0


def test_no_steps_are_kept_if_all_were_audited(tf: Any) -> None:
    kept = Kept(tf)
    for number in range(5):
        kept.audited(float(number))
    assert not kept.rerun.keeps
    assert kept.take_back() == []


def test_after_the_first_steps_only_slow_ones_are_kept_since_the_last_audit(tf: Any) -> None:
    late = {"steps": WARM_UP, "confirmed": WARM_UP, "certain": 2}
    fast, slow = Kept(tf, **late, step_s=0.001), Kept(tf, **late, step_s=0.1)
    for kept in (fast, slow):
        kept.unaudited(1.0, 2.0)
        kept.audited(3.0)
        kept.unaudited(4.0)
    assert not fast.rerun.keeps
    assert slow.take_back() == [4.0]
    assert float(slow.total) == 6.0


def test_what_the_script_saw_is_not_undone(tf: Any) -> None:
    kept = Kept(tf)
    kept.audited(1.0)
    kept.unaudited(2.0)
    kept.rerun.drop()
    kept.unaudited(3.0)
    assert kept.take_back() == [], "the second step is not known to be right, and is gone"
    assert float(kept.total) == 6.0


def test_no_more_is_kept_than_its_bytes_allow(tf: Any) -> None:
    kept = Kept(tf, most_bytes=8)
    kept.audited(1.0)
    kept.unaudited(2.0, 3.0, 4.0)
    assert kept.take_back() == []


@pytest.mark.parametrize(
    ("step_s", "steps", "each_batch", "expected"),
    [
        (0.01, 1000, False, 64_000 + 5),  # the first steps of a trace
        (0.1, 1000, False, 1_000_000 + 5),  # slow steps: a whole epoch
        (0.1, None, False, (1 << 28) + 5),
        (0.1, 1_000_000, False, (1 << 28) + 5),
        (0.1, 1000, True, 0),
    ],
)
def test_the_memory_for_kept_steps_is_known_before_the_first(
    tf: Any, step_s: float, steps: int | None, each_batch: bool, expected: int
) -> None:
    from core.trainer.exact.steps.rerun import kept_bytes

    here: Any = SimpleNamespace(fit=SimpleNamespace(each_batch=(each_batch, False), steps=steps))
    batch = tf.zeros([50, 4]), tf.zeros([50])
    assert kept_bytes(here, batch, 5, step_s) == expected


# --- going back


def engine(own: Sequence[int], *others: Sequence[int]) -> tuple[Any, list[Moment]]:
    """A member with checkpoints of these steps, among others, and the step to which it went back."""
    went: list[Moment] = []

    def words(steps: Sequence[int], count: int) -> list[int]:
        found = [number for step in steps for number in (step, 0, 0, step)]
        return [*found, *[-1] * (count - len(found))]

    def until(step: int) -> list[Moment]:
        return [Moment(step=each, batch=each) for each in own if each <= step]

    def told(given: Sequence[int], what: str) -> list[list[int]]:
        return [list(given), *(words(each, len(given)) for each in others)]

    keeper = SimpleNamespace(moments_until=until, go_back=went.append)
    return SimpleNamespace(keeper=keeper, collectives=SimpleNamespace(gather_ints=told)), went


def test_a_training_ends_to_be_resumed_from_the_newest_that_all_have() -> None:
    from core.trainer.exact.interface import WentBack
    from core.trainer.exact.steps.rerun import go_back

    here, went = engine([90, 60, 40, 20], [80, 40, 20], [60, 40])
    with pytest.raises(WentBack) as error:
        go_back(here, Course(slower=1.94), 70, 1_075)
    assert [moment.step for moment in went] == [40]
    assert error.value.why.what == (
        "The training goes back to step 40, since audits found nothing wrong until then, and repeats 1,035 "
        "steps. From there on every laptop computes each batch whole. Such a step takes 1.9 times as long."
    )


@pytest.mark.parametrize(
    ("own", "other", "sure"), [([], [], 70), ([60], [50], 70), ([60], [60], 50), ([60], [60], None)]
)
def test_without_such_a_checkpoint_it_goes_on(own: list[int], other: list[int], sure: int | None) -> None:
    from core.trainer.exact.steps.rerun import go_back

    here, went = engine(own, other)
    go_back(here, Course(), sure, 80)
    assert not went
