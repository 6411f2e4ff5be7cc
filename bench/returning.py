"""A laptop loses its network, or its lid is closed, while two train: the time from plugging the cable in
again, or opening the lid, until both train together."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import psutil

from bench import processes
from bench.leaving import SCRIPT
from bench.result import Row, median, spread
from bench.transfer_speed import laptops
from core.project import checkpoint_store
from core.vocabulary import events as ev
from core.vocabulary import run_folder
from core.vocabulary.commands import ChangeSettings, StopRun
from core.vocabulary.ids import RunId
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from tests.lab import faults
from tests.lab.agent import Agent
from tests.lab.lab import Lab, linked

MBIT, ROUNDS = 240, 3
ALONE_S = 20.0
"""For so long both halves, or the laptop that is left, have gone on by themselves."""
CABLE_S = 5.0
LIMIT_S, REST_S = 60.0, 3.0
Fault = Callable[[Lab, Agent], AbstractContextManager[None]]
FAULTS: dict[str, tuple[Fault, float | None]] = {
    "cable plugged in again": (lambda lab, other: faults.cable_out(lab.network, 1), CABLE_S),
    "lid opened": (lambda lab, other: faults.lid_closed(lab.network, 1, other), None),
}


def measure() -> list[Row]:
    took_s: dict[str, list[float]] = {fault: [] for fault in FAULTS}
    with laptops(MBIT) as (lab, (starter, other)):
        script = lab.folder / "project" / "paced.py"
        script.parent.mkdir()
        script.write_text(SCRIPT, encoding="utf-8")
        for agent in (starter, other):  # as by default
            agent.do(ChangeSettings(change=SettingsChange(foresee=True)))
        for _ in range(ROUNDS):
            for what, (fault, _) in FAULTS.items():
                took_s[what].append(_back_s(starter, other, script, fault(lab, other)))
    return rows(took_s)


def _back_s(starter: Agent, other: Agent, script: Path, fault: AbstractContextManager[None]) -> float:
    run = starter.train(RunSpec(script=str(script), devices=(other.device,)))
    for agent in (starter, other):
        agent.trains(run)
        _wait_for_spare(agent, run)
    heard = len(starter.told)
    with fault:
        starter.hears(ev.MemberLeft, lambda event: event.device == other.device, since=heard, limit_s=LIMIT_S)
        time.sleep(ALONE_S)
    back_s, heard = time.monotonic(), len(starter.told)
    first = starter.hears(
        ev.MemberProgressed,
        lambda event: event.run != run and event.device == other.device,
        since=heard,
        limit_s=LIMIT_S,
    )
    assert {member.device for member in starter.run().plan.members} == {starter.device, other.device}
    starter.do(StopRun())
    for agent in (starter, other):
        agent.until(lambda state: state.run is None or state.run.over or None, "stop")
    linked(starter, other)
    return first.at_s - back_s


def _wait_for_spare(agent: Agent, run: RunId) -> None:
    """Until it has a checkpoint, and has loaded the next trainer, which has one thread."""
    until_s = time.monotonic() + LIMIT_S
    folder = agent.home.runs / run / run_folder.CHECKPOINTS
    while checkpoint_store.newest_by_size(folder) is None or not any(map(_is_spare, agent.trainers())):
        if time.monotonic() > until_s:
            raise TimeoutError(f"{agent.name} has no checkpoint, or has not loaded the next trainer")
        time.sleep(0.1)
    time.sleep(REST_S)


def _is_spare(trainer: psutil.Process) -> bool:
    return trainer.num_threads() == 1 and processes.has_loaded(trainer.pid, processes.TENSORFLOW)


def rows(took_s: dict[str, list[float]]) -> list[Row]:
    return [
        Row(
            what=f"{what} → both train together",
            value=median(took_s[what]),
            unit="s",
            limit=limit,
            note=spread(took_s[what]),
        )
        for what, (_, limit) in FAULTS.items()
    ]
