"""Who does not belong to a managed run gets nothing of it, from the network or from another account.

What is shown for the exchange is tried over TensorFlow's collectives as well, where it must be otherwise:
else the trial would show nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_der_x509_certificate

from core.home import socket_path
from core.vocabulary.commands import AnswerConsent, StopRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import Exchange, RunSpec, Task
from tests.lab import memory, stranger
from tests.lab.agent import Agent
from tests.lab.capture import Capture, capture
from tests.lab.laptops import Laptops, weights
from tests.lab.network import Network
from tests.lab.stranger import Door, Order

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(600)]

SCRIPT = Path(__file__).parent / "scripts" / "marked.py"
MARKER = np.random.default_rng(20261122).standard_normal(4096).astype("float32")
PIECE = 16
"""Numbers that are looked for together: frames end anywhere."""
NODE_PORT = 27600
OPEN, SEALED = "tensorflow", "tls"


@dataclass(frozen=True, slots=True)
class Training:
    """Anna's and ben's, under way. ``wire``: anna's cable since before it began."""

    exchange: Exchange
    run: RunId
    anna: Agent
    ben: Agent
    wire: Capture

    @property
    def both(self) -> tuple[Agent, Agent]:
        return self.anna, self.ben

    def task(self, agent: Agent) -> Task:
        (task,) = self.anna.run().plan.tasks_of(agent.device)
        return task

    def trainer(self, agent: Agent) -> psutil.Process:
        (trainer,) = agent.trainers()
        return trainer

    @property
    def ports(self) -> set[str]:
        """Where both nodes and both members are to be found."""
        members = {f"{task.host}:{task.port}" for task in map(self.task, self.both)}
        return members | {f"{task.host}:{NODE_PORT}" for task in map(self.task, self.both)}

    @property
    def known(self) -> tuple[int, ...]:
        """Where TensorFlow listens, we know; else every port is to be tried."""
        return tuple(self.task(agent).port for agent in self.both) if self.exchange == OPEN else ()


@pytest.fixture(scope="module", params=[SEALED, OPEN])
def training(
    request: pytest.FixtureRequest,
    _standing: tuple[Network, Laptops],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Training]:
    network, laptops = _standing
    laptops.mend()
    folder = tmp_path_factory.mktemp("marked")
    shutil.copy(SCRIPT, folder)
    spec = RunSpec(
        script=str(folder / SCRIPT.name),
        devices=(laptops.ben.device,),
        exchange=request.param,
        shares={laptops.anna.device: 32, laptops.ben.device: 32},
    )
    with capture(network, 0, folder / "wire") as wire:
        run = laptops.anna.train(spec)
        if request.param == OPEN:  # whatever was allowed before
            (asked,) = laptops.ben.until(lambda state: state.consents, "ask its user about the open port")
            assert asked.open_port
            laptops.ben.do(AnswerConsent(run=run, decision="once"))
        for agent in (laptops.anna, laptops.ben):
            agent.trains(run)
    yield Training(request.param, run, laptops.anna, laptops.ben, wire)
    # Whatever was tried on it, it goes on and ends as it should.
    assert not laptops.anna.run().over
    laptops.anna.do(StopRun())
    for agent in (laptops.anna, laptops.ben):
        assert agent.ends(run) == Stopped(by="anna")
        assert len(set(weights(agent).values())) == 1


def needles() -> list[bytes]:
    """Pieces of what a member of two sends, and of their sum."""
    return [
        (part * MARKER[at : at + PIECE]).astype("float32").tobytes()
        for part in (0.5, 1.0)
        for at in range(0, len(MARKER), PIECE)
    ]


def test_who_reads_along_does_not_see_what_members_send(training: Training) -> None:
    assert training.wire.missed == 0 < training.wire.seen
    passed = training.wire.tcp_bytes()
    gradients = sum(passed[training.task(agent).port] for agent in training.both)
    assert gradients > 10 * MARKER.nbytes
    assert training.wire.shows(*needles()) is (training.exchange == OPEN)


def key_of(agent: Agent) -> Path:
    return agent.home.identity / "key.pem"


def test_a_third_host_finds_no_port_that_answers(
    training: Training, _standing: tuple[Network, Laptops]
) -> None:
    network, _ = _standing
    hosts = tuple(training.task(agent).host for agent in training.both)
    order = Order(hosts=hosts, ports=training.known, read=str(key_of(training.anna)))
    report = stranger.send(network, 2, order)
    if training.exchange == OPEN:
        # Ten lines of a raw client read the key of a laptop.
        assert "PRIVATE KEY" in report.open[f"{hosts[0]}:{training.task(training.anna).port}"].tensorflow
        return
    assert set(report.open) == training.ports
    stranger.refused(report)
    for answers in report.open.values():
        assert answers.tensorflow in ("DeadlineExceededError", "UnavailableError", "no answer")


def test_another_user_of_the_laptop_finds_no_port_that_answers_and_no_file(
    training: Training, _standing: tuple[Network, Laptops]
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    network, _ = _standing
    anna, trainer = training.anna, training.trainer(training.anna)
    paths = (
        str(anna.home.folder),
        str(key_of(anna)),
        str(socket_path.find(anna.home)),
        *(f"/proc/{trainer.pid}/{name}" for name in ("mem", "environ", "fd")),
    )
    host = training.task(anna).host
    order = Order(
        hosts=("127.0.0.1", host), ports=training.known, paths=paths, read=str(key_of(anna)), nobody=True
    )
    report = stranger.send(network, 0, order)
    assert report.user != os.getuid()
    assert set(report.paths.values()) == {"PermissionError"}, report.paths
    if training.exchange == OPEN:
        assert "PRIVATE KEY" in report.open[f"127.0.0.1:{training.task(anna).port}"].tensorflow
        return
    # On the loopback there is the node alone.
    members = {f"{host}:{training.task(anna).port}", f"{host}:{NODE_PORT}"}
    assert set(report.open) == {f"127.0.0.1:{NODE_PORT}", *members}
    stranger.refused(report)
    mine = stranger.send(network, 0, Order(hosts=(), paths=paths))
    assert set(mine.paths.values()) == {"opened"}, mine.paths


def private_key(path: Path) -> bytes:
    """The 32 bytes of an Ed25519 key. DER holds them as they are."""
    key = load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey)
    return key.private_bytes_raw()


def runs_key(trainer: psutil.Process, certificate: bytes) -> bytes | None:
    """The private key of a run's certificate, if it is to be found in this process's memory."""
    public = load_der_x509_certificate(certificate).public_key()
    assert isinstance(public, Ed25519PublicKey)
    tried = set()
    for held in memory.bytes_objects(trainer.pid, 32):
        if held not in tried:
            tried.add(held)
            if Ed25519PrivateKey.from_private_bytes(held).public_key() == public:
                return held
    return None


@pytest.mark.parametrize("training", [SEALED], indirect=True)
def test_the_trainer_has_the_runs_key_and_never_the_laptops(
    training: Training, _standing: tuple[Network, Laptops]
) -> None:
    network, _ = _standing
    pairs = {"of another run": stranger.fresh_pair()}
    for agent in training.both:
        trainer, task = training.trainer(agent), training.task(agent)
        pem = key_of(agent).read_bytes()
        raw, (base64,) = private_key(key_of(agent)), pem.splitlines()[1:-1]
        laptops_own = (raw, raw.hex().encode(), base64)
        assert memory.holds(agent.process.pid, *laptops_own), "a node has it, and it is found there"
        assert not memory.holds(trainer.pid, *laptops_own)
        held = runs_key(trainer, task.certificate)
        assert held is not None and held != raw
        if agent is training.ben:
            pairs["of this run"] = (task.certificate, held)

        read = 0
        for path in (agent.home.runs / training.run).rglob("*"):
            if path.is_file():
                content, read = path.read_bytes(), read + 1
                assert not any(each in content for each in (*laptops_own, held, held.hex().encode())), path
        assert read > 3
        for name in ("environ", "cmdline"):
            content = Path(f"/proc/{trainer.pid}/{name}").read_bytes()
            assert content and not any(each in content for each in (*laptops_own, held))
        assert not any(Path(each.path).is_relative_to(agent.home.identity) for each in trainer.open_files())

    # What was found is the key; and one of another run is none, whoever uses it, from wherever.
    at = training.task(training.anna)
    door = Door(host=at.host, port=at.port, run=training.run, certificate=at.certificate, pairs=pairs)
    doors = stranger.send(network, 2, Order(hosts=(), doors=(door,))).doors
    assert doors["of this run"] == "let in"
    assert doors["of another run"] != "let in", doors
