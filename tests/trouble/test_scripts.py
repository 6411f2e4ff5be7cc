"""Scripts that are missing, fail, leave or shout: each member reports which, where, and what to do."""

from __future__ import annotations

import subprocess
import sys
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
from tests.lab.laptops import Laptops, reason

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

FIT = """
import keras
import numpy as np

x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""


def script(folder: Path, text: str, **beside: str) -> RunSpec:
    """A project with ``train.py`` and further modules, to run on every laptop."""
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


def told(agent: Agent, run: RunId, stream: str) -> str:
    """That stream's output on this screen."""
    events = [told.event for told in agent.told if isinstance(told.event, ev.MemberLogged)]
    return "\n".join(each.lines.text for each in events if each.run == run and each.lines.stream == stream)


TOLD_S = 30.0
"""Most time for a sentence on what threads and processes of the script's own may not ask of Keras."""


def prints(agent: Agent, run: RunId, words: str) -> None:
    """Waits for a line of the script."""
    agent.hears(ev.MemberLogged, lambda event: event.run == run and words in event.lines.text)


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
def test_a_worker_that_cannot_write_does_not_throw_away_the_training(
    laptops: Laptops, tmp_path: Path
) -> None:
    text = f"""{FIT}
import json
import os
import time

history = model.fit(x, x[:, :1], batch_size=16, epochs=5, verbose=0)
if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker":
    with open(".", "w") as file:
        file.write(str(history.history))
time.sleep(10)  # the chief is slower
"""
    run = laptops.anna.train(script(tmp_path / "project", text))

    assert "On ben: IsADirectoryError: [Errno 21] Is a directory" in failure(laptops, run)

    details = laptops.anna.ask(GetRun(run=run))
    assert isinstance(details, RunDetails)
    kept = Path(details.entry.folder) / "outputs" / "trained" / "model.keras"
    by_s = time.monotonic() + 60
    while not kept.exists():
        assert time.monotonic() < by_s, sorted(Path(details.entry.folder).rglob("*"))
        time.sleep(0.1)
    with zipfile.ZipFile(kept) as archive:
        assert "model.weights.h5" in archive.namelist()
    assert "saves the weights before the run ends" in told(laptops.anna, run, "tandem")


@pytest.mark.cluster
@pytest.mark.complete
def test_a_member_whose_script_ends_its_own_process_is_not_waited_for(
    laptops: Laptops, tmp_path: Path
) -> None:
    text = f"""{FIT}
import json
import os

model.fit(x, x[:, :1], batch_size=16, epochs=2, verbose=0)
if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker":
    os._exit(0)
model.fit(x, x[:, :1], batch_size=16, epochs=2, verbose=0)
"""
    run = laptops.anna.train(script(tmp_path / "project", text))

    said = failure(laptops, run)

    assert said.startswith("script-left: On ben: The script ended its own process with exit code 0")
    # Otherwise the chief would have been asked to end at a step that never comes.
    assert "saves the weights" not in told(laptops.anna, run, "tandem")


@pytest.mark.cluster
def test_threads_and_processes_of_the_script_predict_and_train_or_say_why_not(
    laptops: Laptops, tmp_path: Path
) -> None:
    text = f"""
import multiprocessing
import threading
{FIT}
answers = []
errors = []


def ask():
    again = keras.models.clone_model(model)  # traced while a step is
    answers.extend(each.predict(x, verbose=0).shape for each in (model, again, model))


def loads(path):
    return keras.models.load_model(path).predict(x, verbose=0).shape


def forked(rows):
    return model.predict(x[:rows], verbose=0).shape


def again():
    try:
        model.fit(x, x[:, :1], batch_size=16, verbose=0)
    except Exception as error:
        errors.append(str(error))


class Second(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if not errors:
            thread = threading.Thread(target=again)
            thread.start()
            thread.join()


def main():
    thread = threading.Thread(target=ask)
    thread.start()
    model.fit(x, x[:, :1], batch_size=16, epochs=20, verbose=0, callbacks=[Second()])
    thread.join()
    print("answers:", answers, *errors, flush=True)
    model.save("saved.keras")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print("spawned:", pool.apply(loads, ("saved.keras",)), flush=True)
    model.evaluate(x, x[:, :1], verbose=0)  # where both have come so far
    print("forks", flush=True)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(forked, (8,))


if __name__ == "__main__":
    main()
"""
    run = laptops.anna.train(script(tmp_path / "project", text))

    prints(laptops.anna, run, "forks")
    began_s = time.monotonic()
    said = failure(laptops, run)

    assert time.monotonic() - began_s < TOLD_S
    assert "predict cannot run in a process that was forked" in said and "(train.py, line " in said
    for agent in (laptops.anna, laptops.ben):
        said = told(agent, run, "stdout")
        assert said.count("answers: [(64, 1), (64, 1), (64, 1)]") == 2
        assert said.count("The script calls fit in one thread while fit 1 runs in another") == 2
        assert told(agent, run, "stdout").count("spawned: (64, 1)") == 2


@pytest.mark.cluster
def test_a_training_in_a_thread_and_processes_beside_it_end_as_one_process_does(
    laptops: Laptops, tmp_path: Path
) -> None:
    text = f"""
import multiprocessing
import threading

import keras

keras.utils.set_random_seed(7)
{FIT}
found = {{}}


def squares(rows):
    return float((x[rows] ** 2).sum())


def trains(answers):
    other = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    other.compile("sgd", "mse")
    answers.put(len(other.fit(x, x[:, :1], batch_size=16, epochs=2, verbose=0).history["loss"]))


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 4

    def __getitem__(self, at):
        return x[16 * at : 16 * at + 16], x[16 * at : 16 * at + 16, :1]


class Asks(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found["forked"] = pool.map(squares, range(8))


def train():
    data = Batches(workers=2, use_multiprocessing=True)
    model.fit(data, epochs=3, shuffle=False, verbose=0, callbacks=[Asks()])
    found["loss"] = model.evaluate(x, x[:, :1], batch_size=16, verbose=0)


def main():
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert found["forked"] == [squares(row) for row in range(8)]
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=trains, args=(answers,))
    process.start()
    print("epochs in a process:", answers.get(timeout=120), flush=True)
    process.join()
    print("loss:", round(found["loss"], 5), flush=True)


if __name__ == "__main__":
    main()
"""
    run = laptops.anna.train(script(tmp_path / "project", text))

    alone = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path / "project", capture_output=True, text=True, timeout=300
    )
    assert alone.returncode == 0, alone.stderr
    (loss,) = [line for line in alone.stdout.splitlines() if line.startswith("loss:")]
    for agent in (laptops.anna, laptops.ben):
        assert agent.ends(run) == Finished()
        said = told(agent, run, "stdout")
        assert said.count("epochs in a process: 2") == 2
        assert said.count(loss) == 2, (said, loss)


@pytest.mark.cluster
def test_two_threads_that_train_batch_by_batch_at_once_end_the_run_with_a_sentence(
    laptops: Laptops, tmp_path: Path
) -> None:
    text = f"""
import threading
{FIT}
other = keras.models.clone_model(model)
other.compile("sgd", "mse")


def loop(each):
    for _ in range(100_000):
        each.train_on_batch(x, x[:, :1])


threads = [threading.Thread(target=loop, args=(each,)) for each in (model, other)]
for thread in threads:
    thread.start()
print("both train", flush=True)
for thread in threads:
    thread.join()
"""
    run = laptops.anna.train(script(tmp_path / "project", text))

    prints(laptops.anna, run, "both train")
    began_s = time.monotonic()
    said = failure(laptops, run)

    assert "train_on_batch in one thread while train_on_batch runs in another" in said
    assert time.monotonic() - began_s < TOLD_S


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
