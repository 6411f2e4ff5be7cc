"""``tandem run`` as a person uses it: with an agent already running, and with its own node."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from app.demo import pairing, training
from app.demo.agent import running
from core.vocabulary import events as ev
from core.vocabulary.answers import Done
from core.vocabulary.commands import AnswerConsent
from core.vocabulary.phases import Failed, Phase, ended

pytestmark = [pytest.mark.real, pytest.mark.cluster, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[3]
LIMIT_S = 240
APART = """
import json
import os

import keras
import numpy as np

apart = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker"
data = np.ones((64, 4), "float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
model.compile(optimizer="sgd", loss="mse")
if not apart:
    model.fit(data, data[:, :2], batch_size=16, epochs=2, verbose=2)
model.evaluate(data, data[:, :2], verbose=0)
"""


async def tandem(*argv: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", *argv),
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def read_until(process: asyncio.subprocess.Process, words: str) -> None:
    assert process.stdout is not None
    seen = b""
    while line := await process.stdout.readline():
        seen += line
        if words in line.decode():
            return
    raise AssertionError(f"{words!r} never came: {seen.decode()}")


@pytest.mark.skipif(os.name != "posix", reason="interrupts as POSIX does")
async def test_a_run_through_a_running_agent_is_shown_and_stopped_by_ctrl_c(tmp_path: Path) -> None:
    script = training.copy_example(tmp_path)
    async with asyncio.timeout(LIMIT_S), running(2, tmp_path) as (anna, ben):
        await pairing.find_each_other((anna, ben), lambda line: None)
        await pairing.pair(anna, ben, lambda line: None)
        home = str(anna.home.folder)
        run = await tandem("run", str(script), "--home", home, "--with", "ben", "--", "--epochs", "1000")
        try:
            while not isinstance(asked := (await ben.follower.next())[0], ev.ConsentAsked):
                pass
            await ben.follower.submit(AnswerConsent(run=asked.run, decision="once"), Done)
            await read_until(run, "Two laptops: ")
            await read_until(run, "epoch 1/1000: loss")
            run.send_signal(signal.SIGINT)
            await read_until(run, "Stopping at the end of this step")
            out, err = await run.communicate()
        finally:
            if run.returncode is None:
                run.kill()
                await run.wait()
        assert run.returncode == ExitCode.INTERRUPTED, err
        assert "The run is stopped on anna." in out.decode()
        # Steps too small to share are not compared with one laptop's.
        assert re.search(r"A step took .* of each step was network transfer ", out.decode())
        assert b"Traceback" not in out + err


async def test_scripts_that_go_different_ways_end_with_1_and_are_named_in_json_and_json_lines(
    tmp_path: Path,
) -> None:
    """Checks ``--json`` on the laptop that started the run, and the JSON lines of the other's agent."""
    script = tmp_path / "somewhere" / "project" / "train.py"
    script.parent.mkdir(parents=True)
    script.write_text(APART)
    async with asyncio.timeout(LIMIT_S), running(2, tmp_path) as (anna, ben):
        await pairing.find_each_other((anna, ben), lambda line: None)
        await pairing.pair(anna, ben, lambda line: None)
        home = str(anna.home.folder)
        run = await tandem("run", str(script), "--json", "--home", home, "--with", "ben")
        try:
            while not isinstance(event := (await ben.follower.next())[0], ev.ConsentAsked):
                pass
            await ben.follower.submit(AnswerConsent(run=event.run, decision="once"), Done)
            out, err = await run.communicate()
        finally:
            if run.returncode is None:
                run.kill()
                await run.wait()
        ends: list[Phase] = []
        while not ends:
            event = (await ben.follower.next())[0]
            if isinstance(event, ev.RunPhaseChanged) and ended(event.phase):
                ends.append(event.phase)
    assert run.returncode == ExitCode.FAILED, err
    told = json.loads(out)
    assert (told["ok"], told["phase"]["type"]) == (False, "failed")
    problem = told["problem"]
    assert problem["code"] == "exchange-mismatch"
    assert problem["what"].startswith("The script went different ways: anna wants to begin in fit 1,")
    assert "; ben wants the first batch, of 32 rows of 2 batches" in problem["what"]
    assert isinstance(ends[0], Failed)
    bens = ends[0].problem
    assert (bens.code, bens.what, bens.fix) == (problem["code"], problem["what"], problem["fix"])


async def test_a_run_alone_needs_no_agent_and_reports_in_json(tmp_path: Path) -> None:
    script = training.copy_example(tmp_path)
    async with asyncio.timeout(LIMIT_S):
        run = await tandem(
            *("run", str(script), "--solo", "--json", "--home", str(tmp_path / "home"), "--", "--epochs", "1")
        )
        try:
            out, err = await run.communicate()
        finally:
            if run.returncode is None:
                run.kill()
                await run.wait()
    assert run.returncode == ExitCode.OK, err
    told = json.loads(out)
    assert told["ok"] is True
    assert told["summary"]["epochs"] == 1
    assert (Path(told["folder"]) / "outputs" / "digits.keras").is_file()
    assert "trained/model.keras" in told["summary"]["outputs"]
    assert (Path(told["folder"]) / "outputs" / "trained" / "model.keras").is_file()
