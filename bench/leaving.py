"""A trainer is killed in a run in which both laptops have loaded the next one: the time until the other makes
its next step, and until the laptop is back in the run, beside the start of the same run from cold and with
trainers that are kept ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from app.demo.agent import Agent
from bench import processes
from bench.first_step import make_ready
from bench.laptops import two_paired
from bench.result import Row, median, ratios, spread
from core.project import checkpoint_store
from core.vocabulary import events as ev
from core.vocabulary import run_folder
from core.vocabulary.answers import Done, RunAccepted
from core.vocabulary.commands import ChangeSettings, StartRun, StopRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Failed, ended
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange

ROUNDS = 5
NEXT_STEP_S, NEXT_STEP_OF_COLD, BACK_OF_KEPT = 1.5, 0.25, 1.5
LIMIT_S = 180.0
SCRIPT = """
import time

import keras
import numpy as np


class Paced(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.05)


rows = np.random.default_rng(0).standard_normal((64 * 100, 32)).astype("float32")
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(rows, rows.sum(axis=1), batch_size=64, epochs=1000, verbose=0, callbacks=[Paced()])
"""


class Took(NamedTuple):
    """Seconds. ``next_step`` and ``back`` count from the kill."""

    cold: float
    kept: float
    next_step: float
    back: float


def measure() -> list[Row]:
    return rows(asyncio.run(_measure()))


async def _measure() -> list[Took]:
    found = []
    with TemporaryDirectory(prefix="tandem-bench-script-") as folder:
        script = Path(folder).resolve() / "paced.py"
        script.write_text(SCRIPT, encoding="utf-8")
        async with two_paired() as nodes:
            for _ in range(ROUNDS):
                await make_ready(nodes, "cold")
                run, cold_s = await _start(nodes, script)
                for node in nodes:  # as by default
                    change = SettingsChange(foresee=True)
                    await node.follower.submit(ChangeSettings(change=change), Done)
                next_step_s, back_s = await _lose_and_regain(nodes, run)
                await _stop(nodes)
                await make_ready(nodes, "kept")
                _, kept_s = await _start(nodes, script)
                await _stop(nodes)
                found.append(Took(cold_s, kept_s, next_step_s, back_s))
    return found


async def _start(nodes: Sequence[Agent], script: Path) -> tuple[RunId, float]:
    """Seconds until every member, as the starter sees them, has made a step."""
    starter, *others = nodes
    spec = RunSpec(script=str(script), devices=tuple(other.device for other in others))
    began_s = time.monotonic()
    run = (await starter.follower.submit(StartRun(spec=spec), RunAccepted)).run
    await _steps(starter, nodes, lambda of: of == run)
    return run, time.monotonic() - began_s


async def _lose_and_regain(nodes: Sequence[Agent], run: RunId) -> tuple[float, float]:
    """Kills the other's trainer; seconds until the starter's next step, and until the other's."""
    starter, other = nodes
    async with asyncio.timeout(LIMIT_S):
        for node in nodes:
            folder = node.home.runs / run / run_folder.CHECKPOINTS
            while checkpoint_store.newest_by_size(folder) is None:  # noqa: ASYNC110 (another process: nobody tells)
                await asyncio.sleep(0.05)
    for node in nodes:
        await processes.wait_at_rest(await _child(node, trains=False))
    trainer = await _child(other, trains=True)
    starter.follower.skip()
    psutil.Process(trainer).kill()
    killed_s = time.monotonic()
    await _hear(starter, lambda event: isinstance(event, ev.MemberLeft) and event.device == other.device)
    await _steps(starter, [starter], lambda _: True)
    next_step_s = time.monotonic() - killed_s
    await _steps(starter, [other], lambda of: of != run)
    return next_step_s, time.monotonic() - killed_s


async def _child(node: Agent, *, trains: bool) -> int:
    """The process of this node that trains, or the one that loads TensorFlow and waits with one thread."""
    return await processes.wait_for_child(
        node.pid,
        lambda child: (
            processes.has_loaded(child.pid, processes.TENSORFLOW) and (child.num_threads() > 1) == trains
        ),
    )


async def _steps(node: Agent, members: Sequence[Agent], of: Callable[[RunId], bool]) -> None:
    """Waits until the node has heard of a step by each of these members, in such a run."""
    left = {member.device for member in members}

    def is_last(event: ev.Event) -> bool:
        if isinstance(event, ev.MemberProgressed) and of(event.run):
            left.discard(event.device)
        return not left

    await _hear(node, is_last)


async def _hear(node: Agent, hears: Callable[[ev.Event], bool]) -> None:
    """Waits for such an event. Raises ``TandemError`` if a run fails, TimeoutError."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            event, _ = await node.follower.next()
            if isinstance(event, ev.RunPhaseChanged) and isinstance(event.phase, Failed):
                raise TandemError.of(event.phase.problem)
            if hears(event):
                return


async def _stop(nodes: Sequence[Agent]) -> None:
    """Returns when the run has ended for every member."""
    await nodes[0].follower.submit(StopRun(), Done)
    for node in nodes:
        await node.until(lambda state: state.run is None or ended(state.run.phase) or None, LIMIT_S, "stop")
        node.follower.skip()


def rows(took: Sequence[Took]) -> list[Row]:
    cold, kept, next_step, back = (list(each) for each in zip(*took, strict=True))

    def seconds(what: str, found: list[float], limit: float | None = None) -> Row:
        return Row(what=what, value=median(found), unit="s", limit=limit, note=spread(found))

    of_cold, of_kept = ratios(next_step, cold), ratios(back, kept)
    return [
        seconds("start of a run, cold", cold),
        seconds("start of a run, trainers kept ready", kept),
        seconds("trainer killed → the other's next step", next_step, NEXT_STEP_S),
        Row(
            what="next step ÷ start from cold",
            value=median(of_cold),
            limit=NEXT_STEP_OF_COLD,
            note=spread(of_cold),
        ),
        seconds("trainer killed → its laptop trains again", back),
        Row(
            what="trains again ÷ start with trainers kept ready",
            value=median(of_kept),
            limit=BACK_OF_KEPT,
            note=spread(of_kept),
        ),
    ]
