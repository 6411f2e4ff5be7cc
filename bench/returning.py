"""A laptop loses its network, its lid is closed, or its Tandem is killed, while two train: the time from
plugging the cable in again, opening the lid, or starting Tandem again, until both train together."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import psutil

from bench import processes
from bench.leaving import NEXT_STEP_OF_COLD, NEXT_STEP_S, SCRIPT
from bench.result import Row, median, ratios, spread
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
from tests.lab.lab import Lab, is_linked, linked

MBIT, ROUNDS = 240, 3
ALONE_S = 20.0
"""For so long both halves, or the laptop that is left, have gone on by themselves."""
CABLE_S = 5.0
BACK_OF_STARTS = 1.5
LIMIT_S, REST_S = 60.0, 3.0
Fault = Callable[[Lab, Agent], AbstractContextManager[None]]
FAULTS: dict[str, tuple[Fault, float | None]] = {
    "cable plugged in again": (lambda lab, other: faults.cable_out(lab.network, 1), CABLE_S),
    "lid opened": (lambda lab, other: faults.lid_closed(lab.network, 1, other), None),
}


class Killed(NamedTuple):
    """Seconds. ``cold``: from pressing Train to a step by both. ``next_step``: from the kill to the other's.
    From the restart: ``tandem``, until it is connected; ``back``, until it trains."""

    cold: float
    next_step: float
    tandem: float
    back: float


def measure() -> list[Row]:
    took_s: dict[str, list[float]] = {fault: [] for fault in FAULTS}
    killed = list[Killed]()
    with laptops(MBIT) as (lab, (starter, other)):
        script = lab.folder / "project" / "paced.py"
        script.parent.mkdir()
        script.write_text(SCRIPT, encoding="utf-8")
        _load_ahead(True, starter, other)
        for _ in range(ROUNDS):
            for what, (fault, _) in FAULTS.items():
                took_s[what].append(_back_s(starter, other, script, fault(lab, other)))
        for _ in range(ROUNDS):
            _load_ahead(False, starter, other)
            killed.append(_killed(lab, starter, other, script))
            other = lab.agent(1)
            linked(starter, other)
    return rows(took_s) + killed_rows(killed)


def _load_ahead(loads: bool, *agents: Agent) -> None:
    """Whether they load TensorFlow before it is needed, which is the default."""
    for agent in agents:
        agent.do(ChangeSettings(change=SettingsChange(foresee=loads)))


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
    _stop(starter, other)
    return first.at_s - back_s


def _killed(lab: Lab, starter: Agent, other: Agent, script: Path) -> Killed:
    """Ends with the other's Tandem closed."""
    pressed_s, device = time.monotonic(), other.device
    run = starter.train(RunSpec(script=str(script), devices=(device,)))
    starter.trains(run)
    cold_s = time.monotonic() - pressed_s
    _load_ahead(True, starter, other)
    for agent in (starter, other):
        _wait_for_spare(agent, run)
    heard = len(starter.told)
    other.kill()
    killed_s = time.monotonic()
    left = starter.hears(ev.MemberLeft, lambda event: event.device == device, since=heard, limit_s=LIMIT_S)
    step = starter.hears(
        ev.MemberProgressed,
        lambda event: event.device == starter.device,
        since=starter.told.index(left),
        limit_s=LIMIT_S,
    )
    other.waits_until_gone()
    began_s, heard = time.monotonic(), len(starter.told)
    with Agent(lab.home(1), enter=lab.enter(1)) as again:
        starter.until(lambda state: is_linked(state, device) or None, "connect", LIMIT_S)
        tandem_s = time.monotonic() - began_s
        first = starter.hears(
            ev.MemberProgressed,
            lambda event: event.run != run and event.device == device,
            since=heard,
            limit_s=LIMIT_S,
        )
        _stop(starter, again)
    return Killed(cold_s, step.at_s - killed_s, tandem_s, first.at_s - began_s)


def _stop(starter: Agent, other: Agent) -> None:
    starter.do(StopRun())
    for agent in (starter, other):
        agent.until(lambda state: state.run is None or state.run.over or None, "stop")
    linked(starter, other)


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


def killed_rows(took: list[Killed]) -> list[Row]:
    cold, next_step, tandem, back = (list(each) for each in zip(*took, strict=True))
    of_cold = ratios(next_step, cold)
    of_starts = ratios(back, [sum(starts) for starts in zip(tandem, cold, strict=True)])

    def seconds(what: str, found: list[float], limit: float | None = None) -> Row:
        return Row(what=what, value=median(found), unit="s", limit=limit, note=spread(found))

    def part(what: str, found: list[float], limit: float) -> Row:
        return Row(what=what, value=median(found), limit=limit, note=spread(found))

    return [
        seconds("start of a run, cold", cold),
        seconds("Tandem killed → the other's next step", next_step, NEXT_STEP_S),
        part("next step ÷ start from cold", of_cold, NEXT_STEP_OF_COLD),
        seconds("Tandem started again → connected", tandem),
        seconds("Tandem started again → both train together", back),
        part("both train together ÷ (connected + start from cold)", of_starts, BACK_OF_STARTS),
    ]
