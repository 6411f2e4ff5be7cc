"""Time from pressing Train to the first training step: with a warm trainer and from a cold start."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from app.demo import training
from app.demo.agent import Agent
from bench import processes
from bench.laptops import two_paired
from bench.result import Row, median, ratios, spread
from core.vocabulary import events as ev
from core.vocabulary.answers import Done, RunAccepted
from core.vocabulary.commands import ChangeSettings, StartRun
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Failed, Training, ended
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import State

ROUNDS = 3
WARM_OF_COLD = 0.5
RUN_LIMIT_S = 180.0
FREE_LIMIT_S = 30.0


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    took: dict[tuple[bool, bool], list[float]] = {
        (alone, warm): [] for alone in (True, False) for warm in (True, False)
    }
    with TemporaryDirectory(prefix="tandem-bench-script-") as folder:
        script = training.copy_example(Path(folder).resolve())
        async with two_paired() as nodes:
            for _ in range(ROUNDS):
                for alone, warm in took:
                    await _make_ready(nodes, warm=warm)
                    took[alone, warm].append(await click_to_first_step(nodes, script, alone=alone))
    rows = []
    for alone, who in ((True, "alone"), (False, "two members on this machine")):
        cold, warm_s = took[alone, False], took[alone, True]
        rows += [
            Row(what=f"{who}, cold", value=median(cold), unit="s", note=spread(cold)),
            Row(what=f"{who}, warm", value=median(warm_s), unit="s", note=spread(warm_s)),
            Row(
                what=f"{who}, warm ÷ cold",
                value=median(ratios(warm_s, cold)),
                limit=WARM_OF_COLD,
                note=spread(ratios(warm_s, cold)),
            ),
        ]
    return rows


async def _make_ready(nodes: Sequence[Agent], *, warm: bool) -> None:
    """Waits until every node keeps a trainer that has imported TensorFlow, or has no child at all."""
    for node in nodes:
        change = SettingsChange(warm_trainer=warm)
        await node.follower.submit(ChangeSettings(change=change), Done)
    for node in nodes:
        await node.until(_all_free, FREE_LIMIT_S, "see every other node free")
        if warm:
            trainer = await processes.wait_for_child(
                node.pid, lambda child: processes.has_loaded(child.pid, processes.TENSORFLOW)
            )
            await processes.wait_at_rest(trainer)
        else:
            await processes.wait_for_no_child(node.pid)


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
