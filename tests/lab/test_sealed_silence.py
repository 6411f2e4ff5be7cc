"""A sealed run survives a laptop's silence: TensorFlow's connections run through relays that stay."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import psutil
import pytest

import resources
from core.vocabulary import events as ev
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed
from core.vocabulary.plan import RunSpec
from core.vocabulary.state import State
from tests.lab import faults
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.laptops import Laptops
from tests.lab.network import Network
from tests.lab.test_own_sealed import CLASS, OPENED, beside

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(900)]

EXAMPLES = Path(resources.__file__).parent / "examples" / "strategies"
EPOCHS, PACE_S = 100_000, 0.5
SILENT_S = 20.0
"""Longer than a link may be silent, and than TensorFlow alone waits for a sign of life."""
LID_S = 14.0
PACED = f"""
    digest = __import__("hashlib").sha256(b"".join(weight.tobytes() for weight in model.get_weights()))
    print(f"weights {{epoch}} {{digest.hexdigest()}}", flush=True)
    __import__("time").sleep({PACE_S})
"""


def project(place: Path) -> Path:
    """A slower custom loop in its own strategy class. After each epoch it reports its weights' digest."""
    script = Path(shutil.copytree(EXAMPLES, place)) / "multi_worker_loop.py"
    text = script.read_text(encoding="utf-8")
    told = 'f"epoch {epoch + 1}/{args.epochs}: loss {np.mean(losses):.4f}", flush=True)\n'
    assert text.count(told) == 1
    assert text.count(OPENED) == 1
    text = text.replace(OPENED, CLASS)
    script.write_text(text.replace(told, f"{told}{PACED}"))
    return script


def lines(state: State, device: DeviceId) -> list[str]:
    assert state.run is not None
    return [line for log in state.run.members[device].log.values() for line in log]


def epochs(agent: Agent, device: DeviceId) -> int:
    """Number of epochs reported by ``device``, as ``agent`` knows."""
    return sum("epoch " in line for line in lines(agent.state, device))


def weights(agent: Agent, device: DeviceId) -> dict[str, str]:
    """The digests reported by ``device``, by their epoch, as ``agent`` knows."""
    return dict(re.findall(r"weights (\d+) (\w{64})", "\n".join(lines(agent.state, device))))


def train(laptops: Laptops, place: Path) -> RunId:
    """Presses Train, for anna and ben."""
    arguments = ("--epochs", str(EPOCHS))
    spec = RunSpec(script=str(project(place)), arguments=arguments, devices=(laptops.ben.device,))
    return laptops.anna.train(spec)


def go_on(laptops: Laptops, run: RunId, least: int) -> None:
    """Both reach that epoch, as both screens show, and nobody is waited for."""
    both = (laptops.anna, laptops.ben)
    devices = [each.device for each in both]

    def there(state: State) -> bool:
        if state.run is None or state.run.plan.run != run or state.run.waiting is not None:
            return False
        assert not state.run.over, state.run.phase
        return all(sum("epoch " in line for line in lines(state, each)) >= least for each in devices)

    for agent in both:
        agent.until(lambda state: there(state) or None, f"see epoch {least} of everybody", TRAINED_S)
    plan = laptops.anna.run().plan
    assert (plan.exchange, plan.strategy) == ("sealed", "own")


def test_a_silent_laptop_ends_no_sealed_run_and_one_that_is_gone_ends_it_by_its_name(
    laptops: Laptops, network: Network, tmp_path: Path
) -> None:
    anna, ben = laptops.anna, laptops.ben
    run = train(laptops, tmp_path / "project")
    go_on(laptops, run, 2)

    def is_away(since: int) -> None:
        """Waits until Anna's screen has reported it since then."""
        told = anna.hears(
            ev.WaitingChanged,
            lambda event: [(wait.device, wait.cause) for wait in event.waits] == [(ben.device, "away")],
            since=since,
        )
        assert isinstance(told.event, ev.WaitingChanged) and told.event.run == run

    since, before = len(anna.told), epochs(anna, anna.device)
    with faults.stopped([ben.process]):
        time.sleep(SILENT_S)
        is_away(since)
        meanwhile = epochs(anna, anna.device)
    assert meanwhile > before + 1, "trainers and relays are processes of their own, which went on"
    go_on(laptops, run, meanwhile + 2)

    since = len(anna.told)
    (trainer,) = ben.trainers()
    with faults.cable_out(network, 1), faults.stopped([ben.process, trainer, *beside(trainer)]):
        time.sleep(LID_S / 2)
        asleep = epochs(anna, anna.device)
        time.sleep(LID_S / 2)
        is_away(since)
        assert epochs(anna, anna.device) == asleep, "nobody trains without ben"
    go_on(laptops, run, asleep + 2)

    for agent in (anna, ben):
        annas, bens = (weights(agent, each.device) for each in (anna, ben))
        assert len(annas.keys() & bens.keys()) > meanwhile
        assert all(annas[epoch] == bens[epoch] for epoch in annas.keys() & bens.keys())

    trainers = [*anna.trainers(), *ben.trainers()]
    ben.kill()
    phase = anna.ends(run)
    assert isinstance(phase, Failed) and phase.problem.code == "device-lost", phase
    assert phase.problem.what.startswith("ben was lost during the run")
    assert psutil.wait_procs(trainers, timeout=60)[1] == []
    assert ben.waits_until_gone() < 0
    laptops.restart(1)
