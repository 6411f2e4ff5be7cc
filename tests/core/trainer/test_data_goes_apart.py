"""Data that is the same in a fit's first batch and differs later: found during training, with who and
where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.trainer.crew import Crew

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

HEAD = """
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
x = np.random.RandomState(1).uniform(-1, 1, (320, 6)).astype("float32")
y = np.sin(x.sum(1, keepdims=True)).astype("float32")
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
unseeded, seeded = np.random.default_rng(), np.random.default_rng(5)
"""
SHUFFLED_LATER = """
class Data(keras.utils.PyDataset):
    order = np.arange(320)
    ends = 0

    def __len__(self):
        return 5

    def __getitem__(self, number):
        rows = self.order[64 * number : 64 * number + 64]
        return x[rows], y[rows]

    def on_epoch_end(self):
        self.ends += 1
        if self.ends > 2:
            self.order = GENERATOR.permutation(320)

model.fit(Data(), epochs=5, shuffle=False, verbose=0)
"""
DRIFTING = """
def batches():
    for number in range(20):
        rows = slice(64 * (number % 5), 64 * (number % 5) + 64)
        noise = GENERATOR.integers(0, 2) if number == 12 else 0
        late = GENERATOR.integers(0, 9, (64, 1)) * (number > 8)
        yield x[rows], (y[rows] > noise / 7).astype("int32") + late

model.fit(batches(), steps_per_epoch=10, epochs=2, verbose=0)
"""
LOOPED = """
for number in range(6):
    rows = GENERATOR.permutation(320)[:64] if number > 2 else np.arange(64)
    model.train_on_batch(x[rows], y[rows])
"""
SCRIPTS = {
    "shuffled later": (SHUFFLED_LATER, "in fit 1, epoch"),
    "drifting": (DRIFTING, "in fit 1, epoch"),
    "looped": (LOOPED, "its own code, step"),
}


@pytest.fixture(
    scope="module", params=[(48, 16), pytest.param((40, 16, 8), marks=pytest.mark.complete)], ids=str
)
def members(request: pytest.FixtureRequest, crews: Callable[[tuple[int, ...]], Crew]) -> Crew:
    return crews(request.param)


@pytest.mark.parametrize("name", SCRIPTS)
def test_other_data_in_a_later_batch_fails_the_run_and_names_who_read_it(members: Crew, name: str) -> None:
    text, place = SCRIPTS[name]
    ran = members.run(HEAD + text.replace("GENERATOR", "unseeded"))
    problems = [exit.problem for exit in ran.exits]
    assert all(problem is not None and problem.code == "data-differs" for problem in problems), problems
    what = problems[0].what if problems[0] is not None else ""
    assert "worker:0" in what and "other data than chief:0" in what
    assert place.removeprefix("in ") in what


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_with_a_seed_is_no_trouble(members: Crew, name: str) -> None:
    ran = members.run(HEAD + SCRIPTS[name][0].replace("GENERATOR", "seeded"))
    assert [exit.reason for exit in ran.exits] == ["finished"] * len(members.shares), members.last_words()
    assert len({exit.weights_sha256 for exit in ran.exits}) == 1
