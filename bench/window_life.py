"""The open window: idle, during a whole run, and what it costs the training."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from app.demo import training
from app.demo.agent import Agent
from bench import machine, processes
from bench.result import Row, median, ratios, spread
from bench.window.opened import Opened, window_and_agents
from core.vocabulary import events as ev
from core.vocabulary.answers import RunAccepted, RunDetails
from core.vocabulary.commands import GetRun, StartRun
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Failed, Finished, ended
from core.vocabulary.plan import RunSpec

ROUNDS = 6
MOST_ROUNDS = 12
CALM = 0.005
"""Fraction of its cores that the machine may lose to others in a round that counts: chance picks the side."""
EPOCHS = 90
IDLE_S = 30.0
RUN_LIMIT_S = 400.0
GAP_LIMIT_MS = 50.0
SPEED_LIMIT = 0.97
MEMORY_LIMIT_MB = 200.0
CPU_LIMIT_PCT = 2.0
PAGE_LIMIT_PCT = 3.0


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as base:
        folder = Path(base).resolve()
        scripts = [training.copy_example(folder / name) for name in ("open", "headless")]
        async with window_and_agents(folder) as (window, first, second):
            found = await _idle(window)
            async with _ticking() as beside:
                watched = await _trained(window, "watch", scripts[0], first, second)
            rounds: list[_Round] = []
            while len(rounds) < MOST_ROUNDS and len(_calm(rounds)) < ROUNDS:
                taken_s, began_s = machine.taken_s(), time.monotonic()
                # Each goes first equally often.
                for is_open in (True, False) if len(_calm(rounds)) % 2 else (False, True):
                    if is_open:
                        shown = await _trained(window, "train", scripts[0], first, second)
                    else:
                        hidden = await _headless(first, second, scripts[1])
                cores_s = (os.cpu_count() or 1) * (time.monotonic() - began_s)
                rounds.append(_Round(shown, *hidden, (machine.taken_s() - taken_s) / cores_s))
            after = await _memory(window, f"after {1 + len(rounds)} runs, every screen visited")
    kept = _calm(rounds)
    if not kept:
        raise RuntimeError("the host took its cores from this machine in every round")
    open_ = [float(each.shown["steps_s"]) for each in kept]
    headless = [each.headless_steps_s for each in kept]
    over = ratios(open_, headless)
    return [
        *found,
        after,
        *_gaps("opening", window.begun),
        *_gaps("a run, then every screen", watched),
        Row(
            what="longest gap of a program beside it that does nothing",
            value=1000 * beside[0],
            unit="ms",
            note="what this machine lets anybody wait",
        ),
        Row(what="training with the window open", value=median(open_), unit="steps/s", note=spread(open_, 1)),
        Row(what="training headless", value=median(headless), unit="steps/s", note=spread(headless, 1)),
        Row(
            what="CPU of the window's process in a run",
            value=median([100 * each.shown["cpu_s"] / each.shown["run_s"] for each in kept]),
            unit="% of a core",
        ),
        Row(
            what="of it the GUI thread, which draws the live page",
            value=median([100 * each.shown["gui_s"] / each.shown["run_s"] for each in kept]),
            unit="% of a core",
            limit=PAGE_LIMIT_PCT,
        ),
        Row(
            what="CPU of the headless agent in a run",
            value=median([each.headless_cpu_pct for each in kept]),
            unit="% of a core",
        ),
        Row(
            what="open ÷ headless",
            value=median(over),
            limit=SPEED_LIMIT,
            at="least",
            note=f"{spread(over)}; {len(rounds) - len(kept)} of {len(rounds)} left out",
        ),
    ]


class _Round(NamedTuple):
    """A run with the window open and one without. ``taken``: the fraction of the cores that the host took."""

    shown: dict[str, Any]
    headless_steps_s: float
    headless_cpu_pct: float
    taken: float


def _calm(rounds: Sequence[_Round]) -> list[_Round]:
    return [each for each in rounds if each.taken <= CALM]


@asynccontextmanager
async def _ticking() -> AsyncIterator[list[float]]:
    """A bare program beside the window; the list then holds its longest gap in seconds."""
    longest: list[float] = []
    pipe = asyncio.subprocess.PIPE
    beside = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.window.beside", stdin=pipe, stdout=pipe
    )
    try:
        yield longest
    finally:
        said, _ = await beside.communicate(b"")  # without this its stdin would stay open
        longest.append(float(said))


async def _idle(window: Opened) -> list[Row]:
    await processes.wait_at_rest(window.pid, quiet_s=0.5, limit_s=60.0)
    before_s, began_s = processes.cpu_s(window.pid), time.monotonic()
    await asyncio.sleep(IDLE_S)
    part = 100 * (processes.cpu_s(window.pid) - before_s) / (time.monotonic() - began_s)
    _, proportional = processes.memory_mb(window.pid)
    return [
        await _memory(window, "idle", window.where),
        Row(what="idle: proportional memory (PSS)", value=proportional, unit="MB"),
        Row(what=f"idle: CPU over {IDLE_S:g} s", value=part, unit="% of a core", limit=CPU_LIMIT_PCT),
    ]


async def _memory(window: Opened, when: str, note: str = "") -> Row:
    await processes.wait_at_rest(window.pid, quiet_s=0.5, limit_s=60.0)
    resident, _ = processes.memory_mb(window.pid)
    return Row(what=f"{when}: resident memory", value=resident, unit="MB", limit=MEMORY_LIMIT_MB, note=note)


async def _trained(window: Opened, how: str, script: Path, *others: Agent) -> dict[str, Any]:
    await free(*others)
    said = await window.tell(how, str(script), "--epochs", str(EPOCHS))
    if not said["finished"]:
        raise RuntimeError(f"the window's run ended as {said['phase']}")
    return said


def _gaps(when: str, said: dict[str, Any]) -> list[Row]:
    gaps = sorted(said["gaps"], key=lambda gap: float(gap["seconds"]))
    longest = gaps[-1]
    busiest = max(gaps, key=lambda gap: float(gap["cpu_s"]))
    return [
        Row(
            what=f"longest gap of the GUI thread: {when}",
            value=1000 * longest["seconds"],
            unit="ms",
            limit=GAP_LIMIT_MS,
            note=f"{1000 * longest['queued_s']:.0f} ms of it others had the cores; {_doing(longest)}",
        ),
        Row(
            what=f"most CPU time in one gap: {when}",
            value=1000 * busiest["cpu_s"],
            unit="ms",
            note=_doing(busiest),
        ),
    ]


def _doing(gap: dict[str, Any]) -> str:
    """The middle one of the stacks sampled during the gap."""
    looks = gap["looks"]
    return " < ".join(looks[len(looks) // 2][:2]) if looks else ""


async def free(*nodes: Agent) -> None:
    """Waits until none of them has a run under way, as any of them sees it."""

    def all_free(node: Agent) -> bool | None:
        busy = node.state.busy or any(device.busy for device in node.state.devices.values())
        return None if busy else True

    for node in nodes:
        await node.until(lambda _, node=node: all_free(node), 60.0, "be free")  # type: ignore[misc]


async def _headless(first: Agent, second: Agent, script: Path) -> tuple[float, float]:
    """Steps per second of a run that no window shows, and the % of a core that the starter's agent took."""
    await free(first, second)
    before_s, began_s = processes.own_cpu_s(first.pid), time.monotonic()
    first.follower.skip()
    spec = RunSpec(script=str(script), arguments=("--epochs", str(EPOCHS)), devices=(second.device,))
    run = (await first.follower.submit(StartRun(spec=spec), RunAccepted)).run
    async with asyncio.timeout(RUN_LIMIT_S):
        while True:
            event, _ = await first.follower.next()
            if isinstance(event, ev.RunPhaseChanged) and event.run == run and ended(event.phase):
                break
    part = 100 * (processes.own_cpu_s(first.pid) - before_s) / (time.monotonic() - began_s)
    if isinstance(event.phase, Failed):
        raise TandemError.of(event.phase.problem)
    details = await first.follower.submit(GetRun(run=run), RunDetails)
    if not isinstance(event.phase, Finished) or details.entry.summary.steps_s is None:
        raise RuntimeError(f"the headless run ended as {event.phase}")
    return details.entry.summary.steps_s, part
