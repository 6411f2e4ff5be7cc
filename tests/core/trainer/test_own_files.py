"""Files that a script writes and looks for again: each member has its own, and the result is one
machine's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.trainer.crew import Crew, apart, plain, weights
from tests.exactness.limits import TOLERANCE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

HEAD = """
import os
import keras
import numpy as np

keras.utils.set_random_seed(3)
random = np.random.RandomState(1)
x = random.uniform(-1, 1, (320, 6)).astype("float32")
y = np.sin(x.sum(1, keepdims=True)).astype("float32")

def made():
    hidden = keras.layers.Dense(8, activation="tanh")
    model = keras.Sequential([keras.Input((6,)), hidden, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), loss="mse")
    return model

def train(model, *callbacks, epochs=2):
    return model.fit(x, y, batch_size=64, epochs=epochs, callbacks=list(callbacks), verbose=0)

"""
RESTORES = """
def made_or_restored(path):
    if os.path.exists(path):
        print("restored", flush=True)
        return keras.models.load_model(path)
    return made()

path = "kept/best.keras"
for number in range(2):
    model = made_or_restored(path)
    train(model, keras.callbacks.ModelCheckpoint(path), keras.callbacks.CSVLogger("log.csv", append=True))
rows = open("log.csv").read().splitlines()
assert len(rows) == 5, rows
assert os.path.exists("kept/best.keras")
np.savez("weights.npz", *model.get_weights())
"""
BACKS_UP = """
class Mine(keras.callbacks.BackupAndRestore):
    '''Keras' own, and what somebody added to it.'''

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if not os.path.exists("broken-off") and epoch == 1:
            open("broken-off", "w").close()
            raise KeyboardInterrupt

class Own(keras.callbacks.ModelCheckpoint):
    def on_epoch_end(self, epoch, logs=None):
        loss = self.model.evaluate(x, y, batch_size=64, verbose=0)
        super().on_epoch_end(epoch, {**logs, "of all rows": loss})

def attempt():
    keras.utils.set_random_seed(3)
    model = made()
    history = train(model, Mine("backup"), Own("{of all rows:.4f}.keras"), epochs=4)
    return model, history

try:
    attempt()
except KeyboardInterrupt:
    pass
assert os.path.exists("backup/latest.weights.h5")
model, history = attempt()
assert history.epoch == [2, 3], history.epoch
assert len([name for name in os.listdir() if name.endswith(".keras")]) >= 3
np.savez("weights.npz", *model.get_weights())
"""


@pytest.fixture(
    scope="module", params=[(48, 16), pytest.param((40, 16, 8), marks=pytest.mark.complete)], ids=str
)
def members(request: pytest.FixtureRequest, crews: Callable[[tuple[int, ...]], Crew]) -> Crew:
    return crews(request.param)


@pytest.mark.parametrize("text", [RESTORES, BACKS_UP], ids=["restores", "backs up"])
def test_a_script_that_goes_on_from_its_own_files_is_exact(members: Crew, text: str, tmp_path: Path) -> None:
    ran = members.run(HEAD + text)
    assert [exit.reason for exit in ran.exits] == ["finished"] * len(members.shares), members.last_words()
    alone = plain(tmp_path / "plain", HEAD + text)
    assert len(weights(alone)) == 4
    assert [apart(folder, alone) <= TOLERANCE for folder in ran.folders] == [True] * len(members.shares)
    assert all(apart(folder, ran.folders[0]) == 0.0 for folder in ran.folders)
    assert ran.words() == []


def test_what_is_written_outside_the_project_is_reported_with_its_line(members: Crew, tmp_path: Path) -> None:
    """Its path is built while the script runs, so that nobody could read it before."""
    place = f"open({str(tmp_path)[:5]!r} + {str(tmp_path)[5:]!r} + '/notes.txt', 'w').close()\n"
    outside = Path("/var/tmp") / f"tandem-{tmp_path.name}.txt"
    script = HEAD + f"open('/var' + '/tmp/' + {outside.name!r}, 'w').close()\n" + place + "train(made())\n"
    try:
        ran = members.run(script)
    finally:
        outside.unlink(missing_ok=True)
    assert [exit.reason for exit in ran.exits] == ["finished"] * len(members.shares), members.last_words()
    line = script[: script.index("/var")].count("\n") + 1
    assert [f"train.py, line {line}, writes {outside}" in words for words in ran.words()] == [True]
