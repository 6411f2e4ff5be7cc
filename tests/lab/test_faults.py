"""A training that waits for a silent laptop continues with the same step, and ends with the same bits."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from core.vocabulary import events as ev
from core.vocabulary.ids import RunId
from core.vocabulary.options import AWAY_S
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from core.vocabulary.waits import Cause
from tests.lab import faults
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.lab import linked
from tests.lab.laptops import Laptops, batches, weights
from tests.lab.network import Network
from tests.lab.test_leaving import await_tidied

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(1200)]

SCRIPT = Path(__file__).parent / "scripts" / "naps.py"
BETWEEN = 5
"""Steps that everybody makes between two faults."""
TOLD_S = 20.0
"""A fault this long is reported meanwhile; detecting a silence takes longest, ten seconds."""
ASLEEP_AT, SLOW_AT = 5, 10

Fault = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Lengths:
    """``steps`` of the training: each takes at least ``pace_s`` if it continues while a node stands still.
    ``both``: a trainer and a node are stopped and a lid is closed on either side in turn, else only ben's."""

    steps: int
    pace_s: float
    both: bool
    asleep_s: float
    slow_s: float
    trainer_s: float
    node_s: float
    lid_s: float
    cables_s: tuple[float, ...]


LENGTHS = [
    # Longer than TensorFlow's runtime and the nodes' links wait for a sign of life.
    pytest.param(Lengths(140, 0.15, False, 11, 11, 11, 12, 12, (15,)), id="short"),
    pytest.param(
        Lengths(260, 0.25, True, 60, 60, 20, 20, 30, (15, 60)), id="long", marks=pytest.mark.complete
    ),
]


def train(laptops: Laptops, folder: Path, steps: int, *arguments: str) -> RunId:
    """Presses Train, for anna and ben."""
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    spec = RunSpec(
        script=str(folder / SCRIPT.name),
        arguments=("--steps", str(steps), *arguments),
        devices=(laptops.ben.device,),
        seed=7,
        # Fixed: the laptops' speeds must not decide the order of addition.
        shares={laptops.anna.device: 40, laptops.ben.device: 24},
        go_on_s=AWAY_S,
    )
    return laptops.anna.train(spec)


def steps(agent: Agent, run: RunId, since_s: float = 0.0, until_s: float = float("inf")) -> list[int]:
    """The steps of this agent's own trainer, as reported in that time."""
    return [
        told.event.progress.step
        for told in agent.told
        if isinstance(told.event, ev.MemberProgressed)
        and (told.event.run, told.event.device) == (run, agent.device)
        and since_s <= told.at_s <= until_s
    ]


def made_steps(agent: Agent, run: RunId, since_s: float, until_s: float) -> bool:
    """Whether its own trainer made steps between these moments of the epoch, whenever they were reported."""
    made = {
        told.event.progress.step
        for told in agent.told
        if isinstance(told.event, ev.MemberProgressed)
        and (told.event.run, told.event.device) == (run, agent.device)
        and since_s <= told.event.progress.at_s <= until_s
    }
    return len(made) > 1


def go_on(agents: tuple[Agent, ...], run: RunId, at_least: int = 0) -> None:
    """Waits until everybody has made ``BETWEEN`` steps more than anybody has now, or than ``at_least``."""
    newest = max(step for agent in agents for step in [at_least, *steps(agent, run)])
    for agent in agents:

        def is_beyond(event: ev.MemberProgressed, agent: Agent = agent) -> bool:
            return (event.run, event.device) == (run, agent.device) and event.progress.step > newest + BETWEEN

        agent.hears(ev.MemberProgressed, is_beyond, limit_s=TRAINED_S)


def befall(
    agents: tuple[Agent, Agent], run: RunId, who: Agent, fault: Fault, lasts_s: float, cause: Cause
) -> None:
    """While it lasts nobody progresses, and if it lasts long the other one says why; afterwards all
    continue."""
    began_s = time.monotonic()
    with fault():
        time.sleep(lasts_s)
        ended_s = time.monotonic()
    assert ended_s - began_s >= lasts_s
    go_on(agents, run)
    for agent in agents:
        stood = steps(agent, run, (began_s + ended_s) / 2, ended_s)
        assert len(set(stood)) <= 1, f"{agent.name} made steps: {stood}"
    (other,) = (agent for agent in agents if agent is not who)
    assert lasts_s < TOLD_S or waits(other, run, who, cause, began_s)


def waits(agent: Agent, run: RunId, other: Agent, cause: Cause, since_s: float) -> bool:
    """Whether a wait for that laptop, for that reason, was reported since then."""
    return any(
        (wait.device, wait.cause) == (other.device, cause)
        for told in agent.told
        if isinstance(told.event, ev.WaitingChanged) and told.event.run == run and told.at_s >= since_s
        for wait in told.event.waits
    )


def said(agent: Agent, run: RunId) -> str:
    return "".join(
        told.event.lines.text
        for told in agent.told
        if isinstance(told.event, ev.MemberLogged) and told.event.run == run
    )


@pytest.fixture(scope="module")
def undisturbed() -> dict[int, str]:
    """By number of steps: the digests of weights and batches of an undisturbed run."""
    return {}


def expected(laptops: Laptops, folder: Path, undisturbed: dict[int, str], steps: int) -> str:
    if steps not in undisturbed:
        run = train(laptops, folder / "undisturbed", steps, "--pace-s", "0")
        assert laptops.anna.ends(run, 2 * TRAINED_S) == Finished()
        undisturbed[steps] = digest_of(laptops.anna, run)
    return undisturbed[steps]


def digest_of(agent: Agent, run: RunId) -> str:
    """Of the weights and of the sequence of batches, equal on both."""
    members = weights(agent)
    assert set(members) == {"anna", "ben"}
    (digest,) = set(members.values())
    return f"{digest} {batches(agent, run)}"


def ends_as(laptops: Laptops, run: RunId, digest: str, last: int) -> None:
    for agent in (laptops.anna, laptops.ben):
        assert agent.ends(run, 2 * TRAINED_S) == Finished()
        assert digest_of(agent, run) == digest
        assert len(set(steps(agent, run))) > 10 and max(steps(agent, run)) == last - 1
        assert agent.trainers() == []
        await_tidied(agent, run)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.complete
def test_slow_steps_sleeping_scripts_and_stopped_trainers_are_waited_for(
    laptops: Laptops, network: Network, tmp_path: Path, undisturbed: dict[int, str], lengths: Lengths
) -> None:
    anna, ben = both = laptops.anna, laptops.ben
    digest = expected(laptops, tmp_path, undisturbed, lengths.steps)
    asleep, slow = f"{lengths.asleep_s:g}", f"{lengths.slow_s:g}"
    paced = ("--pace-s", str(lengths.pace_s))  # otherwise it might be over before it has been stopped
    naps_of = (*paced, "--asleep", str(ASLEEP_AT), asleep, "--slow", str(SLOW_AT), slow)
    run = train(laptops, tmp_path / "naps", lengths.steps, *naps_of)
    for agent in both:
        agent.trains(run)

    go_on(both, run, SLOW_AT)
    assert waits(anna, run, ben, "script", 0.0)
    assert said(ben, run).count(f"worker callback at step {ASLEEP_AT} took {asleep}") == 1
    assert said(anna, run).count(f"step at step {SLOW_AT} took {slow}") == 2
    for agent in both if lengths.both else (ben,):
        befall(both, run, agent, partial(faults.stopped, agent.trainers()), lengths.trainer_s, "stopped")
    befall(both, run, ben, partial(faults.cable_out, network, 1), 3.0, "silent")

    ends_as(laptops, run, digest, lengths.steps)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_stopped_nodes_closed_lids_pulled_cables_and_another_address_end_nothing(
    laptops: Laptops, network: Network, tmp_path: Path, undisturbed: dict[int, str], lengths: Lengths
) -> None:
    """Longer than a link may be silent."""
    anna, ben = both = laptops.anna, laptops.ben
    digest = expected(laptops, tmp_path, undisturbed, lengths.steps)
    run = train(laptops, tmp_path / "lids", lengths.steps, "--pace-s", str(lengths.pace_s))
    for agent in both:
        agent.trains(run)
    assert anna.run().plan.chief.device == anna.device

    for agent in both if lengths.both else (ben,):
        lid = partial(faults.lid_closed, network, both.index(agent), agent)
        befall(both, run, agent, lid, lengths.lid_s, "away")
    for agent in both if lengths.both else (ben,):
        began_s = time.time()
        with faults.stopped([agent.process]):
            time.sleep(lengths.node_s)
            ended_s = time.time()
        go_on(both, run)
        # Trainers are separate processes, which continued meanwhile; its node learned of it afterwards.
        assert made_steps(anna, run, began_s, ended_s)
    for cable_s in lengths.cables_s:
        befall(both, run, ben, partial(faults.cable_out, network, 1), cable_s, "away")

    moved, former = "10.77.0.12", network.address(1)
    try:
        assert faults.calls_from(network, 0, former) >= 2 and not faults.calls_from(network, 0, moved)
        faults.move(network, 1, moved)
        go_on(both, run)
        assert faults.calls_from(network, 0, moved) >= 2
        ends_as(laptops, run, digest, lengths.steps)
    finally:
        faults.move(network, 1, former)
    # The connections to the other address fall silent, and new ones replace them.
    anna.until(lambda state: faults.calls_from(network, 0, former) >= 2 or None, "call the former address")
    linked(anna, ben)
