"""Outsiders get nothing from a managed run, neither from the network nor from another account.

The stranger and the capture are first tried on an open TensorFlow server and on plain bytes: they must
succeed there, else the trial would show nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
from core.vocabulary.commands import StopRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import RunSpec, Task
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
"""Numbers searched for together: frames end anywhere."""
NODE_PORT = 27600
OPEN_PORT = 27700
OPEN_SERVER = f"""
import tensorflow as tf
tf.distribute.Server({{"worker": ["127.0.0.1:{OPEN_PORT}"]}}, "worker", 0, "grpc")
print("listens", flush=True)
input()
"""
SEND_IN_PLAIN = """
import socket, sys
socket.socket(type=socket.SOCK_DGRAM).sendto(sys.stdin.buffer.read(), ({!r}, 9))
"""


@dataclass(frozen=True, slots=True)
class Training:
    """Anna's and ben's run, under way. ``wire``: anna's cable since before it began."""

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
        """Addresses of both nodes and both members."""
        members = {f"{task.host}:{task.port}" for task in map(self.task, self.both)}
        return members | {f"{task.host}:{NODE_PORT}" for task in map(self.task, self.both)}


@pytest.fixture(scope="module")
def training(
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
        shares={laptops.anna.device: 32, laptops.ben.device: 32},
    )
    with capture(network, 0, tmp_path_factory.mktemp("wire") / "wire") as wire:
        run = laptops.anna.train(spec)
        for agent in (laptops.anna, laptops.ben):
            agent.trains(run)
    yield Training(run, laptops.anna, laptops.ben, wire)
    # Whatever was tried on it, it continues, and a Stop on any laptop ends it on all at the same step.
    assert not laptops.anna.run().over
    laptops.ben.do(StopRun())
    for agent in (laptops.anna, laptops.ben):
        assert agent.ends(run) == Stopped(by="ben")
        assert set(weights(agent)) == {"anna", "ben"}
        # One more step on either would have changed its weights.
        assert len(set(weights(agent).values())) == 1 and all(weights(agent).values())


def needles() -> list[bytes]:
    """Pieces of the data sent by a member of two, and of their sum."""
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
    assert not training.wire.shows(*needles())


def test_who_reads_along_sees_what_is_sent_in_plain(
    _standing: tuple[Network, Laptops], tmp_path: Path
) -> None:
    network, _ = _standing
    (needle, *_) = needles()
    command = (*network.enter(0), sys.executable, "-c", SEND_IN_PLAIN.format(network.address(1)))
    with capture(network, 0, tmp_path / "wire") as wire:
        subprocess.run(command, input=needle, check=True, timeout=60)
    assert wire.shows(needle)


def key_of(agent: Agent) -> Path:
    return agent.home.identity / "key.pem"


def test_a_third_host_finds_no_port_that_answers(
    training: Training, _standing: tuple[Network, Laptops]
) -> None:
    network, _ = _standing
    hosts = tuple(training.task(agent).host for agent in training.both)
    order = Order(hosts=hosts, read=str(key_of(training.anna)))
    report = stranger.send(network, 2, order)
    assert set(report.open) == training.ports
    stranger.refused(report)
    for answers in report.open.values():
        assert answers.tensorflow in ("DeadlineExceededError", "UnavailableError", "no answer")


def test_a_third_host_reads_a_key_where_tensorflow_listens(_standing: tuple[Network, Laptops]) -> None:
    """Ten lines of a raw client are enough."""
    network, laptops = _standing
    command = (*network.enter(0), sys.executable, "-c", OPEN_SERVER)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        try:
            assert server.stdout.readline() == "listens\n"
            order = Order(hosts=(network.address(0),), ports=(OPEN_PORT,), read=str(key_of(laptops.anna)))
            report = stranger.send(network, 2, order)
        finally:
            server.kill()
    assert "PRIVATE KEY" in report.open[f"{network.address(0)}:{OPEN_PORT}"].tensorflow


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
    order = Order(hosts=("127.0.0.1", host), paths=paths, read=str(key_of(anna)), nobody=True)
    report = stranger.send(network, 0, order)
    assert report.user != os.getuid()
    assert set(report.paths.values()) == {"PermissionError"}, report.paths
    # On the loopback there is only the node.
    members = {f"{host}:{training.task(anna).port}", f"{host}:{NODE_PORT}"}
    assert set(report.open) == {f"127.0.0.1:{NODE_PORT}", *members}
    stranger.refused(report)
    mine = stranger.send(network, 0, Order(hosts=(), paths=paths))
    assert set(mine.paths.values()) == {"opened"}, mine.paths


def private_key(path: Path) -> bytes:
    """The 32 bytes of an Ed25519 key. DER contains them unchanged."""
    key = load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey)
    return key.private_bytes_raw()


def runs_key(trainer: psutil.Process, certificate: bytes) -> bytes | None:
    """The private key of a run's certificate, if this process's memory contains it."""
    public = load_der_x509_certificate(certificate).public_key()
    assert isinstance(public, Ed25519PublicKey)
    tried = set()
    for held in memory.bytes_objects(trainer.pid, 32):
        if held not in tried:
            tried.add(held)
            if Ed25519PrivateKey.from_private_bytes(held).public_key() == public:
                return held
    return None


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

    # The bytes found are the key; one from another run does not work, whoever uses it, from anywhere.
    at = training.task(training.anna)
    door = Door(host=at.host, port=at.port, run=training.run, certificate=at.certificate, pairs=pairs)
    doors = stranger.send(network, 2, Order(hosts=(), doors=(door,))).doors
    assert doors["of this run"] == "let in"
    assert doors["of another run"] != "let in", doors
