"""Two laptops find each other, pair, lose each other and forget each other. No TensorFlow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.vocabulary import events as ev
from core.vocabulary.commands import Forget, Pair
from core.vocabulary.state import State
from tests.lab.agent import Agent
from tests.lab.lab import Lab, find, is_linked, linked, pair
from tests.lab.network import NETWORK
from tests.lab.promise import Stopwatch

pytestmark = pytest.mark.lab


def not_seen(agent: Agent, other: Agent) -> Callable[[State], bool]:
    return lambda state: other.device not in state.devices or not state.devices[other.device].seen


def test_two_laptops_find_each_other_by_multicast_and_pair_over_json_lines(lab: Lab) -> None:
    anna, ben = lab.agent(0), lab.agent(1)
    assert find(anna, ben) == f"{NETWORK}.2:27600"
    assert find(ben, anna) == f"{NETWORK}.1:27600"

    code = pair(anna, ben)

    assert len(code.replace(" ", "")) == 6
    assert anna.state.devices[ben.device].paired and ben.state.devices[anna.device].paired


def test_where_multicast_is_off_they_pair_by_address_and_meet_again(lab: Lab) -> None:
    lab.network.carry_multicast(False)
    anna, ben = lab.agent(0), lab.agent(1)
    assert anna.refused(Pair(device=ben.device)).code == "not-seen"
    assert ben.state.me is not None
    (address,) = ben.state.me.addresses

    pair(anna, ben, address)

    assert not_seen(anna, ben)(anna.state) and not_seen(ben, anna)(ben.state)
    ben.end()
    gone = anna.hears(ev.LinkDown)
    assert isinstance(gone.event, ev.LinkDown) and gone.event.problem.code == "closed"
    ben = lab.agent(1)
    linked(anna, ben)
    assert not_seen(anna, ben)(anna.state) and not_seen(ben, anna)(ben.state)

    # Nothing but multicast was missing.
    ben.end()
    lab.network.carry_multicast(True)
    ben = lab.agent(1)
    find(anna, ben)


@pytest.mark.timed
def test_a_pulled_cable_is_reported_after_ten_seconds_and_they_meet_again_once_it_is_back(lab: Lab) -> None:
    anna, ben = lab.agent(0), lab.agent(1)
    find(anna, ben)
    pair(anna, ben)
    since = {agent.name: len(agent.told) for agent in (anna, ben)}
    watch = Stopwatch()

    lab.network.cable(1, plugged=False)

    for agent, other in ((anna, ben), (ben, anna)):
        told = agent.hears(ev.LinkDown, since=since[agent.name])
        assert isinstance(told.event, ev.LinkDown)
        assert told.event.problem.code == "link-silent"
        assert other.name in told.event.problem.what and told.event.problem.fix
        # The last sign of life may be one heartbeat old, and silence is checked once per heartbeat.
        assert told.at_s - watch.began_s >= 8.0
        assert watch.kept(told.at_s, 12.5)
    lab.network.cable(1, plugged=True)
    linked(anna, ben)


def test_a_forgotten_laptop_is_reported_and_has_to_pair_again(lab: Lab) -> None:
    anna, ben = lab.agent(0), lab.agent(1)
    find(anna, ben)
    pair(anna, ben)
    since = len(ben.told)

    anna.do(Forget(device=ben.device))

    told = ben.hears(ev.LinkDown, since=since)
    assert isinstance(told.event, ev.LinkDown)
    assert told.event.problem.code == "forgotten" and "air the two laptops again" in told.event.problem.fix
    assert not anna.state.devices[ben.device].paired
    refused = ben.hears(ev.LinkDown, lambda event: event.problem.code == "link-refused", since=since)
    assert isinstance(refused.event, ev.LinkDown) and "forget" in refused.event.problem.fix
    assert not is_linked(ben.state, anna.device)
    # One side alone does not make a pair: both persons compare again.
    ben.do(Forget(device=anna.device))
    pair(ben, anna)
