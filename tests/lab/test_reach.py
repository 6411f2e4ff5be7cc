"""A firewall blocks calls to the trainers' ports: the doctor reports it, and one open side is enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.vocabulary.answers import Finding, Findings
from core.vocabulary.commands import RunDoctor, SetCodePolicy
from core.vocabulary.phases import Finished
from core.vocabulary.settings import DEFAULT_PORT
from tests.lab.agent import Agent
from tests.lab.lab import Lab, pair
from tests.lab.laptops import digits, weights
from tests.lab.network import NETWORK

pytestmark = pytest.mark.lab


def reach(agent: Agent) -> Finding:
    answer = agent.ask(RunDoctor())
    assert isinstance(answer, Findings)
    (found,) = (each for each in answer.findings if each.code.startswith("reach"))
    return found


def call(lab: Lab, caller: int, called: int, port: int) -> str:
    """The outcome of a call to a port with a listener."""
    listen = (
        f"import socket, sys; listener = socket.create_server(('0.0.0.0', {port})); print(flush=True); "
        "sys.stdin.read()"
    )
    dial = (
        "import socket\n"
        f"try: socket.create_connection(('{NETWORK}.{called + 1}', {port}), timeout=3)\n"
        "except OSError as error: print(type(error).__name__, end='')\n"
        "else: print('answered', end='')"
    )
    with subprocess.Popen(
        (*lab.enter(called), sys.executable, "-c", listen), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as listener:
        assert listener.stdout is not None
        listener.stdout.readline()
        done = subprocess.run(
            (*lab.enter(caller), sys.executable, "-c", dial), capture_output=True, text=True, timeout=60
        )
        listener.communicate()
    return done.stdout


def started(lab: Lab) -> tuple[Agent, Agent]:
    anna, ben = lab.agent(0), lab.agent(1)
    assert ben.state.me is not None
    pair(anna, ben, ben.state.me.addresses[0])
    return anna, ben


def test_the_doctor_tells_which_laptop_lets_nobody_in(lab: Lab) -> None:
    anna, ben = started(lab)
    assert (reach(anna).code, reach(ben).code) == ("reach", "reach")

    lab.network.close_trainers_ports(0, node_port=DEFAULT_PORT)
    assert (call(lab, 1, 0, 25000), call(lab, 0, 1, 25000)) == ("TimeoutError", "answered")
    here, there = reach(anna), reach(ben)
    assert (here.code, here.level, there.code, there.level) == (
        "reach-closed-here",
        "note",
        "reach-closed-there",
        "note",
    )
    assert (
        "got no answer" in here.what
        and "One direction is enough" in here.what
        and "both directions" in here.fix
    )
    assert f"({NETWORK}.1)" in here.what and f"({NETWORK}.1)" in there.what and "anna" in there.fix

    lab.network.close_trainers_ports(1, node_port=DEFAULT_PORT)
    assert call(lab, 0, 1, 25000) == "TimeoutError"
    for agent in (anna, ben):
        closed = reach(agent)
        assert (closed.code, closed.level) == ("reach-closed", "error")
        assert closed.what.count("got no answer") == 2 and "Open one of the two" in closed.fix


@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.parametrize("closed", [pytest.param(0, marks=pytest.mark.complete), 1])
def test_one_open_side_is_enough_to_train(lab: Lab, tmp_path: Path, closed: int) -> None:
    anna, ben = started(lab)
    ben.do(SetCodePolicy(device=anna.device, policy="always"))
    lab.network.close_trainers_ports(closed, node_port=DEFAULT_PORT)
    assert reach((anna, ben)[closed]).code == "reach-closed-here"

    run = anna.train(digits(tmp_path / "digits", "--epochs", "1", others=(ben,)))

    for agent in (anna, ben):
        assert agent.ends(run) == Finished()
        assert set(weights(agent)) == {"anna", "ben"}
        assert len(set(weights(agent).values())) == 1 and all(weights(agent).values())
    (port,) = (task.port for task in anna.run().plan.tasks if task.host == f"{NETWORK}.{closed + 1}")
    assert call(lab, 1 - closed, closed, port) == "TimeoutError"  # nobody came in there
