"""Trouble between pressing Train and the first step: a laptop dies, or a person presses Ctrl-C."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from app.cli.exit_codes import ExitCode
from core.vocabulary import events as ev
from core.vocabulary.phases import Starting, Stopped, ended
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.laptops import Laptops, digits, reason
from tests.lab.promise import Stopwatch
from tests.trouble.command_line import begun

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
PROMISE_S = 3.0


def starts(agent: Agent) -> list[psutil.Process]:
    """Waits until the present run is starting and this laptop's trainer exists."""
    agent.until(
        lambda state: state.run is not None and isinstance(state.run.phase, Starting), "see trainers start"
    )
    return agent.until(lambda state: agent.trainers(), "start its trainer")


def gone(processes: list[psutil.Process]) -> bool:
    return psutil.wait_procs(processes, timeout=60)[1] == []


@pytest.mark.timed
@pytest.mark.cluster
def test_a_laptop_that_dies_while_trainers_start_is_named_in_time(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben = laptops.anna, laptops.ben
    run = anna.train(digits(tmp_path / "digits", others=(ben,)))
    trainers = [*starts(anna), *starts(ben)]

    watch = Stopwatch()
    ben.kill()

    told = anna.hears(
        ev.RunPhaseChanged, lambda event: event.run == run and ended(event.phase), limit_s=TRAINED_S
    )
    assert watch.kept(told.at_s, PROMISE_S), told.at_s - watch.began_s
    assert reason(anna.run().phase).startswith("device-lost: ben was lost during the run")
    assert gone(trainers)
    laptops.restart(1)


@pytest.mark.cluster
def test_ctrl_c_while_trainers_start_stops_them_at_once(laptops: Laptops, tmp_path: Path) -> None:
    anna, ben = laptops.anna, laptops.ben
    spec = digits(tmp_path / "digits", others=())
    before = anna.state.run
    with begun("run", spec.script, "--home", anna.home.folder, "--with", "ben") as run:
        anna.until(lambda state: state.run is not before, "plan a run")
        trainers = [*starts(anna), *starts(ben)]
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=TRAINED_S)
    assert run.returncode == ExitCode.INTERRUPTED, out
    assert "Traceback" not in out and "The run is stopped on anna." in out
    for agent in (anna, ben):
        assert agent.ends(agent.run().plan.run) == Stopped(by="anna")
    assert gone(trainers)


def test_ctrl_c_before_there_is_a_plan_starts_nothing(laptops: Laptops, tmp_path: Path) -> None:
    """The command waits for a laptop that is off to connect, in its own node."""
    laptops.ben.end()
    laptops.anna.end()
    home = laptops.anna.home
    (tmp_path / "train.py").write_text("import keras\nkeras.Model().fit()\n")
    runs = sorted(home.runs.iterdir())
    ready = (home.logs / "tandem.log").read_text().count("ready on port")
    with begun("run", tmp_path / "train.py", "--home", home.folder, "--with", "ben") as run:
        while (home.logs / "tandem.log").read_text().count("ready on port") == ready:
            assert run.poll() is None
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=TRAINED_S)
    assert run.returncode == ExitCode.INTERRUPTED, out
    assert "Interrupted." in out and "Traceback" not in out
    assert sorted(path for path in home.runs.iterdir() if path.is_dir()) == [
        path for path in runs if path.is_dir()
    ]
    laptops.restart(0)
    laptops.restart(1)
