"""A training outlasts what befalls a laptop: it goes on with the same step, and ends with the same bits."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from core.vocabulary import events as ev
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from tests.lab import faults
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.laptops import Laptops, weights
from tests.lab.network import Network

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).parent / "scripts" / "naps.py"
STEPS = 600
BETWEEN = 10
"""So many steps are made by everybody between two faults."""
ASLEEP_AT, SLOW_AT = 5, 10

Fault = Callable[[], AbstractContextManager[None]]


def naps(laptops: Laptops, folder: Path, *arguments: str) -> RunId:
    """Press Train, for anna and ben."""
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    spec = RunSpec(
        script=str(folder / SCRIPT.name),
        arguments=("--steps", str(STEPS), *arguments),
        devices=(laptops.ben.device,),
        seed=7,
        exchange="tls",
        # Fixed: what the laptops cost each other must not decide who adds what.
        shares={laptops.anna.device: 40, laptops.ben.device: 24},
    )
    return laptops.anna.train(spec)


def steps(agent: Agent, run: RunId, since_s: float = 0.0, until_s: float = float("inf")) -> list[int]:
    """Which this agent's own trainer was at, as told in that time."""
    return [
        told.event.progress.step
        for told in agent.told
        if isinstance(told.event, ev.MemberProgressed)
        and (told.event.run, told.event.device) == (run, agent.device)
        and since_s <= told.at_s <= until_s
    ]


def go_on(agents: tuple[Agent, ...], run: RunId) -> None:
    """Until everybody has made ``BETWEEN`` steps more than anybody has now."""
    newest = max(step for agent in agents for step in [0, *steps(agent, run)])
    for agent in agents:

        def is_beyond(event: ev.MemberProgressed, agent: Agent = agent) -> bool:
            return (event.run, event.device) == (run, agent.device) and event.progress.step > newest + BETWEEN

        agent.hears(ev.MemberProgressed, is_beyond, limit_s=TRAINED_S)


def befall(agents: tuple[Agent, ...], run: RunId, fault: Fault, lasts_s: float) -> None:
    """While it lasts nobody comes further; afterwards all do."""
    began_s = time.monotonic()
    with fault():
        time.sleep(lasts_s)
        ended_s = time.monotonic()
    assert ended_s - began_s >= lasts_s
    go_on(agents, run)
    for agent in agents:
        stood = steps(agent, run, (began_s + ended_s) / 2, ended_s)
        assert len(set(stood)) <= 1, f"{agent.name} made steps: {stood}"


def said(agent: Agent, run: RunId) -> str:
    return "".join(
        told.event.lines.text
        for told in agent.told
        if isinstance(told.event, ev.MemberLogged) and told.event.run == run
    )


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, str]:
    """By name: the digest of each member's weights after a run to which nothing happened."""
    return {}


def expected(laptops: Laptops, folder: Path, undisturbed: dict[str, str]) -> str:
    if not undisturbed:
        run = naps(laptops, folder / "undisturbed", "--pace-s", "0")
        assert laptops.anna.ends(run) == Finished()
        undisturbed.update(weights(laptops.anna))
    (digest,) = set(undisturbed.values())
    assert len(undisturbed) == 2 and digest
    return digest


def ends_as(laptops: Laptops, run: RunId, digest: str) -> None:
    for agent in (laptops.anna, laptops.ben):
        assert agent.ends(run) == Finished()
        assert weights(agent) == {"anna": digest, "ben": digest}
        assert len(set(steps(agent, run))) > 10 and max(steps(agent, run)) == STEPS - 1


@pytest.mark.parametrize("lasts_s", [12.0, pytest.param(60.0, marks=pytest.mark.complete)])
def test_slow_steps_sleeping_scripts_and_stopped_trainers_are_waited_for(
    laptops: Laptops, network: Network, tmp_path: Path, undisturbed: dict[str, str], lasts_s: float
) -> None:
    anna, ben = both = laptops.anna, laptops.ben
    digest = expected(laptops, tmp_path, undisturbed)
    asleep, slow = ("--asleep", str(ASLEEP_AT), str(lasts_s)), ("--slow", str(SLOW_AT), str(lasts_s))
    run = naps(laptops, tmp_path / "naps", *asleep, *slow)
    for agent in both:
        agent.trains(run)

    go_on(both, run)
    assert said(ben, run).count(f"worker callback at step {ASLEEP_AT} took {lasts_s:g}") == 1
    assert said(anna, run).count(f"step at step {SLOW_AT} took {lasts_s:g}") == 2
    for agent in both:
        befall(both, run, partial(faults.stopped, agent.trainers()), min(lasts_s, 20.0))
    befall(both, run, partial(faults.cable_out, network, 1), 3.0)

    ends_as(laptops, run, digest)
