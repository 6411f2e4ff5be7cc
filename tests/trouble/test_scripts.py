"""Scripts that are none, that fail, that leave, that shout: each member says which, where, and what to do."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest

from core.vocabulary import events as ev
from core.vocabulary.answers import RunDetails
from core.vocabulary.commands import GetRun, StartRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from tests.lab.agent import Agent
from tests.lab.laptops import Laptops, reason, weights

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

FIT = """
import keras
import numpy as np

x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""


def script(folder: Path, text: str, **beside: str) -> RunSpec:
    """A project with ``train.py`` and further modules, to be run on every laptop."""
    folder.mkdir()
    (folder / "train.py").write_text(text)
    for name, content in beside.items():
        (folder / f"{name}.py").write_text(content)
    return RunSpec(script=str(folder / "train.py"))


def failure(laptops: Laptops, run: RunId) -> str:
    """Why it failed: the same on both screens, and nothing runs any more."""
    said = {(agent.ends(run), reason(agent.run().phase))[1] for agent in (laptops.anna, laptops.ben)}
    assert len(said) == 1, said
    assert laptops.anna.trainers() == laptops.ben.trainers() == []
    return said.pop()


def written(agent: Agent, run: RunId) -> str:
    """Everything that the trainers of this laptop wrote, from the files of its run."""
    details = agent.ask(GetRun(run=run))
    assert isinstance(details, RunDetails)
    return "".join(path.read_text() for path in sorted(Path(details.entry.folder).rglob("*.log")))


def told(agent: Agent, run: RunId, stream: str) -> str:
    """What this screen shows of that stream."""
    events = [told.event for told in agent.told if isinstance(told.event, ev.MemberLogged)]
    return "\n".join(each.lines.text for each in events if each.run == run and each.lines.stream == stream)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("train.py", None, "There is no script at "),
        ("photo.jpg", bytes.fromhex("ffd8ffe000104a464946"), "photo.jpg is not a Python script"),
        ("train.py", b"\x7fELF\x02\x01\x01\x00\x00", "train.py is not a Python script"),
        ("train.py", b"import keras\nmodel.fit(x, y\n", "train.py has a syntax error in line 2"),
        ("train.py", b"", "train.py is empty"),
    ],
    ids=["missing", "a picture", "a program", "a syntax error", "empty"],
)
def test_what_is_no_script_is_refused_at_once(
    laptops: Laptops, tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = laptops.ben.state.run

    problem = laptops.anna.refused(StartRun(spec=RunSpec(script=str(tmp_path / name))))

    assert problem.what.startswith(words)
    assert not laptops.anna.state.busy and laptops.ben.state.run == before


@pytest.mark.cluster
def test_an_error_at_import_is_named_with_its_file_and_line(laptops: Laptops, tmp_path: Path) -> None:
    beside = "import os\n\nraise RuntimeError('the data set is not here')\n"
    run = laptops.anna.train(
        script(tmp_path / "project", f"import beside\n{FIT}model.fit(x, x)\n", beside=beside)
    )

    said = failure(laptops, run)

    print(said)
    assert said.startswith("script-error: On ")
    assert "the data set is not here" in said and "beside.py" in said and "line 3" in said


@pytest.mark.cluster
def test_an_error_on_one_member_alone_ends_both_and_names_it(laptops: Laptops, tmp_path: Path) -> None:
    text = f"""{FIT}
import json
import os


class Breaks(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        task = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
        if task == "worker" and self.model.optimizer.iterations > 20:
            raise ValueError("the data ran out")


model.fit(x, x[:, :1], batch_size=16, epochs=100000, verbose=0, callbacks=[Breaks()])
"""
    run = laptops.anna.train(script(tmp_path / "project", text))

    said = failure(laptops, run)

    print(said)
    assert said.startswith("script-error: On ben: ValueError: the data ran out")
    assert "(train.py, line " in said
    detail = getattr(laptops.anna.run().phase, "problem").detail  # noqa: B009
    assert "raise ValueError" in detail and "core/trainer" not in detail


@pytest.mark.cluster
@pytest.mark.parametrize("after_fit_s", [0, 3], ids=["both at once", "the chief is slower"])
def test_a_worker_that_cannot_write_does_not_throw_away_the_training(
    laptops: Laptops, tmp_path: Path, after_fit_s: int
) -> None:
    text = f"""{FIT}
import json
import os
import time

history = model.fit(x, x[:, :1], batch_size=16, epochs=5, verbose=0)
if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker":
    with open("/dev/full", "w") as file:
        file.write(str(history.history))
time.sleep({after_fit_s})
"""
    run = laptops.anna.train(script(tmp_path / "project", text))

    assert "On ben: OSError: [Errno 28] No space left on device" in failure(laptops, run)

    details = laptops.anna.ask(GetRun(run=run))
    assert isinstance(details, RunDetails)
    kept = Path(details.entry.folder) / "outputs" / "trained" / "model.keras"
    by_s = time.monotonic() + 60
    while not kept.exists():
        assert time.monotonic() < by_s, sorted(Path(details.entry.folder).rglob("*"))
        time.sleep(0.1)
    with zipfile.ZipFile(kept) as archive:
        assert "model.weights.h5" in archive.namelist()
    assert "keeps the weights before the run ends" in told(laptops.anna, run, "tandem")


@pytest.mark.cluster
def test_a_script_that_leaves_says_so(laptops: Laptops, tmp_path: Path) -> None:
    text = f"import sys\n{FIT}model.fit(x, x[:, :1])\nsys.exit('nothing more to do today')\n"
    run = laptops.anna.train(script(tmp_path / "project", text))

    said = failure(laptops, run)

    print(said)
    assert said.startswith("script-left: On ")
    assert "'nothing more to do today'" in said


@pytest.mark.cluster
def test_a_script_with_packages_of_our_names_that_prints_megabytes_trains(
    laptops: Laptops, tmp_path: Path
) -> None:
    text = f"""
import app
import core
from core.deep import depth
{FIT}
print("theirs:", app.WHOSE, core.WHOSE, depth, flush=True)
for _ in range(60_000):
    print("x" * 99)
model.fit(x, x[:, :1], verbose=0)
print("the last words", flush=True)
"""
    spec = script(tmp_path / "project", text)
    for package in ("app", "core"):
        (tmp_path / "project" / package).mkdir()
        (tmp_path / "project" / package / "__init__.py").write_text(
            f"WHOSE = 'the {package} of the script'\n"
        )
    (tmp_path / "project" / "core" / "deep.py").write_text("depth = 7\n")

    run = laptops.anna.train(spec)

    for agent in (laptops.anna, laptops.ben):
        assert agent.ends(run) == Finished()
        assert len(weights(agent)) == 2 and len(set(weights(agent).values())) == 1
        # All of it is in the file; the screen keeps up by leaving lines out, and says how many.
        everything = written(agent, run)
        assert everything.count("x" * 99) >= 60_000
        assert "theirs: the app of the script the core of the script 7" in everything
        assert "the last words" in told(agent, run, "stdout")
        dropped = sum(
            told.event.lines.dropped for told in agent.told if isinstance(told.event, ev.MemberLogged)
        )
        assert dropped > 0


@pytest.mark.cluster
def test_a_script_that_shares_nothing_is_told_so(laptops: Laptops, tmp_path: Path) -> None:
    text = f"""{FIT}
import tensorflow as tf

for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - x[:, :1]))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply(gradients, model.trainable_variables)
print("trained alone", flush=True)
"""
    run = laptops.anna.train(script(tmp_path / "project", text))

    for agent in (laptops.anna, laptops.ben):
        assert agent.ends(run) == Finished()
        words = told(agent, run, "tandem")
        assert "Nothing was shared between the laptops" in words
        assert "trained alone" in told(agent, run, "stdout")
