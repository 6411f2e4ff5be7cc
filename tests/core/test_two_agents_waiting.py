"""Two agents train; each fault hits only ben, is named on both sides, and the same training continues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.home.home import Home
from core.vocabulary import events as ev
from core.vocabulary.commands import SetCodePolicy
from core.vocabulary.ids import RunId
from core.vocabulary.options import AWAY_S
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import Settings
from core.vocabulary.waits import Cause, WaitsFor
from tests.lab import faults
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.lab import pair
from tests.lab.laptops import weights

pytestmark = [pytest.mark.real, pytest.mark.cluster, pytest.mark.timeout(900)]

NAMED_S = 30.0
"""Time within which a member that holds up the others is named."""
SCRIPT = """
import json, os, pathlib, sys, time
import keras
import numpy as np

bed, end = map(pathlib.Path, sys.argv[1:])
is_ben = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker"

import late


class Sleeper(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.02)
        while is_ben and bed.exists():
            time.sleep(0.1)  # asleep

    def on_epoch_end(self, epoch, logs=None):
        if end.exists():
            self.model.stop_training = True


keras.utils.set_random_seed(1)
rows = np.random.default_rng(0).normal(size=(256, 4)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
model.compile(optimizer="sgd", loss="mse")
model.fit(rows, rows[:, :2], batch_size=16, epochs=100_000, verbose=0, callbacks=[Sleeper()])
"""
LATE = """
import __main__, time
while __main__.is_ben and __main__.bed.exists():
    time.sleep(0.1)
"""
ASLEEP = 1 + SCRIPT[: SCRIPT.index("# asleep")].count("\n")
"""The script's line on which ben sleeps."""


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[tuple[Agent, Agent]]:
    def agent(name: str) -> Agent:
        settings = Settings(name=name, port=0, interfaces=("lo",), discovery=False)
        return Agent(Home(tmp_path / name), settings=settings)

    with agent("anna") as anna, agent("ben") as ben:
        assert ben.state.me is not None
        pair(anna, ben, ben.state.me.addresses[0])
        ben.do(SetCodePolicy(device=anna.device, policy="always"))
        yield anna, ben


def is_named(
    agents: tuple[Agent, ...], since: list[int], began_s: float, found: Callable[[WaitsFor], bool]
) -> list[WaitsFor]:
    """Each agent reports such a verdict within ``NAMED_S``, after its event number ``since``."""
    named: list[WaitsFor] = []
    for agent, first in zip(agents, since, strict=True):
        told = agent.hears(ev.WaitingChanged, lambda event: any(map(found, event.waits)), since=first)
        assert told.at_s - began_s < NAMED_S
        assert isinstance(told.event, ev.WaitingChanged)
        named += filter(found, told.event.waits)
    return named


def steps_on(agents: tuple[Agent, ...], run: RunId) -> None:
    """Everybody makes further steps, and nobody is waited for any more."""
    for agent in agents:
        since = len(agent.told)
        agent.hears(ev.MemberProgressed, since=since)
        agent.until(lambda state: state.run is not None and state.run.waiting is None, "go on")
    assert not agents[0].run().over


@pytest.mark.complete
def test_a_script_asleep_a_stopped_trainer_and_a_stopped_node_are_named_and_waited_for(
    agents: tuple[Agent, Agent], tmp_path: Path
) -> None:
    anna, ben = agents
    folder, bed, end = tmp_path / "project", tmp_path / "bed", tmp_path / "end"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "late.py").write_text(LATE)
    bed.touch()
    run = anna.train(
        RunSpec(
            script=str(folder / "train.py"),
            arguments=(str(bed), str(end)),
            devices=(ben.device,),
            seed=7,
            go_on_s=AWAY_S,
        )
    )

    # a module that hangs while it is imported
    def is_importing(wait: WaitsFor) -> bool:
        return (wait.device, wait.activity) == (ben.device, "importing")

    for agent in agents:
        told = agent.hears(
            ev.WaitingChanged, lambda event: any(map(is_importing, event.waits)), limit_s=TRAINED_S
        )
        assert isinstance(told.event, ev.WaitingChanged)
        (wait,) = told.event.waits
        assert (wait.cause, wait.where) == ("script", "late.py, line 4") and wait.lasted_s < NAMED_S
    bed.unlink()
    for agent in agents:
        agent.trains(run)

    def begun() -> tuple[list[int], float]:
        return [len(agent.told) for agent in agents], time.monotonic()

    def awaits_ben(cause: Cause, where: str = "") -> Callable[[WaitsFor], bool]:
        return lambda wait: (wait.device, wait.cause, wait.where) == (ben.device, cause, where)

    # a script asleep in a callback
    since, began_s = begun()
    bed.touch()
    place = f"train.py, line {ASLEEP}, in on_train_batch_end"
    for wait in is_named(agents, since, began_s, awaits_ben("script", place)):
        assert wait.activity == "callback"
    log = next((ben.home.runs / run).rglob("worker-0*.log"))
    until_s = began_s + NAMED_S
    while "in on_train_batch_end" not in (text := log.read_text(errors="replace")):
        assert time.monotonic() < until_s, text
        time.sleep(0.2)
    assert f"line {ASLEEP} in on_train_batch_end" in text
    bed.unlink()
    steps_on(agents, run)

    # a stopped trainer
    with faults.stopped(ben.trainers()):
        is_named(agents, *begun(), awaits_ben("stopped"))
    steps_on(agents, run)

    # a stopped node, and its trainer with it: a laptop that sleeps
    with faults.stopped([ben.process, *ben.trainers()]):
        since, began_s = begun()
        (wait,) = is_named((anna,), since[:1], began_s, awaits_ben("away"))
        assert wait.left_s is not None and wait.left_s > 500
    steps_on(agents, run)

    end.touch()
    for agent in agents:
        assert agent.ends(run, TRAINED_S) == Finished()
        assert len(set(weights(agent).values())) == 1 and len(weights(agent)) == 2
