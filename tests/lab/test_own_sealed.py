"""Outsiders get nothing from a run whose script needs TensorFlow's runtime, either."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import resources
from core.home import socket_path
from core.trainer.sealed import namespace
from core.vocabulary.commands import StopRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import Role, RunSpec
from core.vocabulary.state import State
from tests.lab import stranger
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.laptops import Laptops
from tests.lab.network import Network
from tests.lab.stranger import Order

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(900)]

EXAMPLES = Path(resources.__file__).parent / "examples" / "strategies"
NODE_PORT = 27600
CLASS = "class Own(tf.distribute.MultiWorkerMirroredStrategy):\n    pass\n\n\nstrategy = Own(\n"
OPENED = "strategy = tf.distribute.MultiWorkerMirroredStrategy(\n"
KINDS = {
    "class": "multi_worker_loop.py",
    "servers": "parameter_server.py",
}
NO_ANSWER = ("DeadlineExceededError", "UnavailableError", "no answer")


@dataclass(frozen=True, slots=True)
class Training:
    run: RunId
    network: Network
    anna: Agent
    ben: Agent

    @property
    def both(self) -> tuple[Agent, Agent]:
        return self.anna, self.ben

    def trainers(self, agent: Agent) -> list[psutil.Process]:
        return agent.process.children()

    def host(self, agent: Agent) -> str:
        (host,) = {task.host for task in self.anna.run().plan.tasks_of(agent.device)}
        return host

    def relays(self, agent: Agent) -> set[str]:
        return {f"{task.host}:{task.port}" for task in self.anna.run().plan.tasks_of(agent.device)}


def beside(trainer: psutil.Process) -> list[psutil.Process]:
    """Its relay, its socket maker, and the process that ends it with its node: in the order of their
    start."""
    found = []
    for each in psutil.process_iter():
        with suppress(ProcessLookupError):
            if each.pid != trainer.pid and os.getpgid(each.pid) == trainer.pid:
                found.append(each)
    return sorted(found, key=lambda each: each.pid)


# Its own class is trained by ``test_sealed_silence`` as well.
@pytest.fixture(scope="module", params=[pytest.param("class", marks=pytest.mark.complete), "servers"])
def training(
    request: pytest.FixtureRequest,
    _standing: tuple[Network, Laptops],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Training]:
    network, laptops = _standing
    laptops.mend()
    yield from trained(request.param, network, laptops, tmp_path_factory.mktemp("own"))


def trained(kind: str, network: Network, laptops: Laptops, place: Path) -> Iterator[Training]:
    """Anna's and ben's run, under way."""
    script = KINDS[kind]
    folder = Path(shutil.copytree(EXAMPLES, place / "project"))
    if kind == "class":
        text = (folder / script).read_text(encoding="utf-8")
        assert OPENED in text
        (folder / script).write_text(text.replace(OPENED, CLASS), encoding="utf-8")
    anna, ben = laptops.anna, laptops.ben
    roles = {anna.device: (Role.CHIEF,), ben.device: (Role.WORKER, Role.PS)} if kind == "servers" else {}
    spec = RunSpec(
        script=str(folder / script), arguments=("--epochs", "100000"), devices=(ben.device,), roles=roles
    )
    run = anna.train(spec)

    def steps(state: State) -> bool | None:
        present = state.run if state.run is not None and state.run.plan.run == run else None
        if present is None:
            return None
        assert not present.over, f"{present.phase}\n{anna.log_end()}"
        lines = [line for each in present.members.values() for some in each.log.values() for line in some]
        return any("epoch 2/" in line for line in lines) or None

    anna.until(steps, "see the script's second epoch", TRAINED_S)
    assert anna.run().plan.exchange == "sealed"
    yield Training(run, network, anna, ben)
    # Whatever was tried on it, it continues and ends as it should.
    assert not anna.run().over
    anna.do(StopRun())
    for agent in (anna, ben):
        assert agent.ends(run) == Stopped(by="anna")


def test_each_trainer_is_in_a_network_of_its_own(training: Training) -> None:
    """Confirms that setup; the rest of this file would mean little otherwise."""
    found = []
    for agent in training.both:
        node = Path(f"/proc/{agent.process.pid}/ns/net").readlink()
        for trainer in training.trainers(agent):
            assert namespace.is_apart(trainer.pid)
            own = Path(f"/proc/{trainer.pid}/ns/net").readlink()
            relay, maker, watcher = beside(trainer)
            for within in (maker, watcher):
                assert Path(f"/proc/{within.pid}/ns/net").readlink() == own != node
            assert Path(f"/proc/{relay.pid}/ns/net").readlink() == node, "the relay alone is outside"
            found.append(own)
    assert len(set(found)) == len(found) == len(training.anna.run().plan.tasks)


def test_a_third_host_finds_no_port_that_answers(training: Training) -> None:
    hosts = tuple(training.host(agent) for agent in training.both)
    order = Order(hosts=hosts, read=str(training.anna.home.identity / "key.pem"))
    report = stranger.send(training.network, 2, order, limit_s=600.0)
    relays = training.relays(training.anna) | training.relays(training.ben)
    assert set(report.open) == relays | {f"{host}:{NODE_PORT}" for host in hosts}
    stranger.refused(report)
    for place, answers in report.open.items():
        assert answers.tensorflow in NO_ANSWER, place


def test_another_user_of_the_laptop_finds_no_port_that_answers_and_no_file(training: Training) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    anna = training.anna
    (trainer,) = training.trainers(anna)
    processes = (trainer, *beside(trainer))
    paths = (
        str(socket_path.find(anna.home)),
        *(f"/proc/{each.pid}/{name}" for each in processes for name in ("mem", "environ", "fd", "ns/net")),
    )
    own = (f"127.77.0.{rank + 1}" for rank in range(len(anna.run().plan.tasks)))
    hosts = ("127.0.0.1", *own, training.host(anna))
    order = Order(hosts=hosts, paths=paths, read=str(anna.home.identity / "key.pem"), nobody=True)
    report = stranger.send(training.network, 0, order, limit_s=600.0)
    assert report.user != os.getuid()
    assert set(report.paths.values()) == {"PermissionError"}, report.paths
    assert set(report.open) == {f"{host}:{NODE_PORT}" for host in hosts} | training.relays(anna)
    stranger.refused(report)
    for place, answers in report.open.items():
        assert answers.tensorflow in NO_ANSWER, place
