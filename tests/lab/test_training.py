"""Laptops joined by a cable train the unmodified shipped digits script."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.vocabulary.answers import RunDetails
from core.vocabulary.commands import AnswerConsent, GetRun, SetCodePolicy
from core.vocabulary.phases import Finished
from core.vocabulary.plan import Role
from tests.lab.agent import LIMIT_S
from tests.lab.faults import received_bytes
from tests.lab.laptops import Laptops, digits, weights
from tests.lab.network import Network

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(600)]


def test_three_train_once_a_user_allowed_it_and_the_outputs_of_a_chief_elsewhere_come_back(
    laptops: Laptops, network: Network, tmp_path: Path
) -> None:
    anna, ben, cleo = everybody = laptops.anna, laptops.ben, laptops.cleo
    ben.do(SetCodePolicy(device=anna.device, policy="ask"))
    before = received_bytes(network, 1)
    spec = digits(tmp_path / "digits", "--epochs", "3", others=(ben, cleo))
    # Anna's laptop is two members, like one with two graphics cards.
    spec = replace(spec, roles={ben.device: (Role.CHIEF,), anna.device: (Role.WORKER, Role.WORKER)})

    run = anna.train(spec)
    asked = ben.until(lambda state: state.consents, "ask its user")[0]
    assert (asked.device, asked.script, asked.arguments) == (anna.device, "digits.py", ("--epochs", "3"))
    ben.do(AnswerConsent(run=run, decision="always"))

    for agent in everybody:
        assert agent.ends(run) == Finished()
        assert agent.run().plan.chief.device == ben.device
        assert set(weights(agent)) == {"anna", "ben", "cleo"}
        exits = [end for member in agent.run().members.values() for end in member.exits.values()]
        assert len(exits) == 4
        assert len({end.weights_sha256 for end in exits}) == 1 and all(weights(agent).values())
        summary = agent.run().summary
        assert summary is not None and (summary.strategy, summary.exchange) == ("MirroredStrategy", "tls")
        assert (summary.epochs, summary.last_logs["val_accuracy"] > 0.5) == (3, True)
    assert {task.host for task in anna.run().plan.tasks} == {"10.77.0.1", "10.77.0.2", "10.77.0.3"}
    # 38,000 weights in each of 69 steps: the gradients went over the cable.
    assert received_bytes(network, 1) - before > 5_000_000
    answer = anna.ask(GetRun(run=run))
    assert isinstance(answer, RunDetails)
    assert answer.entry.summary.outputs == ("digits.keras", "trained/model.keras")
    outputs = Path(answer.entry.folder) / "outputs"
    assert (outputs / "digits.keras").stat().st_size > 10_000
    assert (outputs / "trained" / "model.keras").stat().st_size > 10_000
    assert not (tmp_path / "digits" / "digits.keras").exists()
    assert set(answer.epochs) == {agent.device for agent in everybody}
    for agent in everybody:
        reported(agent.home.runs / run)


def reported(folder: Path) -> None:
    """Waits for the report, which each laptop makes for itself after the end is reported."""
    until_s = time.monotonic() + LIMIT_S
    while not all((folder / name).is_file() for name in ("report.html", "history.csv")):
        assert time.monotonic() < until_s
        time.sleep(0.05)
