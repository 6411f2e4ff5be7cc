"""The run outlives its starter's laptop: real agents and trainers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.vocabulary import events as ev
from core.vocabulary.commands import SetCodePolicy
from core.vocabulary.state import Run, State
from tests.lab import faults
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.lab import linked, pair
from tests.lab.laptops import Laptops
from tests.lab.network import Network
from tests.lab.test_returns import (
    COUNT,
    all_train,
    ends_well,
    goes_on,
    gone,
    kept,
    newest_step,
    train,
    under_way,
    wanted,
)

__all__ = ["wanted"]

# ``core/test_two_nodes_run.py`` has the essence of it, with stand-ins for trainers.
pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.complete, pytest.mark.timeout(2400)]

LID_S = 30.0


def goes_on_alone(agent: Agent, before: str) -> Run:
    """Waits until it makes steps in a run of its own that resumes ``before``."""

    def making_steps(state: State) -> Run | None:
        run = state.run
        if run is None or run.plan.resume is None or run.plan.resume.run != before:
            return None
        assert not run.over, f"{run.phase}\n{agent.log_end()}"
        progress = run.members[agent.device].progress
        return run if run.plan.starter == agent.device and progress is not None else None

    return agent.until(making_steps, f"go on with {before} alone", 2 * TRAINED_S)


@pytest.mark.parametrize("how", ["killed", "rebooted"])
def test_without_the_starters_tandem_the_other_goes_on_and_hands_the_run_back(
    laptops: Laptops, tmp_path: Path, wanted: Callable[[Laptops], dict[str, np.ndarray]], how: str
) -> None:
    """``rebooted``: the system asks every program to end (SIGTERM)."""
    anna, ben = laptops.anna, laptops.ben
    expected = wanted(laptops)
    run = train(laptops, tmp_path / "starter", 0.05, ben)
    for agent in (anna, ben):
        agent.trains(run)
    trainers, device = anna.trainers(), anna.device
    before = newest_step(ben)

    if how == "killed":
        anna.kill()
        assert anna.waits_until_gone() < 0
    else:
        kept(anna, run)
        anna.terminate()
        assert anna.waits_until_gone() == 0
    assert gone(trainers)
    killed_s = time.monotonic()
    alone = goes_on_alone(ben, run)
    assert alone.plan.owner is not None and alone.plan.owner.device == device
    assert alone.plan.resume is not None and alone.plan.resume.moment.step >= before
    first = ben.hears(ev.MemberProgressed, lambda event: event.run == alone.plan.run)
    print(f"starter killed → the other goes on {first.at_s - killed_s:.1f} s")
    step = newest_step(ben)
    ben.until(lambda state: newest_step(ben) > step + 20 or None, "go on alone")

    anna, started_s = laptops.restart(0), time.monotonic()

    again = goes_on(anna, run, anna, ben).plan
    told = anna.hears(ev.MemberProgressed, lambda event: event.run == again.run)
    print(f"starter on again → trains {told.at_s - started_s:.1f} s")
    assert again.resume is not None and again.resume.moment.step > step + 20
    ends_well(anna, again.run, expected, anna, ben)


# The first of the two comes before the other one pairs them for good.
@pytest.mark.parametrize("paired", [False, True], ids=["never paired", "paired"])
def test_two_that_are_left_without_the_starter_go_on_together_and_hand_the_run_back(
    laptops: Laptops, tmp_path: Path, wanted: Callable[[Laptops], dict[str, np.ndarray]], paired: bool
) -> None:
    anna, ben, cleo = laptops.anna, laptops.ben, laptops.cleo
    if paired:
        linked_pair(ben, cleo)
    expected = wanted(laptops)
    run = train(laptops, tmp_path / "three", 0.05, ben, cleo)
    under_way(run, anna, ben, cleo)
    linked(ben, cleo)
    assert are_paired(ben, cleo) is are_paired(cleo, ben) is paired

    anna.kill()
    assert anna.waits_until_gone() < 0
    alone = goes_on_alone(ben, run)
    assert {member.device for member in alone.plan.members} == {ben.device, cleo.device}
    for agent in (ben, cleo):
        agent.trains(alone.plan.run)
    step = newest_step(ben)
    cleo.until(lambda state: newest_step(cleo) > step + 20 or None, "go on with ben")

    anna = laptops.restart(0)
    for other in (ben, cleo):
        linked(anna, other)
    again = goes_on(anna, run, anna, ben, cleo).plan
    assert again.resume is not None and again.resume.moment.step > step + 20
    ends_well(anna, again.run, expected, anna, ben, cleo)
    assert are_paired(ben, cleo) is paired
    assert not [told for told in cleo.told if isinstance(told.event, ev.ConsentAsked)]


def are_paired(one: Agent, other: Agent) -> bool:
    return any(device == other.device and found.paired for device, found in one.state.devices.items())


def linked_pair(one: Agent, other: Agent) -> None:
    """Pairs them unless they are, and lets each run the other's code."""
    if not are_paired(one, other):
        assert other.state.me is not None
        pair(one, other, other.state.me.addresses[0])
    for here, there in ((one, other), (other, one)):
        here.do(SetCodePolicy(device=there.device, policy="always"))


def test_a_starter_whose_lid_was_closed_is_in_its_run_again(
    laptops: Laptops,
    network: Network,
    tmp_path: Path,
    wanted: Callable[[Laptops], dict[str, np.ndarray]],
) -> None:
    anna, ben = laptops.anna, laptops.ben
    expected = wanted(laptops)
    run = train(laptops, tmp_path / "lid", 0.05, ben)
    under_way(run, anna, ben)
    with faults.lid_closed(network, 0, anna):
        closed_s = time.monotonic()
        alone = goes_on_alone(ben, run)
        time.sleep(max(0.0, closed_s + LID_S - time.monotonic()))
        step = newest_step(ben)
    assert alone.plan.owner is not None and alone.plan.owner.device == anna.device
    again = goes_on(anna, run, anna, ben).plan
    assert again.resume is not None and again.resume.moment.step >= step
    ends_well(anna, again.run, expected, anna, ben)


@COUNT
def test_the_further_of_two_halves_that_both_went_on_counts(
    laptops: Laptops,
    network: Network,
    tmp_path: Path,
    wanted: Callable[[Laptops], dict[str, np.ndarray]],
    count: int,
) -> None:
    """Anna's on one side; the others, which need not be paired, on the other."""
    them = anna, ben, *_ = laptops.first(count)
    expected = wanted(laptops)
    run = train(laptops, tmp_path / "halves", 0.05, *them[1:])
    under_way(run, *them)
    for third in them[2:]:
        linked(ben, third)
    with faults.cable_out(network, 0):
        anna.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, ben.device))
        alone = goes_on_alone(ben, run).plan.run
        anna.until(lambda state: newest_step(anna) > newest_step(ben) or None, "be ahead")
        step, other = newest_step(anna), newest_step(ben)
        ben.until(lambda state: newest_step(ben) > other + 5 or None, "go on as well")
        assert {member.device for member in ben.run().plan.members} == {each.device for each in them[1:]}
    again = all_train(anna, run, *them).plan
    assert again.resume is not None and again.resume.moment.step > step
    assert (ben.home.runs / alone / "summary.json").is_file()
    ends_well(anna, again.run, expected, *them)
