"""Who does not belong to a run whose script needs TensorFlow's runtime gets nothing of it, either."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import resources
from core.home import socket_path
from core.net.address import plain_host
from core.trainer.sealed import listeners, namespace
from core.vocabulary.commands import StopRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import Role, RunSpec
from core.vocabulary.settings import Settings
from core.vocabulary.state import State
from tests.lab import stranger
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.lab import NAMES, Lab
from tests.lab.laptops import Laptops
from tests.lab.network import Network
from tests.lab.stranger import Order

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(900)]

EXAMPLES = Path(resources.__file__).parent / "examples" / "strategies"
NODE_PORT = 27600
CLASS = "class Own(tf.distribute.MultiWorkerMirroredStrategy):\n    pass\n\n\nstrategy = Own(\n"
KINDS = {
    "loop": "multi_worker_loop.py",
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
    """Its relay, and who makes sockets: of its process group, in the order in which they began."""
    found = []
    for each in psutil.process_iter():
        with suppress(ProcessLookupError):
            if each.pid != trainer.pid and os.getpgid(each.pid) == trainer.pid:
                found.append(each)
    return sorted(found, key=lambda each: each.pid)


@pytest.fixture(scope="module", params=KINDS)
def training(
    request: pytest.FixtureRequest,
    _standing: tuple[Network, Laptops],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Training]:
    network, laptops = _standing
    laptops.mend()
    yield from trained(request.param, network, laptops, tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def forbidden(namespaces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    """On laptops whose systems forbid namespaces of one's own."""

    def start(number: int) -> Agent:
        enter = (*lab.enter(number), sys.executable, "-m", "tests.forbidden")
        settings = Settings(name=NAMES[number], first_run_done=True)
        return ends.enter_context(Agent(lab.home(number), enter=enter, settings=settings))

    with Lab(tmp_path_factory.mktemp("forbidden"), hosts=3) as lab, ExitStack() as ends:
        laptops = Laptops(start, 2)
        yield from trained("loop", lab.network, laptops, tmp_path_factory.mktemp("own"))


def trained(kind: str, network: Network, laptops: Laptops, place: Path) -> Iterator[Training]:
    """Anna's and ben's, under way."""
    script = KINDS[kind]
    folder = Path(shutil.copytree(EXAMPLES, place / "project"))
    if kind == "class":
        text = (folder / script).read_text(encoding="utf-8")
        opened = "strategy = tf.distribute.MultiWorkerMirroredStrategy(\n"
        assert opened in text
        (folder / script).write_text(text.replace(opened, CLASS), encoding="utf-8")
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
    # Whatever was tried on it, it goes on and ends as it should.
    assert not anna.run().over
    anna.do(StopRun())
    for agent in (anna, ben):
        assert agent.ends(run) == Stopped(by="anna")


def test_each_trainer_is_in_a_network_of_its_own(training: Training) -> None:
    """That is the way that was taken; the rest of this file would mean little otherwise."""
    found = []
    for agent in training.both:
        node = Path(f"/proc/{agent.process.pid}/ns/net").readlink()
        for trainer in training.trainers(agent):
            assert namespace.is_apart(trainer.pid)
            own = Path(f"/proc/{trainer.pid}/ns/net").readlink()
            relay, maker = beside(trainer)
            assert Path(f"/proc/{maker.pid}/ns/net").readlink() == own != node
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


def listening(pid: int, port: int) -> set[str]:
    """Where anything listens at that port in the network of a process."""
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="utf-8").splitlines()[1:]
    ]
    places = [listeners.address(row[1]) for row in rows if row[3] == "0A"]
    return {plain_host(str(host)) for host, at in places if at == port}


def test_where_namespaces_are_forbidden_a_third_host_finds_no_port_that_answers_either(
    forbidden: Training,
) -> None:
    for agent in forbidden.both:
        (trainer,) = forbidden.trainers(agent)
        # That is the way that was taken: its relay in the network, and TensorFlow on the loopback.
        (task,) = forbidden.anna.run().plan.tasks_of(agent.device)
        rank = forbidden.anna.run().plan.tasks.index(task)
        assert listening(trainer.pid, task.port) == {task.host, f"127.77.0.{rank + 1}"}
        assert (
            Path(f"/proc/{trainer.pid}/ns/net").readlink()
            == Path(f"/proc/{agent.process.pid}/ns/net").readlink()
        )
    hosts = tuple(forbidden.host(agent) for agent in forbidden.both)
    key = str(forbidden.anna.home.identity / "key.pem")
    report = stranger.send(forbidden.network, 2, Order(hosts=hosts, read=key), limit_s=600.0)
    relays = forbidden.relays(forbidden.anna) | forbidden.relays(forbidden.ben)
    assert set(report.open) == relays | {f"{host}:{NODE_PORT}" for host in hosts}
    stranger.refused(report)
    for place, answers in report.open.items():
        assert answers.tensorflow in NO_ANSWER, place


def test_where_namespaces_are_forbidden_other_users_of_the_laptop_reach_the_loopback_as_is_told(
    forbidden: Training,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    (task,) = forbidden.anna.run().plan.tasks_of(forbidden.anna.device)
    key = str(forbidden.anna.home.identity / "key.pem")
    order = Order(hosts=("127.77.0.1",), ports=(task.port,), read=key, nobody=True)
    report = stranger.send(forbidden.network, 0, order)
    assert "PRIVATE KEY" in report.open[f"127.77.0.1:{task.port}"].tensorflow
    assert forbidden.anna.state.me is not None
    assert forbidden.anna.state.me.versions.seal == "loopback"
