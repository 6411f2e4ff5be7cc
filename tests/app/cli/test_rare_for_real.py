"""``tandem run --sync rare=8`` on two nodes with real trainers: what is said wherever its result is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from app.demo import pairing
from app.demo.agent import Agent, running
from core.vocabulary import events as ev
from core.vocabulary import run_folder
from core.vocabulary.answers import Done
from core.vocabulary.commands import ChangeSettings, SetCodePolicy
from core.vocabulary.ids import RunId
from core.vocabulary.settings import SettingsChange
from tests.app.cli.test_run_for_real import tandem

pytestmark = [pytest.mark.real, pytest.mark.cluster, pytest.mark.timeout(900)]
LIMIT_S = 240
MET = "met every 8 steps: not the result of one machine"
SCRIPT = """
import argparse
import time
from pathlib import Path

import keras
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--rmse", action="store_true", help="a metric of the batch as a whole")
parser.add_argument("--brake", default="", help="while this file exists, a step takes half a second")
args = parser.parse_args()

keras.utils.set_random_seed(3)
x = np.random.RandomState(1).uniform(-1, 1, (1280, 6)).astype("float32")
y = np.sin(x.sum(1, keepdims=True)).astype("float32")


def rmse(true, seen):
    return keras.ops.sqrt(keras.ops.mean(keras.ops.square(true - seen)))


class Brake(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.5 if args.brake and Path(args.brake).exists() else 0.01)


callbacks = [Brake()] if args.brake else []
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse", metrics=[rmse] if args.rmse else [])
model.fit(x, y, batch_size=64, epochs=args.epochs, callbacks=callbacks, verbose=2)
"""
"""An epoch has 20 steps, so members meet after 8, 16 and 20."""


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[Sequence[Agent]]:
    """Paired; the second allows whatever the first sends."""
    async with asyncio.timeout(3 * LIMIT_S), running(2, folder) as (anna, ben):
        await pairing.find_each_other((anna, ben), lambda line: None)
        await pairing.pair(anna, ben, lambda line: None)
        await ben.follower.submit(SetCodePolicy(device=anna.device, policy="always"), Done)
        # All its child processes are to be trainers of a run.
        await ben.follower.submit(ChangeSettings(change=SettingsChange(foresee=False)), Done)
        yield anna, ben


def script_in(folder: Path) -> str:
    script = folder / "project" / "train.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    return str(script)


async def begun(anna: Agent, script: str, *words: str) -> asyncio.subprocess.Process:
    """Words up to ``--`` are Tandem's, the others the script's."""
    home = str(anna.home.folder)
    return await tandem("run", script, "--sync", "rare=8", "--with", "ben", "--home", home, *words)


async def ended(run: asyncio.subprocess.Process) -> str:
    try:
        out, err = await run.communicate()
    finally:
        if run.returncode is None:
            run.kill()
            await run.wait()
    assert b"Traceback" not in out + err, err
    return out.decode()


async def says(agent: Agent, *words: str) -> str:
    """The answer to a command in that laptop's terminal."""
    return await ended(await tandem(*words, "--home", str(agent.home.folder)))


async def heard(agent: Agent, run: RunId) -> list[int]:
    """Every interval between meetings in the events of a run that has ended."""
    found: list[int] = []
    while True:
        event, _ = await agent.follower.next()
        match event:
            case ev.MemberProgressed() if event.run == run:
                found.append(event.progress.met_every)
            case ev.RunSummarised() if event.run == run:
                assert event.summary.met_every == 8
                return found


async def shows_it(agent: Agent, run: RunId) -> None:
    """In this laptop's list of runs, its record of the run and its report."""
    listed = json.loads(await says(agent, "runs", "--json"))["runs"]
    assert {entry["run"]: entry["summary"]["met_every"] for entry in listed}[run] == 8
    record = json.loads(await says(agent, "runs", run, "--json"))["run"]
    assert record["entry"]["summary"]["met_every"] == 8 and record["plan"]["sync"] == "rare=8"
    assert "laptops meet every 8 steps. The result is not that of one machine." in record["log"]
    assert MET.capitalize() in await says(agent, "runs", run)
    report = Path(record["entry"]["folder"]) / run_folder.REPORT
    await exists(report.is_file)
    assert MET.capitalize() in report.read_text()


async def exists(look: Callable[[], object]) -> None:
    """Waits for a file that is written meanwhile."""
    for _ in range(20 * LIMIT_S):
        if look():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it was never written")


async def test_rare_meetings_are_named_with_every_result_and_excuse_no_other_difference(
    tmp_path: Path,
) -> None:
    script = script_in(tmp_path)
    async with two(tmp_path) as (anna, ben):
        run = await begun(anna, script, "--json")
        told = json.loads(await ended(run))
        assert run.returncode == ExitCode.OK
        assert (told["ok"], told["told"], told["not_exact"]) == (True, [], MET)
        assert told["summary"]["met_every"] == 8 and told["summary"]["epochs"] == 2
        assert len(set(told["summary"]["weights_sha256"].values())) == 1
        assert len(told["summary"]["weights_sha256"]) == 2
        for agent in (anna, ben):
            assert set(await heard(agent, told["run"])) == {8}
            await shows_it(agent, told["run"])

        run = await begun(anna, script, "--", "--rmse")
        out = await ended(run)
        assert run.returncode == ExitCode.DIFFERS
        assert "The run is finished, met every 8 steps, but not with the result of one machine." in out
        assert f"{MET.capitalize()}\n" in out and "Not as on one machine: " in out and "rmse" in out
