"""A loss during training is reported on every other laptop in time, and nothing of it keeps running. The
others continue without it (for their ends see ``test_leaving``), or end if they cannot."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from core.vocabulary import events as ev
from core.vocabulary.commands import StopRun
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.options import AWAY_S
from core.vocabulary.phases import Failed, Stopped, ended
from tests.lab.agent import TRAINED_S, Agent, Told
from tests.lab.faults import cable_out
from tests.lab.lab import linked
from tests.lab.laptops import Laptops, digits, weights
from tests.lab.network import Network
from tests.lab.promise import Stopwatch

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(600)]
PROMISE_S = 3.0


def training(laptops: Laptops, folder: Path, *others: Agent) -> RunId:
    """A long run in which everybody makes steps."""
    spec = digits(folder, "--epochs", "10000", others=others)
    run = laptops.anna.train(spec)
    for agent in (laptops.anna, *others):
        agent.trains(run)
    return run


def end_of(agent: Agent, run: RunId) -> Told:
    return agent.hears(
        ev.RunPhaseChanged, lambda event: event.run == run and ended(event.phase), limit_s=TRAINED_S
    )


def leaves(agent: Agent, run: RunId, device: DeviceId) -> Told:
    return agent.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, device))


def goes_on(agent: Agent, run: RunId, since: int) -> None:
    """Its own trainer makes a step that began after the ``since``-th event."""
    for _ in range(2):  # the first may have ended before, and been reported late
        told = agent.hears(
            ev.MemberProgressed,
            lambda event: (event.run, event.device) == (run, agent.device),
            since=since,
            limit_s=TRAINED_S,
        )
        since = agent.told.index(told) + 1


def misses(agent: Agent, run: RunId, other: Agent) -> Told:
    """Waits for the report that this run waits for the silent other one."""

    def is_away(event: ev.WaitingChanged) -> bool:
        causes = {(wait.device, wait.cause) for wait in event.waits}
        return event.run == run and (other.device, "away") in causes

    return agent.hears(ev.WaitingChanged, is_away)


def gone(processes: list[psutil.Process]) -> bool:
    return psutil.wait_procs(processes, timeout=60)[1] == []


@pytest.mark.timed
def test_a_killed_node_is_told_by_everyone_within_three_seconds(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben, cleo = laptops.anna, laptops.ben, laptops.cleo
    run = training(laptops, tmp_path / "digits", ben, cleo)
    trainers = {agent.name: agent.trainers() for agent in (anna, ben, cleo)}
    assert all(trainers.values())
    device = cleo.device

    watch = Stopwatch()
    cleo.kill()

    for agent in (anna, ben):
        told = leaves(agent, run, device)
        assert watch.kept(told.at_s, PROMISE_S), told.at_s - watch.began_s
    assert cleo.waits_until_gone() < 0
    # Its own trainer ended with it, although nobody was left to end it.
    assert gone(trainers.pop("cleo"))
    for agent in (anna, ben):
        goes_on(agent, run, len(agent.told))
    ben.do(StopRun())
    for agent in (anna, ben):
        assert agent.ends(run) == Stopped(by="ben")
    assert all(gone(processes) for processes in trainers.values())
    cleo = laptops.restart(2)
    linked(anna, cleo)


@pytest.mark.timed
def test_a_killed_starter_is_told_by_everyone_within_three_seconds(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben = laptops.anna, laptops.ben
    run = training(laptops, tmp_path / "digits", ben)
    trainers = [*anna.trainers(), *ben.trainers()]

    device = anna.device

    watch = Stopwatch()
    anna.kill()

    told = ben.hears(
        ev.MemberPhaseChanged,
        lambda event: (event.run, event.device, event.phase) == (run, device, "ended") and event.words,
    )
    assert watch.kept(told.at_s, PROMISE_S), told.at_s - watch.began_s
    told = end_of(ben, run)
    assert told.event == ev.RunPhaseChanged(run=run, phase=Stopped(by="ben", goes_on=True))
    assert gone(trainers)
    ben.end()
    shutil.rmtree(ben.home.runs)  # it stands in for anna, who would go on from what it has kept
    laptops.restart(1)
    laptops.restart(0)


@pytest.mark.timed
def test_a_killed_trainer_is_told_by_everyone_within_three_seconds(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben = laptops.anna, laptops.ben
    run = training(laptops, tmp_path / "digits", ben)
    (trainer,) = ben.trainers()

    watch = Stopwatch()
    trainer.kill()

    for agent in (anna, ben):
        told = leaves(agent, run, ben.device)
        assert watch.kept(told.at_s, PROMISE_S), told.at_s - watch.began_s
        why = agent.run().members[ben.device].left
        assert why is not None and "The trainer was killed from outside" in why.what
    assert gone([trainer])
    goes_on(anna, run, len(anna.told))
    anna.do(StopRun())
    for agent in (anna, ben):
        assert agent.ends(run) == Stopped(by="anna")
        assert agent.trainers() == []
    # The nodes keep running: the same two train again.
    again = anna.train(digits(tmp_path / "again", "--epochs", "1", others=(ben,)))
    for agent in (anna, ben):
        assert not isinstance(agent.ends(again), Failed)
        assert len(set(weights(agent).values())) == 1


@pytest.mark.complete
def test_a_pulled_cable_is_waited_for_as_long_as_was_asked_and_then_each_of_its_ends_does_without(
    laptops: Laptops, network: Network, tmp_path: Path
) -> None:
    anna, ben = laptops.anna, laptops.ben
    spec = digits(tmp_path / "digits", "--epochs", "10000", others=(ben,))
    run = anna.train(replace(spec, away_s=20.0, go_on_s=20.0))
    for agent in (anna, ben):
        agent.trains(run)
    trainers = [*anna.trainers(), *ben.trainers()]

    with cable_out(network, 1):
        began_s = time.monotonic()
        told = misses(anna, run, ben)
        assert leaves(anna, run, ben.device).at_s - told.at_s >= 15.0
        left = anna.run().members[ben.device].left
        assert left is not None and left.what.startswith("ben was silent for 30 s")
        goes_on(anna, run, len(anna.told))
        told = misses(ben, run, anna)
        end = end_of(ben, run)
        assert end.at_s - told.at_s >= 15.0
        assert end.event == ev.RunPhaseChanged(run=run, phase=Stopped(by="ben", goes_on=True))
        assert time.monotonic() - began_s >= 20.0
        anna.do(StopRun())
        assert anna.ends(run) == Stopped(by="anna")
        assert gone(trainers)
        ben.until(lambda state: state.run and state.run.plan.owner, "stand in for anna")
    linked(anna, ben)
    ben.until(lambda state: state.run and state.run.over, "end, since anna's user had stopped the run")


def test_stop_is_taken_at_once_while_a_laptop_is_away(
    laptops: Laptops, network: Network, tmp_path: Path
) -> None:
    anna, ben = laptops.anna, laptops.ben
    spec = digits(tmp_path / "digits", "--epochs", "10000", others=(ben,))
    run = anna.train(replace(spec, go_on_s=AWAY_S))
    for agent in (anna, ben):
        agent.trains(run)
    (trainer,) = anna.trainers()

    with cable_out(network, 1):
        misses(anna, run, ben)
        anna.do(StopRun())
        assert anna.ends(run, 60.0) == Stopped(by="anna")
        assert gone([trainer])
    assert ended(ben.ends(run))
    linked(anna, ben)
