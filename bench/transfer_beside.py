"""Two laptops train over a slow wire while a third one, added in the middle, receives the project through the
starter's cable: the steps that are done meanwhile, by those of the same time before."""

from __future__ import annotations

import random
import time
from pathlib import Path

from bench.processes import MB
from bench.result import Row, median, spread
from bench.transfer_speed import laptops
from core.vocabulary import events as ev
from core.vocabulary.commands import AddLaptops, StopRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Stopping
from core.vocabulary.plan import RunSpec
from tests.lab.agent import Agent

MBIT, ROUNDS = 240, 3
SIZE_MB = 60
KEPT = 0.9
SETTLE_S, ALONE_S, LIMIT_S = 10.0, 20.0, 120.0
SCRIPT = """
import keras
import numpy as np

rows = np.random.default_rng(0).standard_normal((64 * 100, 1000)).astype("float32")
model = keras.Sequential([keras.layers.Dense(1000), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(rows, rows[:, :1], batch_size=64, epochs=1000, verbose=0)
"""


def measure() -> list[Row]:
    found, rates = list[float](), list[float]()
    with laptops(MBIT, hosts=3) as (lab, (starter, other, late)):
        for number in range(ROUNDS):
            script = lab.folder / f"project-{number}" / "train.py"
            script.parent.mkdir()
            script.write_text(SCRIPT, encoding="utf-8")
            script.with_name("data.bin").write_bytes(random.Random(number).randbytes(SIZE_MB * MB))
            before, beside, took_s = _steps_s(starter, other, late, script)
            found.append(beside / before)
            rates.append(SIZE_MB / took_s)
    return rows(found, rates)


def _steps_s(starter: Agent, other: Agent, late: Agent, script: Path) -> tuple[float, float, float]:
    """Steps per second before the third laptop receives the project, and meanwhile; how long that takes."""
    run = starter.train(RunSpec(script=str(script), devices=(other.device,)))
    starter.trains(run)
    time.sleep(SETTLE_S + ALONE_S)
    added_s = time.monotonic()
    starter.do(AddLaptops(run=run, devices=(late.device,)))

    def stops_for_it(event: ev.RunPhaseChanged) -> bool:
        return event.run == run and isinstance(event.phase, Stopping)

    ready_s = starter.hears(ev.RunPhaseChanged, stops_for_it, limit_s=LIMIT_S).at_s
    before, beside = _rate(starter, run, added_s - ALONE_S, added_s), _rate(starter, run, added_s, ready_s)
    starter.do(StopRun())
    for agent in (starter, other, late):
        agent.until(lambda state: state.run is None or state.run.over or None, "stop", LIMIT_S)
    return before, beside, ready_s - added_s


def _rate(agent: Agent, run: RunId, begin_s: float, end_s: float) -> float:
    """Steps per second of its own trainer between two moments."""
    steps = [
        (told.at_s, told.event.progress.step)
        for told in agent.told
        if isinstance(told.event, ev.MemberProgressed)
        and (told.event.run, told.event.device) == (run, agent.device)
        and begin_s <= told.at_s <= end_s
    ]
    (first_s, first), (last_s, last) = steps[0], steps[-1]
    return (last - first) / (last_s - first_s)


def rows(found: list[float], rates: list[float]) -> list[Row]:
    """``found``: steps per second during the transfer by those before, a round each. ``rates``: MB/s."""
    return [
        Row(
            what=f"a training at {MBIT} Mbit/s beside a transfer: steps ÷ without it",
            value=median(found),
            limit=KEPT,
            at="least",
            note=f"{spread(found)}; {median(rates):.1f} MB/s of files",
        )
    ]
