"""A run's reasons why its result may differ from one machine's are reported as such, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.trainer.crew import Crew

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SCRIPT = """
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
x = np.random.RandomState(1).uniform(-1, 1, (320, 6)).astype("float32")
y = np.sin(x.sum(1, keepdims=True)).astype("float32")

def rmse(true, predicted):
    return tf.sqrt(tf.reduce_mean(tf.square(true - predicted)))

@tf.function(jit_compile=True)
def bent(values):
    return tf.tanh(values)

model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation=bent), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=[METRICS], jit_compile=True)
model.fit(x, y, batch_size=64, epochs=2, verbose=0)
"""


@pytest.fixture(
    scope="module", params=[(48, 16), pytest.param((40, 16, 8), marks=pytest.mark.complete)], ids=str
)
def members(request: pytest.FixtureRequest, crews: Callable[[tuple[int, ...]], Crew]) -> Crew:
    return crews(request.param)


@pytest.mark.parametrize(("metrics", "differs"), [("rmse", True), ("", False)])
def test_a_metric_of_the_batch_as_a_whole_is_a_difference_and_another_way_to_compute_is_none(
    members: Crew, metrics: str, differs: bool
) -> None:
    ran = members.run(SCRIPT.replace("METRICS", metrics))
    assert [exit.reason for exit in ran.exits] == ["finished"] * len(members.shares), members.last_words()
    said = {each.words: each.difference for told in ran.said for each in told}
    for ignored in ("jit_compile is ignored", "jit_compile of bent is ignored"):
        assert [difference for words, difference in said.items() if words.startswith(ignored)] == [False]
    assert [words for words, difference in said.items() if difference] == [
        words for words in said if "rmse" in words
    ]
    assert any("rmse" in words for words in said) == differs


def test_a_script_that_fails_late_still_tells_how_many_of_its_steps_were_audited(members: Crew) -> None:
    ran = members.run(SCRIPT.replace("METRICS", "") + "\nraise ValueError('after the training')\n")
    assert [exit.reason for exit in ran.exits] == ["script-error"] * len(members.shares), members.last_words()
    audits = [exit.audits for exit in ran.exits]
    assert all(each is not None and each.steps == 10 and each.audited > 0 for each in audits), audits


def test_a_function_that_stays_compiled_as_laptops_compute_whole_batches_is_not_named(members: Crew) -> None:
    script = SCRIPT.replace("METRICS", "").replace("tanh(values)", "tanh(values - tf.reduce_mean(values, 0))")
    ran = members.run(script)
    assert [exit.reason for exit in ran.exits] == ["finished"] * len(members.shares), members.last_words()
    said = [each.words for told in ran.said for each in told]
    assert any("no faster than one" in words for words in said), said
    assert not any(words.startswith("jit_compile of") for words in said)
