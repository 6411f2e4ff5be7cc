"""Trials shared out: a sweep on two laptops of a core each beside one of them alone, on a slow network; and
shorter trials on laptops of which one is three times as fast."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.engine.slowed import slowed
from bench.result import Row
from bench.transfer_speed import laptops
from core.vocabulary.answers import SweepAccepted
from core.vocabulary.commands import StartSweep
from core.vocabulary.plan import RunSpec
from core.vocabulary.state import State
from core.vocabulary.sweep import Sweep, SweepSpec
from tests.lab.agent import Agent
from tests.lab.lab import Lab
from tests.lab.laptops import all_idle

TRIALS, TRIAL_S, SHORT_S = 12, 30.0, 10.0
"""A trial trains at least so long on a core; a shorter one, about so long."""
ALONE = 2
"""So many trials show the time of one on a laptop alone."""
OF_ALONE, OF_SUM = 0.58, 0.9
SLOW = 1 / 3
MBIT = 20
SCRIPT = Path(__file__).parents[1] / "tests" / "lab" / "scripts" / "trial.py"
WIDTH, PROBE_EPOCHS = 512, (2, 12)
LIMIT_S = 3600.0


def measure() -> list[Row]:
    epochs = _epochs()
    few = max(1, round(epochs * SHORT_S / TRIAL_S))
    with laptops(MBIT) as (lab, (starter, other)):
        _pin(starter, other)
        alone_s = _took_s(starter, lab, ALONE, epochs) / ALONE
        pair_s = _took_s(starter, lab, TRIALS, epochs, other)
        fast_s = _took_s(starter, lab, ALONE, few) / ALONE
        with slowed([other.process.pid], SLOW):
            slow_s = _took_s(starter, lab, 1, few, other, here=False)
            unequal_s = _took_s(starter, lab, TRIALS, few, other)
    return rows(alone_s, pair_s, fast_s, slow_s, unequal_s)


def _epochs() -> int:
    """Epochs of a trial that trains long enough, given how fast the plain script is on a core here."""
    few, many = (_plain_s(epochs) for epochs in PROBE_EPOCHS)
    return round(1.1 * TRIAL_S * (PROBE_EPOCHS[1] - PROBE_EPOCHS[0]) / (many - few))


def _plain_s(epochs: int) -> float:
    began_s = time.monotonic()
    command = (
        "taskset",
        "--cpu-list",
        str(_cores()[0]),
        sys.executable,
        str(SCRIPT),
        *_arguments(0.01, epochs),
    )
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.monotonic() - began_s


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def _pin(*agents: Agent) -> None:
    """A core each, for its trainers, too."""
    for agent, core in zip(agents, _cores(), strict=False):
        for process in (agent.process, *agent.trainers()):
            for thread in process.threads():
                os.sched_setaffinity(thread.id, [core])


def _arguments(rate: float, epochs: int) -> tuple[str, ...]:
    return ("--lr", f"{rate:g}", "--epochs", str(epochs), "--width", str(WIDTH))


def _took_s(starter: Agent, lab: Lab, trials: int, epochs: int, *others: Agent, here: bool = True) -> float:
    """Seconds from the command until the last trial is over."""
    script = lab.folder / "project" / SCRIPT.name
    script.parent.mkdir(exist_ok=True)
    shutil.copy(SCRIPT, script)
    run = RunSpec(script=str(script), devices=tuple(other.device for other in others), solo=not others)
    sets = tuple(_arguments(0.01 / number, epochs) for number in range(1, trials + 1))
    starter.until(all_idle, "see everybody idle")
    began_s = time.monotonic()
    answer = starter.ask(StartSweep(spec=SweepSpec(run=run, argument_sets=sets, here=here)))
    assert isinstance(answer, SweepAccepted), answer

    def over(state: State) -> Sweep | None:
        found = state.sweep
        return found if found and found.sweep == answer.sweep and not found.under_way else None

    sweep = starter.until(over, "end all trials", LIMIT_S)
    took_s = time.monotonic() - began_s
    if any(trial.status != "finished" or trial.begun != 1 for trial in sweep.trials):
        raise RuntimeError(f"not every trial finished at once: {sweep.trials}")
    return took_s


def rows(alone_s: float, pair_s: float, fast_s: float, slow_s: float, unequal_s: float) -> list[Row]:
    """``alone_s``: seconds of one trial; ``fast_s`` and ``slow_s``: of a shorter one on each laptop;
    ``pair_s`` and ``unequal_s``: of all trials on two laptops."""
    one_s = TRIALS * alone_s
    speeds = 1 / fast_s + 1 / slow_s
    return [
        Row(what=f"{TRIALS} trials on one laptop", value=one_s, unit="s", note=f"{ALONE} trials measured"),
        Row(what=f"on two, {MBIT} Mbit", value=pair_s, unit="s"),
        Row(what=f"on two, {MBIT} Mbit ÷ on one", value=pair_s / one_s, limit=OF_ALONE),
        Row(what="a shorter trial", value=fast_s, unit="s"),
        Row(what="the same on the slower laptop", value=slow_s, unit="s", note="a third of a core"),
        Row(what=f"{TRIALS} of them on two, one slower", value=unequal_s, unit="s"),
        Row(
            what="on two, one slower: trials a second ÷ the sum of both alone",
            value=TRIALS / unequal_s / speeds,
            limit=OF_SUM,
            at="least",
        ),
    ]
