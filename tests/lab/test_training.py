"""Laptops joined by a cable train the unmodified shipped digits script."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from core.vocabulary import events as ev
from core.vocabulary.answers import RunDetails
from core.vocabulary.commands import AnswerConsent, GetRun, SetCodePolicy, StopRun
from core.vocabulary.phases import Finished, Stopped
from core.vocabulary.plan import Role
from tests.lab.agent import Agent
from tests.lab.faults import received_bytes
from tests.lab.laptops import Laptops, digits, weights
from tests.lab.network import Network

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(600)]


def test_two_train_once_the_other_user_allowed_it(laptops: Laptops, network: Network, tmp_path: Path) -> None:
    anna, ben = laptops.anna, laptops.ben
    ben.do(SetCodePolicy(device=anna.device, policy="ask"))
    before = received_bytes(network, 1)
    spec = digits(tmp_path / "digits", "--epochs", "3", others=(ben,))
    # Anna's laptop is two members, like one with two graphics cards.
    spec = replace(spec, roles={anna.device: (Role.CHIEF, Role.WORKER)})

    run = anna.train(spec)
    asked = ben.until(lambda state: state.consents, "ask its user")[0]
    assert (asked.device, asked.script, asked.arguments) == (anna.device, "digits.py", ("--epochs", "3"))
    ben.do(AnswerConsent(run=run, decision="always"))

    for agent in (anna, ben):
        assert agent.ends(run) == Finished()
        assert set(weights(agent)) == {"anna", "ben"}
        assert len(set(weights(agent).values())) == 1
        exits = [end for member in agent.run().members.values() for end in member.exits.values()]
        assert len(exits) == 3
        assert len({end.weights_sha256 for end in exits}) == 1
        summary = agent.run().summary
        assert summary is not None and (summary.strategy, summary.exchange) == ("MirroredStrategy", "tls")
        assert (summary.epochs, summary.last_logs["val_accuracy"] > 0.5) == (3, True)
    assert {task.host for task in anna.run().plan.tasks} == {"10.77.0.1", "10.77.0.2"}
    # 38,000 weights in each of 69 steps: the gradients went over the cable.
    assert received_bytes(network, 1) - before > 5_000_000
    assert (tmp_path / "digits" / "digits.keras").stat().st_size > 10_000


def test_three_train_and_the_outputs_of_a_chief_elsewhere_come_back(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben, cleo = laptops.anna, laptops.ben, laptops.cleo
    spec = digits(tmp_path / "digits", "--epochs", "2", others=(ben, cleo))

    run = anna.train(replace(spec, roles={ben.device: (Role.CHIEF,)}))

    for agent in (anna, ben, cleo):
        assert agent.ends(run) == Finished()
        assert agent.run().plan.chief.device == ben.device
        assert set(weights(agent)) == {"anna", "ben", "cleo"}
        assert len(set(weights(agent).values())) == 1
    answer = anna.ask(GetRun(run=run))
    assert isinstance(answer, RunDetails)
    assert answer.entry.summary.outputs == ("digits.keras", "trained/model.keras")
    outputs = Path(answer.entry.folder) / "outputs"
    assert (outputs / "digits.keras").stat().st_size > 10_000
    assert (outputs / "trained" / "model.keras").stat().st_size > 10_000
    assert not (tmp_path / "digits" / "digits.keras").exists()
    assert set(answer.epochs) == {agent.device for agent in (anna, ben, cleo)}


def test_stop_on_any_laptop_ends_all_at_the_same_step(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben = laptops.anna, laptops.ben
    run = anna.train(digits(tmp_path / "digits", "--epochs", "1000", others=(ben,)))
    for agent in (anna, ben):
        agent.trains(run)

    ben.do(StopRun())

    for agent in (anna, ben):
        assert agent.ends(run) == Stopped(by="ben")
        assert set(weights(agent)) == {"anna", "ben"}
        # One more step on either would have changed its weights.
        assert len(set(weights(agent).values())) == 1 and all(weights(agent).values())
        assert newest_step(agent) > 0


def newest_step(agent: Agent) -> int:
    steps = [told.event.progress.step for told in agent.told if isinstance(told.event, ev.MemberProgressed)]
    return max(steps)
