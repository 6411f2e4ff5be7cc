"""``tandem resume`` as a person uses it, after every laptop's trainer was killed during training."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from app.demo import pairing
from app.demo.agent import running
from core.vocabulary import events as ev
from core.vocabulary import run_folder
from core.vocabulary.answers import Done, RunDetails
from core.vocabulary.commands import AnswerConsent, FindCheckpoints, GetRun
from core.vocabulary.ids import RunId
from tests.app.cli.test_run_for_real import tandem

pytestmark = [pytest.mark.real, pytest.mark.cluster, pytest.mark.timeout(900)]
LIMIT_S = 600

SCRIPT = """
import os, pathlib, signal, sys
import keras
import numpy as np

marker = pathlib.Path(sys.argv[1])
dies = marker.exists()

class Die(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if dies and self.epoch == 1 and batch == 60:
            if "chief" in os.environ["TF_CONFIG"].split('"task"')[1]:
                marker.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

x = np.random.normal(size=(800, 6)).astype("float32")
y = x.sum(axis=1, keepdims=True)
layers = [keras.layers.Dense(8), keras.layers.Dropout(0.2), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input((6,)), *layers])
model.compile("adam", "mse")
model.fit(x, y, batch_size=8, epochs=1, verbose=0)
model.fit(x, y, batch_size=8, epochs=3, callbacks=[Die()], verbose=0)
"""


async def result(process: asyncio.subprocess.Process) -> dict[str, object]:
    out, err = await process.communicate()
    assert out, err
    return dict(json.loads(out.splitlines()[-1]))


@pytest.mark.complete
async def test_a_killed_training_goes_on_though_one_laptop_alone_has_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within_walls: Path
) -> None:
    monkeypatch.setenv("TANDEM_KEEP_EVERY_S", "0.01")
    marker, script = within_walls / "marker", tmp_path / "project" / "train.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    marker.touch()
    async with asyncio.timeout(LIMIT_S), running(2, tmp_path) as (anna, ben):
        await pairing.find_each_other((anna, ben), lambda line: None)
        await pairing.pair(anna, ben, lambda line: None)
        home = str(anna.home.folder)
        shares = ("--share", "me=5", "--share", "ben=3")
        first = await tandem(
            *("run", str(script), "--home", home, "--with", "ben", *shares, "--seed", "3", "--json"),
            *("--", str(marker)),
        )
        while not isinstance(asked := (await ben.follower.next())[0], ev.ConsentAsked):
            pass
        await ben.follower.submit(AnswerConsent(run=asked.run, decision="once"), Done)
        failed = await result(first)
        assert first.returncode == ExitCode.FAILED and not marker.exists(), failed

        run = RunId(str(failed["run"]))
        before = await anna.follower.submit(GetRun(run=run), RunDetails)
        assert before.checkpoint is not None and before.checkpoint.fit == 1
        shutil.rmtree(anna.home.runs / run / run_folder.CHECKPOINTS)
        await anna.follower.submit(FindCheckpoints(run=run), Done)
        assert anna.follower.state.checkpoints[run].moment.fit == 1
        second = await tandem("resume", run[:-2], "--home", home, "--json")
        out, said = await second.communicate()
        finished = json.loads(out.splitlines()[-1])
        assert b"Fetching the checkpoint from ben: 0 bytes of " in said
        assert second.returncode == ExitCode.OK, finished

        after = await anna.follower.submit(GetRun(run=RunId(str(finished["run"]))), RunDetails)
        assert after.entry.resumed == run and after.checkpoint is None
        assert "Resuming fit 2 in epoch " in after.log
        assert after.plan is not None and before.plan is not None
        assert after.plan.members == before.plan.members and not after.plan.balance
        for node in (anna, ben):
            assert not (node.home.runs / after.entry.run / run_folder.CHECKPOINTS).exists()
        third = await tandem("resume", run, "--solo", "--home", home, "--json")
        alone = await result(third)
        assert third.returncode == ExitCode.OK, alone
