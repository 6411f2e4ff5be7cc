"""Time from pressing Train to the first training step: from a cold start, with the form open for a while, and
with a trainer that is always kept ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from app.demo import training
from app.demo.agent import Agent
from bench import processes
from bench.laptops import two_paired
from bench.result import Row, median, ratios, spread
from core.vocabulary import events as ev
from core.vocabulary.answers import Done, PlanMade, RunAccepted
from core.vocabulary.commands import AnalyseScript, ChangeSettings, PlanRun, StartRun
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Failed, Training, ended
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import State

ROUNDS = 3
OPEN_S = 10.0
"""How long the form was open."""
ALONE_LIMITS, TOGETHER_LIMITS = {"open": 0.5, "kept": 0.5}, {"open": 0.35, "kept": 0.25}
"""Maximum shares of a cold start's time."""
Start = Literal["cold", "open", "kept"]
HOW: dict[Start, str] = {"cold": "cold", "open": "form open for 10 s", "kept": "trainer kept ready"}
RUN_LIMIT_S = 180.0
FREE_LIMIT_S = 30.0


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    took: dict[tuple[bool, Start], list[float]] = {
        (alone, start): [] for alone in (True, False) for start in HOW
    }
    with TemporaryDirectory(prefix="tandem-bench-script-") as folder:
        script = training.copy_example(Path(folder).resolve())
        async with two_paired() as nodes:
            for _ in range(ROUNDS):
                for alone, start in took:
                    await make_ready(nodes, start)
                    if start == "open":
                        await _open_form(nodes, script, alone=alone)
                    took[alone, start].append(await click_to_first_step(nodes, script, alone=alone))
    rows = []
    for alone, who in ((True, "alone"), (False, "two members on this machine")):
        limits = ALONE_LIMITS if alone else TOGETHER_LIMITS
        for start, how in HOW.items():
            seconds, cold = took[alone, start], took[alone, "cold"]
            rows.append(Row(what=f"{who}, {how}", value=median(seconds), unit="s", note=spread(seconds)))
            if start != "cold":
                of_cold = ratios(seconds, cold)
                what = f"{who}, {how} ÷ cold"
                rows.append(Row(what=what, value=median(of_cold), limit=limits[start], note=spread(of_cold)))
    return rows


async def make_ready(nodes: Sequence[Agent], start: Start) -> None:
    """Waits until every node keeps a trainer that has imported TensorFlow, or has no child at all."""
    for node in nodes:
        change = SettingsChange(warm_trainer=start == "kept", foresee=start == "open")
        await node.follower.submit(ChangeSettings(change=change), Done)
    for node in nodes:
        await node.until(_all_free, FREE_LIMIT_S, "see every other node free")
        if start == "kept":
            await _wait_for_trainer(node)
        else:
            await processes.wait_for_no_child(node.pid)


async def _open_form(nodes: Sequence[Agent], script: Path, *, alone: bool) -> None:
    """Sends what the window sends once a script is chosen, and then waits."""
    starter, *others = nodes
    await starter.follower.node.submit(AnalyseScript(path=str(script)))
    spec = RunSpec(script=str(script), solo=alone, devices=tuple(other.device for other in others))
    await starter.follower.submit(PlanRun(spec=spec), PlanMade)
    await asyncio.sleep(OPEN_S)
    for node in nodes[:1] if alone else nodes:
        await _wait_for_trainer(node)


async def _wait_for_trainer(node: Agent) -> None:
    trainer = await processes.wait_for_child(
        node.pid, lambda child: processes.has_loaded(child.pid, processes.TENSORFLOW)
    )
    await processes.wait_at_rest(trainer)


def _all_free(state: State) -> bool | None:
    return None if any(device.busy for device in state.devices.values()) else True


async def click_to_first_step(nodes: Sequence[Agent], script: Path, *, alone: bool) -> float:
    """Seconds as seen by the starter. Returns when the run has ended for every member."""
    starter, *others = nodes
    members = nodes[:1] if alone else nodes
    for node in nodes:
        node.follower.skip()
    spec = RunSpec(
        script=str(script),
        arguments=("--epochs", "1"),
        solo=alone,
        devices=() if alone else tuple(other.device for other in others),
    )
    began_s = time.monotonic()
    run = (await starter.follower.submit(StartRun(spec=spec), RunAccepted)).run
    async with asyncio.timeout(RUN_LIMIT_S):
        first_s, *_ = await asyncio.gather(*(_follow(node, run, began_s) for node in members))
    if first_s is None:
        raise RuntimeError("the run ended without a step")
    return first_s


async def _follow(node: Agent, run: str, began_s: float) -> float | None:
    first_s = None
    while True:
        event, _ = await node.follower.next()
        if not (isinstance(event, ev.RunPhaseChanged) and event.run == run):
            continue
        if isinstance(event.phase, Training) and first_s is None:
            first_s = time.monotonic() - began_s
        if isinstance(event.phase, Failed):
            raise TandemError.of(event.phase.problem)
        if ended(event.phase):
            return first_s
