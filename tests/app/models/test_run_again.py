import pytest
from msgspec.structs import replace

from app.models.run_again import spec_of, with_other_ways
from core.run.abilities import why_not
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import RunSpec
from core.vocabulary.state import Device, State
from tests.app.cli.scripted_node import ME, OTHER, RUN, THIRD, ScriptedNode

RESUMED = RunSpec(script="/a/b.py", devices=(OTHER, THIRD), resume=RUN)
REFUSED = Problem(code="consent-refused", what="Its user did not allow it.", fix="Talk to them.")
RAN = RunEntry(
    run=RUN,
    started_s=1.0,
    script="b.py",
    devices=("here", "Bob's", "cleo"),
    device_ids=(ME, OTHER, THIRD),
    phase=Stopped(),
)


def state(*, cleo: bool = True, paired: bool = True, linked: bool = True, busy: bool = False) -> State:
    """Paired with both others; the last three are about Bob's laptop."""
    bob = Device(device=OTHER, name="Bob's", paired=paired, linked=linked, busy=busy)
    third = Device(device=THIRD, name="cleo", paired=True, linked=cleo)
    return replace(ScriptedNode().state, devices={OTHER: bob, THIRD: third})


@pytest.mark.parametrize("of_bob", [{"linked": False}, {"busy": True}, {"paired": False}])
@pytest.mark.parametrize("cleo", [True, False])
def test_who_prevents_resuming_is_named_with_the_ways_to_go_on_without_it(
    of_bob: dict[str, bool], cleo: bool
) -> None:
    now = state(cleo=cleo, **of_bob)
    why = why_not(now.devices[OTHER])
    assert why is not None
    told = with_other_ways(why.problem, RESUMED, now)
    assert "Bob's" in told.what and told.fix.startswith(why.fix)
    others = "cleo" if cleo else "NAME,…"
    command = f"tandem resume {RUN} --with {others}"
    assert told.fix.endswith(f"To resume without it: {command}, or --solo for this laptop alone.")
    in_window = with_other_ways(why.problem, RESUMED, now, "Go on alone")
    assert in_window.fix.endswith(f"press “Go on alone”, or use a terminal: {command}")


def test_a_laptop_whose_user_refuses_is_not_proposed_again() -> None:
    assert f"tandem resume {RUN} --with NAME,…, or --solo" in with_other_ways(REFUSED, RESUMED, state()).fix


def test_a_name_is_quoted_for_the_shell() -> None:
    now = state(cleo=False)
    why = why_not(now.devices[THIRD])
    assert why is not None
    assert """--with 'Bob'"'"'s', or --solo""" in with_other_ways(why.problem, RESUMED, now).fix


def test_what_no_other_laptop_changes_is_told_as_it_is() -> None:
    changed = Problem(code="script-changed", what="It is not as it was.", fix="Undo the change.")
    assert with_other_ways(changed, RESUMED, state(linked=False)) == changed
    assert with_other_ways(REFUSED, replace(RESUMED, resume=None), state()) == REFUSED


def test_a_laptop_that_is_no_longer_paired_is_told_with_the_others_that_are() -> None:
    with pytest.raises(TandemError, match="Bob's took part then") as refused:
        spec_of(RAN, state(paired=False), resumes=True)
    ways = f"tandem resume {RUN} --with cleo, or --solo for this laptop alone."
    assert refused.value.fix == f"Pair it again. To resume without it: {ways}"
    assert spec_of(RAN, state(linked=False), resumes=True).devices == (OTHER, THIRD)
