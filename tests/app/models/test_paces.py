import pytest
from msgspec.structs import replace

from app.models.paces import LEAST, MOST, Pace, Paces, left_words
from core.vocabulary import events as ev
from core.vocabulary.ids import RunId
from core.vocabulary.state import Run, State, apply
from tests.app import world
from tests.core.fake_node import ME, OTHER


def after(*events: ev.Event) -> Run:
    state = State()
    for event in (*world.begun(), *events):
        state = apply(state, event)
    assert state.run is not None
    return state.run


def chief_at(step: int, **changes: object) -> Run:
    return after(world.progressed(ME, replace(world.progress(step), **changes)))


def test_the_newest_reports_of_the_chief_are_kept() -> None:
    paces = Paces()
    for step in range(MOST + 5):
        paces.hear(chief_at(step, step_s=step + 1.0, steps_s=0.5))
    assert list(paces.recent) == [Pace(step + 1.0, 2.0) for step in range(5, MOST + 5)]
    paces.hear(chief_at(MOST + 4, step_s=MOST + 5.0, steps_s=0.5))
    paces.hear(after(world.progressed(OTHER, world.progress(99))))
    paces.hear(chief_at(99, step_s=None))
    assert len(paces.recent) == MOST and paces.recent[-1].step_s == MOST + 5.0, "none of these is new"
    paces.hear(chief_at(100, steps_s=None))
    assert paces.recent[-1] == Pace(0.1, None)


def test_another_fit_and_another_run_begin_anew() -> None:
    paces = Paces()
    for step in range(3):
        paces.hear(chief_at(step))
    paces.hear(chief_at(0, fit=1))
    assert len(paces.recent) == 1
    run = chief_at(1, fit=1)
    paces.hear(replace(run, plan=replace(run.plan, run=RunId("another"))))
    assert len(paces.recent) == 1


def test_reports_that_come_too_soon_are_passed_over() -> None:
    now_s = 0.0
    paces = Paces(0.5, lambda: now_s)
    for step in range(21):
        now_s = 0.1 * step
        paces.hear(chief_at(step, step_s=step + 1.0))
    assert [pace.step_s for pace in paces.recent] == [1.0, 6.0, 11.0, 16.0, 21.0]
    paces.hear(chief_at(0, fit=1))
    assert len(paces.recent) == 1, "the first of another fit is not"


@pytest.mark.parametrize(
    ("every_s", "words"),
    [
        ([0.1] * (LEAST - 1), ""),
        ([0.1] * LEAST, "0:14"),
        ([0.1, 0.2] * 6, "0:14–0:28"),
        ([0.1] * 19 + [9.0], "0:14"),
        ([5.0, 10.0] * 6, "12–23 min"),
        ([60.0, 90.0] * 6, "2.3–3.5 h"),
        ([float("nan")] * 9, ""),
        ([1e9] * 9, ""),
        ([None] * 9, ""),
    ],
)
def test_the_time_left_is_as_wide_as_the_speed_of_late(every_s: list[float | None], words: str) -> None:
    assert left_words(world.progress(45), [Pace(0.1, each) for each in every_s]) == words


def test_without_an_end_there_is_no_time_left() -> None:
    assert left_words(world.progress(45, steps=None), [Pace(0.1, 0.1)] * 9) == ""
