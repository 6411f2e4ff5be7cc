"""Complete trainers with TensorFlow: a run's reports and its end."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from msgspec.structs import replace

from core.project import checkpoint_store
from core.speed.stragglers import straggler
from core.supervisor.spawn import environment
from core.vocabulary import trainer_messages
from core.vocabulary.ids import DeviceId
from core.vocabulary.progress import Progress
from tests.core.trainer.attended import SCRIPTS, Attended, cluster, members

PREDICT = """
import sys, keras, numpy as np
x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
print(keras.models.load_model(sys.argv[1]).predict(x[:4], verbose=0).ravel().tolist())
"""

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


async def predicts(model: Path) -> list[float]:
    """A saved model's predictions in plain Keras, for the first rows of the script's data."""
    python = (sys.executable, "-c", PREDICT, str(model))
    process = await asyncio.create_subprocess_exec(*python, env=environment(), stdout=subprocess.PIPE)
    text, _ = await process.communicate()
    assert process.returncode == 0
    return [float(number) for number in json.loads(text)]


def predictions_of(trainer: Attended) -> list[float]:
    line = next(line for line in trainer.text().splitlines() if line.startswith("predicted"))
    return [float(number) for number in json.loads(line.removeprefix("predicted"))]


async def test_a_script_runs_as_python_would_run_it_and_may_print_megabytes(tmp_path: Path) -> None:
    trainer = Attended(tmp_path / "log", script="prints.py", arguments=("--lr", "0.1 x"))
    exit = await trainer.exit()
    assert exit.reason == "finished", exit
    log = (tmp_path / "log").read_text()
    assert f"argv ['{SCRIPTS / 'prints.py'}', '--lr', '0.1 x']" in log
    assert "name __main__" in log
    assert f"cwd {SCRIPTS}" in log
    assert "told of a cluster []" in log
    assert "beside a module beside the script a file beside the script" in log
    assert "theirs the script's app the script's core deep" in log
    assert len(re.findall("^x{99}$", log, re.M)) == 40_000
    shown = trainer.text()
    assert "the last words" in trainer.text("stderr")
    assert sum(lines.dropped for lines in trainer.output) > 10_000
    assert len(shown) + sum(lines.dropped for lines in trainer.output) * 100 > 4_000_000


async def test_temporary_files_of_a_script_and_of_tensorflow_go_with_the_trainer(tmp_path: Path) -> None:
    place, script = tmp_path / "tmp" / "9f3a01bc-chief-0", tmp_path / "leaves.py"
    script.write_text(
        "import os, subprocess, sys, tempfile\n"
        "import tensorflow as tf\n"
        "@tf.function\n"
        "def double(x):\n"
        "    if x > 1:\n"
        "        return 2 * x\n"
        "    return x\n"
        "double(tf.constant(2.0))\n"
        "tempfile.NamedTemporaryFile(delete=False)\n"
        "ask = 'import tempfile; print(tempfile.mkdtemp())'\n"
        "print(subprocess.run([sys.executable, '-c', ask], capture_output=True, text=True).stdout)\n"
        "print('left', *sorted(os.listdir(tempfile.gettempdir())))\n"
    )
    trainer = Attended(tmp_path / "log", folder=str(tmp_path), script="leaves.py", temporary=str(place))
    assert (await trainer.exit()).reason == "finished"
    said = trainer.text()
    assert f"{place}/tmp" in said, "a program that the script started"
    left = next(line for line in said.splitlines() if line.startswith("left")).split()[1:]
    assert len(left) >= 3 and any("autograph_generated" in name for name in left), left
    assert not place.exists()


async def test_alone_a_fit_reports_steps_epochs_and_its_evaluation(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    trainer = Attended(tmp_path / "log", script="fits.py", arguments=("--epochs", "3"), keep=str(kept))
    exit = await trainer.exit()
    assert exit.reason == "finished", exit
    assert exit.shared
    assert re.fullmatch("[0-9a-f]{64}", exit.weights_sha256)
    assert trainer.of(trainer_messages.Booted)[0].seconds > 0
    assert trainer.of(trainer_messages.Met)[0].replicas == 1
    assert trainer.of(trainer_messages.FitBegan) == [
        trainer_messages.FitBegan(fit=0, epochs=3, steps_in_epoch=4, global_batch=16)
    ]
    assert [epoch.epoch for epoch in trainer.epochs()] == [0, 1, 2]
    assert trainer.epochs()[-1].step == 11
    assert {"loss", "mae"} <= trainer.epochs()[-1].logs.keys()
    last = trainer.progress()[-1]
    assert (last.epoch, last.step, last.batch, last.steps_in_epoch) == (2, 11, 3, 4)
    assert set(trainer.of(trainer_messages.Evaluated)[0].logs) == {"loss", "mae"}
    assert "callbacks ended" in trainer.text()
    assert [path.name for path in kept.iterdir()] == ["model.keras"]
    assert await predicts(kept / "model.keras") == pytest.approx(predictions_of(trainer), abs=1e-6)


async def test_stop_ends_a_fit_at_a_step_with_its_callbacks_ended(tmp_path: Path) -> None:
    slowly = ("--epochs", "100000", "--slow", "0.01")
    trainer = Attended(tmp_path / "log", script="fits.py", arguments=slowly, keep=str(tmp_path / "kept"))
    await trainer.wait(lambda: len(trainer.progress()) > 2)
    trainer.stop()
    exit = await trainer.exit()
    assert exit.reason == "stopped", exit
    assert exit.problem is None
    assert "callbacks ended" in trainer.text()
    assert "evaluated" not in trainer.text()
    assert_ended_where_it_stopped(trainer)
    assert (tmp_path / "kept" / "model.keras").is_file()


async def test_two_cpu_devices_make_a_mirrored_strategy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_CPU_DEVICES", "2")
    trainer = Attended(tmp_path / "log", script="fits.py", keep=str(tmp_path / "kept"))
    exit = await trainer.exit()
    assert exit.reason == "finished", exit
    assert trainer.of(trainer_messages.Met) == [trainer_messages.Met(strategy="MirroredStrategy", replicas=2)]
    assert len(trainer.epochs()) == 2
    assert await predicts(tmp_path / "kept" / "model.keras") == pytest.approx(
        predictions_of(trainer), abs=1e-6
    )


def place(trainer: Attended) -> list[Any]:
    """Where the script's process listens, and the cluster, role and index that it was given."""
    line = next(line for line in trainer.text().splitlines() if line.startswith("place "))
    return list(json.loads(line.removeprefix("place ")))


async def test_two_members_train_together_and_end_with_equal_weights(tmp_path: Path) -> None:
    kept, configs = tmp_path / "kept", cluster(chief=1, worker=1)
    odd: dict[str, Any] = {"script": "fits.py", "arguments": ("--odd", "--place")}
    trainers = list(members(tmp_path, configs, keep=str(kept), **odd).values())
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers))
    assert [exit.reason for exit in exits] == ["finished", "finished"], exits
    assert all(exit.shared for exit in exits)
    assert exits[0].weights_sha256 == exits[1].weights_sha256 != ""
    told = json.loads(configs["chief:0"])["cluster"]
    met = trainer_messages.Met(strategy="MirroredStrategy", replicas=2)
    for trainer, role in zip(trainers, ("chief", "worker"), strict=True):
        host, port = told[role][0].split(":")
        assert place(trainer) == [[[host, int(port)]], json.dumps(told), role, "0"], "it listens there alone"
        assert [type(report) for report in trainer.reports].index(trainer_messages.Connecting) == 1
        assert trainer.of(trainer_messages.Met) == [met]
        assert [epoch.epoch for epoch in trainer.epochs()] == [0, 1, 0]
        last = trainer.progress()[-1]
        assert last.share == 8
        assert last.grad_norm is not None
        assert last.grad_norm > 0
        assert trainer.progress()[0].wire_bytes == 4 * 49, "of two members, each sends every gradient once"
        timed = [(progress.wait_s, progress.step_s) for progress in trainer.progress() if progress.step_s]
        assert all(wait_s is not None and 0 <= wait_s <= step_s for wait_s, step_s in timed)
    assert trainers[0].epochs()[-1].logs == trainers[1].epochs()[-1].logs
    assert sorted(path.name for path in kept.iterdir()) == ["model-2.weights.h5", "model.keras"]
    # Members compute their own rows, and some processors' rounding depends on the number of rows.
    assert await predicts(kept / "model.keras") == pytest.approx(predictions_of(trainers[0]), abs=1e-6)
    said = " ".join(said.words for said in trainers[0].of(trainer_messages.Said))
    assert "Keras cannot save the whole model odd, of the class Odd (NotImplementedError" in said
    assert "saved, as model-2.weights.h5" in said


async def test_a_model_that_does_not_fit_on_the_disk_is_reported_and_fails_no_run(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()  # no folder can be made there
    places: dict[str, Any] = {"keep": str(tmp_path / "kept"), "checkpoints": str(tmp_path / "checkpoints")}
    trainer = Attended(tmp_path / "log", script="fits.py", keep_every_s=0.0, **places)
    exit = await trainer.exit()
    assert exit.reason == "finished", exit
    said = [said.words for said in trainer.of(trainer_messages.Said)]
    assert said[0] == "The trained model (model) could not be saved: Not a directory."
    folder = tmp_path / "checkpoints"
    assert checkpoint_store.newest(folder) is not None, "what was trained is not lost with the model"
    assert said[1:] == [f"Since the model could not be saved, its checkpoints are left in {folder}."]


async def test_stop_ends_both_members_at_one_step(tmp_path: Path) -> None:
    slowly = ("--epochs", "100000", "--slow", "0.01")
    configs = cluster(chief=1, worker=1)
    trainers = list(members(tmp_path, configs, script="fits.py", arguments=slowly).values())
    await trainers[0].wait(lambda: len(trainers[0].progress()) > 2)
    for trainer in trainers:
        trainer.stop()
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers))
    assert [exit.reason for exit in exits] == ["stopped", "stopped"], exits
    assert exits[0].weights_sha256 == exits[1].weights_sha256 != ""
    assert all("callbacks ended" in trainer.text() for trainer in trainers)
    for trainer in trainers:
        assert_ended_where_it_stopped(trainer)


def assert_ended_where_it_stopped(trainer: Attended) -> None:
    """The last epoch is recorded with those of its four steps that were done, up to the newest one."""
    end, newest = trainer.epochs()[-1], trainer.progress()[-1]
    assert end.steps_in_epoch == 4 and end.steps is not None
    assert end.whole == (end.steps == 4)
    assert newest.done == end.step + 1 == 4 * end.epoch + end.steps


def usual(trainer: Attended) -> Progress:
    """The last step, with the median of all times: momentary hold-ups of the machine are ignored."""
    timed = [step for step in trainer.progress() if step.step_s and step.wait_s is not None]
    times = {name: median(getattr(step, name) for step in timed) for name in ("step_s", "wait_s", "wire_s")}
    return replace(timed[-1], **times)


async def test_the_member_that_others_wait_for_is_named(tmp_path: Path) -> None:
    trainers = list(members(tmp_path, cluster(chief=1, worker=1), script="slow_member.py").values())
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers))
    assert [exit.reason for exit in exits] == ["finished", "finished"], (exits, trainers[0].text("stderr"))
    chief, worker = (usual(trainer) for trainer in trainers)
    found = straggler({DeviceId("chief"): chief, DeviceId("worker"): worker})
    assert found is not None, (chief, worker)
    assert found.device == "worker"
    assert found.step_s >= 0.1
    assert found.waits_s[DeviceId("chief")] > 0.5 * 0.1
    assert chief.wire_s is not None and worker.wire_s is not None and chief.wait_s is not None
    assert worker.wire_s < 0.5 * chief.wait_s, "who waits for the worker does not wait for the wire"
    told = [trainer.of(trainer_messages.Measured) for trainer in trainers]
    assert told[0] == told[1]
    (measured,) = told[0]
    assert measured.expectation.shares == (8, 8)
    assert measured.expectation.alone_s[1] > 0.1 and measured.expectation.wire_s < 0.03
