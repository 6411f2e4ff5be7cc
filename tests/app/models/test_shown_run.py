"""What a run's page shows of it, live and past."""

from dataclasses import replace as but

import pytest
from msgspec.structs import replace

from app.models.shown_run import ShownRun
from core.vocabulary.answers import RunDetails
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.phases import Failed, Finished, Phase, Stopped
from core.vocabulary.progress import Diverged, Summary
from core.vocabulary.state import State, apply
from tests.app import world
from tests.core.fake_node import started

BROKE = Problem(code="script-error", what="It broke.", fix="Mend it.")


def state_after(*events: Event) -> State:
    state = State()
    for event in (started(), *world.linked(), *events):
        state = apply(state, event)
    return state


def record_of(last: Phase, summary: Summary = world.SUMMARY) -> RunDetails:
    entry = replace(world.entry(last=last), run=world.RUN, summary=summary)
    return replace(world.details(entry, steps=1), checkpoint=world.MOMENT)


@pytest.mark.parametrize("last", [Finished(), Stopped(by="here"), Failed(problem=BROKE)])
def test_a_run_that_is_over_is_shown_as_its_record_is(last: Phase) -> None:
    state = state_after(*world.begun(), *world.finished(last=last))
    record = record_of(last)
    assert state.run is not None
    assert ShownRun.live(state.run, state, record) == ShownRun.past(record)
    unread = ShownRun.live(state.run, state)
    assert unread == but(ShownRun.past(record), entry=None, checkpoint=None)


def test_only_what_ended_early_goes_on_from_the_newest_checkpoint() -> None:
    stopped = ShownRun.past(record_of(Stopped(by="here")))
    assert stopped.goes_on(state_after()) == "Resumes at epoch 4, step 120."
    newer = state_after(world.found(moment=replace(world.MOMENT, step=1000, epoch=4, batch=0)))
    assert stopped.goes_on(newer).endswith(", with the checkpoint on Bob's laptop.")
    assert ShownRun.past(record_of(Finished())).goes_on(newer) == ""


@pytest.mark.parametrize(
    ("last", "summary", "good", "differs"),
    [
        (Finished(), world.SUMMARY, True, False),
        (Finished(), replace(world.SUMMARY, told=("x",)), False, True),
        (Finished(), replace(world.SUMMARY, diverged=Diverged(value="NaN", epoch=1, step=30)), False, False),
        (Stopped(), replace(world.SUMMARY, told=("x",)), False, False),
    ],
    ids=["as one machine's", "differs", "diverged", "stopped"],
)
def test_a_result_is_good_if_nobody_need_doubt_it(
    last: Phase, summary: Summary, good: bool, differs: bool
) -> None:
    shown = ShownRun.past(record_of(last, summary))
    assert (shown.good, shown.differs) == (good, differs)
