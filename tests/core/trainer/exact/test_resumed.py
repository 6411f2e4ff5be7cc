"""What a process accepts from a checkpoint and what it never does; fits that resume in odd places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.trainer.exact.keras.test_keras_private import run

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("resumed")
    out = run(["-m", "tests.core.trainer.exact.resumed_member", str(folder)])
    return dict(json.loads(out.splitlines()[-1]))


def test_invariant_a_checkpoint_sets_no_text_and_no_method_of_a_callback(told: dict[str, Any]) -> None:
    hostile = told["hostile"]
    state = hostile["state"]
    assert (state["path"], state["commands"], state["by_text"]) == ("/own/log.txt", ["true"], {})
    assert (state["folder"], state["limit"]) == ("/own", 3)
    assert hostile["hook"] and not {"on_epoch_begin", "nobody", "3"} & set(state)
    assert hostile["history"] == {"loss": [1.0]}, "names of metrics are texts, paths are not"
    assert any("Writes.path keeps the script's value" in words for words in hostile["said"])


def test_a_callbacks_numbers_go_on(told: dict[str, Any]) -> None:
    state = told["hostile"]["state"]
    assert (state["best"], state["seen"], state["sums"]) == (0.5, [1.0, 2.0], {"loss": 2.0})
    assert (state["epoch"], state["count"]) == (2, 7), "made by on_epoch_begin; a class' default"


def test_keras_own_generator_goes_on_in_a_process_that_has_none_yet(told: dict[str, Any]) -> None:
    assert told["generator"] == [True, True]


@pytest.mark.parametrize("what", ["harmful randomness", "harmful trees"])
def test_invariant_a_checkpoint_that_no_training_wrote_is_refused(told: dict[str, Any], what: str) -> None:
    assert told[what] == ["checkpoint-broken"] * 5


def test_validations_go_on_with_data_that_differs_each_time(told: dict[str, Any]) -> None:
    scene = told["validated"]
    assert scene["stopped"]["stopped"] and scene["moment"] == [3, 5, 35]
    for part in ("weights", "step", "history"):
        assert scene["resumed"][part] == scene["whole"][part], part
    assert len(set(scene["whole"]["history"]["val_loss"])) == 5


def test_reading_data_again_is_reported(told: dict[str, Any]) -> None:
    said = told["validated"]["resumed"]["said"]
    assert said[0] == "Reading 3 epochs of data again, to reach the checkpoint."


def test_a_training_resumes_after_a_last_call_with_fewer_steps_than_the_others(told: dict[str, Any]) -> None:
    scene = told["together"]
    assert scene["stopped"]["stopped"] and scene["moment"] == [1, 10, 20]
    for part in ("weights", "step", "history"):
        assert scene["resumed"][part] == scene["whole"][part], part


def test_a_metric_may_give_several_numbers_as_in_keras(told: dict[str, Any]) -> None:
    """It is not reported, and ends no training."""
    assert told["several"] == {"history": [2, 2], "evaluated": [2]}
