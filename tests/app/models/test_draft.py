"""From a user's clicks to the spec of a run."""

from dataclasses import replace

import pytest
from msgspec.structs import asdict
from msgspec.structs import replace as replace_spec

from app.models.draft import RunDraft, as_then, like_trial, spec_of, taking_part, why_not
from app.models.role_changes import roles_of, swapped, with_roles
from core.vocabulary import events as ev
from core.vocabulary.access import Access
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.options import RunOptions
from core.vocabulary.phases import Finished
from core.vocabulary.plan import Role, RunSpec
from core.vocabulary.state import State, apply
from core.vocabulary.sweep import Trial
from tests.app import world
from tests.core.fake_node import ME, OTHER, started
from tests.core.samples import unlike_default, unsaid

CHIEF, WORKER, NONE = (Role.CHIEF,), (Role.WORKER,), (Role.NONE,)


def state_of(*events: ev.Event) -> State:
    state = State()
    for event in (started(), *events):
        state = apply(state, event)
    return state


TWO = state_of(*world.linked())
DRAFT = RunDraft(script="/a/b.py")


def spec(draft: RunDraft, state: State = TWO) -> RunSpec:
    made = spec_of(draft, state)
    assert isinstance(made, RunSpec)
    return made


def test_everybody_who_is_here_takes_part() -> None:
    assert taking_part(DRAFT, TWO) == (ME, OTHER)
    assert spec(DRAFT).devices == (OTHER,)
    assert not spec(DRAFT).solo


def test_who_is_not_connected_does_not() -> None:
    state = state_of(*world.linked(), world.lost())
    assert why_not(state.devices[OTHER]) == "not connected"
    assert spec(DRAFT, state).solo


def test_who_has_other_versions_or_a_run_does_not() -> None:
    problem = Problem(code="versions-differ", what="Keras differs.")
    assert why_not(state_of(*world.linked(problem=problem)).devices[OTHER]) == "no run possible"
    busy = state_of(*world.linked(), ev.BusyChanged(device=OTHER, busy=True))
    assert why_not(busy.devices[OTHER]) == "is busy with another run"


def test_arguments_are_words_as_a_shell_takes_them() -> None:
    assert spec(replace(DRAFT, arguments='--name "two words" -x')).arguments == ("--name", "two words", "-x")
    refused = spec_of(replace(DRAFT, arguments='--name "two'), TWO)
    assert isinstance(refused, Problem)
    assert "quotation mark" in refused.what and refused.fix


def test_without_this_laptop_the_other_works_alone() -> None:
    made = spec(with_roles(DRAFT, world.plan(), ME, NONE))
    assert made.devices == (OTHER,)
    assert made.roles == {ME: NONE}


def test_without_anybody_there_is_no_run() -> None:
    draft = replace(DRAFT, left_out=frozenset({ME, OTHER}))
    assert isinstance(spec_of(draft, TWO), Problem)


def test_a_new_chief_takes_the_place_of_the_old_one() -> None:
    draft = with_roles(DRAFT, world.plan(), OTHER, CHIEF)
    assert spec(draft).roles == {OTHER: CHIEF, ME: WORKER}


def test_while_the_chosen_chief_is_away_the_others_train_and_it_is_chief_again_when_back() -> None:
    draft = with_roles(DRAFT, world.plan(), OTHER, CHIEF)
    away = spec(draft, state_of(*world.linked(), world.lost()))
    assert away.solo
    assert away.roles == {}
    assert spec(draft).roles == {OTHER: CHIEF, ME: WORKER}


def test_a_chief_that_becomes_worker_hands_over() -> None:
    draft = with_roles(DRAFT, world.plan(), ME, WORKER)
    assert spec(draft).roles == {ME: WORKER, OTHER: CHIEF}


def test_swapping_twice_is_nothing() -> None:
    once = swapped(DRAFT, world.plan(), ME, OTHER)
    assert once.roles == {ME: WORKER, OTHER: CHIEF}
    assert swapped(once, world.plan(), OTHER, ME).roles == {ME: CHIEF, OTHER: WORKER}


def test_swapping_with_one_left_out_brings_it_in() -> None:
    alone = replace(DRAFT, left_out=frozenset({OTHER}))
    draft = swapped(alone, world.plan(members=((ME, "here", 1),)), ME, OTHER)
    assert draft.left_out == {ME}
    assert draft.roles == {OTHER: CHIEF}


def test_a_run_alone_asks_for_no_shares_and_those_of_both_come_back_with_the_other() -> None:
    draft = replace(DRAFT, shares={ME: 75, OTHER: 25})
    busy = state_of(*world.linked(), ev.BusyChanged(device=OTHER, busy=True))
    assert (spec(draft, busy).solo, spec(draft, busy).shares) == (True, {})
    assert spec(draft).shares == {ME: 75, OTHER: 25}


def test_somebody_who_joins_without_a_share_makes_all_shares_proposed_again() -> None:
    draft = replace(DRAFT, shares={ME: 1}, left_out=frozenset({OTHER}))
    assert with_roles(draft, None, OTHER, WORKER).shares == {}


def test_shares_of_some_but_not_all_are_not_asked_for() -> None:
    assert spec(replace(DRAFT, shares={ME: 3, OTHER: 1})).shares == {ME: 3, OTHER: 1}
    assert spec(replace(DRAFT, shares={ME: 3})).shares == {}


def test_roles_are_those_of_the_plan_until_fixed() -> None:
    assert roles_of(DRAFT, world.plan(), OTHER) == WORKER
    assert roles_of(DRAFT, None, OTHER) == ()
    assert roles_of(replace(DRAFT, left_out=frozenset({OTHER})), world.plan(), OTHER) == NONE


# --- once more ---------------------------------------------------------------------------------------------

THEN = RunSpec(
    **asdict(unlike_default(RunOptions)),
    script="/a/b.py",
    arguments=("--name", "two words"),
    devices=(OTHER,),
    roles={OTHER: CHIEF, ME: WORKER},
    shares={ME: 1, OTHER: 3},
    strategy="managed",
    seed=7,
    opens={OTHER: (Access(path="~/My pictures"), Access(path="/out", write=True))},
    data={"photos": "/data/my photos"},
)
CLEO = DeviceId("c" * 64)


def test_a_run_is_asked_for_once_more_as_it_was() -> None:
    others = {"solo", "shares_total", "resume", "exchange"}
    assert unsaid(THEN) == others, "a field of RunSpec that this test does not try"
    assert spec(as_then(world.entry(source="/a/b.py", spec=THEN), TWO)) == THEN


def test_the_best_of_several_trials_is_trained_with_all_that_its_sweep_had() -> None:
    trial = Trial(number=2, arguments=("--lr", "0.1"), seed=9)
    made = spec(like_trial(THEN, trial, TWO))
    fresh = {"arguments": trial.arguments, "seed": 9, "roles": {}, "shares": {}}
    assert made == replace_spec(THEN, **fresh)


@pytest.mark.parametrize(
    ("given", "longer"),
    [
        ("--lr 0.1 --epochs 8", "--lr 0.1 --epochs 24"),
        ("--epochs=8", "--epochs=24"),
        ("--num_epochs 8 --lr 0.1", "--num_epochs 24 --lr 0.1"),
        ("--epochs many", "--epochs many"),
        ("--lr 0.1 --epochs", "--lr 0.1 --epochs"),
        ("--lr 8", "--lr 8"),
    ],
)
def test_the_best_trial_is_trained_longer_where_its_arguments_have_the_epochs(
    given: str, longer: str
) -> None:
    trial = Trial(number=2, arguments=tuple(given.split()), seed=9)
    assert like_trial(THEN, trial, TWO).arguments == longer


def test_a_part_of_the_whole_that_a_terminal_fixed_stays_fixed() -> None:
    part = replace_spec(THEN, shares={OTHER: 25}, shares_total=100)
    assert spec(as_then(world.entry(source="/a/b.py", spec=part), TWO)) == replace_spec(
        THEN, shares={ME: 75, OTHER: 25}
    )


def test_a_run_of_one_laptop_stays_one_of_one_though_another_is_here_now() -> None:
    alone = RunSpec(script="/a/b.py", solo=True, seed=7)
    entry = world.entry(source="/a/b.py", devices=("here",), device_ids=(ME,), spec=alone)
    assert spec(as_then(entry, TWO)) == alone


def test_a_run_that_left_this_laptop_out_leaves_it_out_again() -> None:
    made = spec(with_roles(DRAFT, world.plan(), ME, NONE))
    entry = world.entry(source="/a/b.py", devices=("Bob's laptop",), device_ids=(OTHER,), spec=made)
    assert spec(as_then(entry, TWO)) == made


def test_who_paired_since_takes_no_part_in_the_run_of_then() -> None:
    state = state_of(*world.linked(), *world.linked("cleo", CLEO))
    assert spec(as_then(world.entry(source="/a/b.py", spec=THEN), state), state) == THEN


def test_a_laptop_of_then_that_is_gone_takes_its_role_and_share_with_it() -> None:
    then = replace_spec(THEN, devices=(OTHER, CLEO), shares={ME: 1, OTHER: 3, CLEO: 2})
    entry = world.entry(
        source="/a/b.py", devices=("Bob's", "here", "cleo"), device_ids=(OTHER, ME, CLEO), spec=then
    )
    draft = as_then(entry, TWO)
    assert draft.then == {OTHER: "Bob's", ME: "here", CLEO: "cleo"}
    assert spec(draft) == THEN


def test_a_record_of_an_earlier_tandem_gives_script_and_arguments() -> None:
    entry = RunEntry(run=world.RUN, started_s=1.0, script="b.py", source="/a/b.py", phase=Finished())
    assert as_then(entry, TWO) == RunDraft(script="/a/b.py")
