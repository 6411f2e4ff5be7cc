"""A real cluster whose members differ: reported before the first step, or a failure at the end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.exactness import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
MODULE = "tests.core.trainer.exact.apart_member"


@pytest.fixture(
    scope="module", params=[(48, 16), pytest.param((40, 16, 8), marks=pytest.mark.complete)], ids=str
)
def records(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out = tmp_path_factory.mktemp("apart")
    folders = processes.run(request.param, [], out, processes.LIMIT_S, MODULE)
    return [json.loads((folder / "record.json").read_text()) for folder in folders]


def test_all_members_reach_the_same_outcome(records: list[dict[str, Any]]) -> None:
    assert len(records[0]) == 16
    for record in records[1:]:
        if len(records) > 2:  # in a ring of three, each names the two that it saw
            assert record["shapes"]["code"] == records[0]["shapes"]["code"]
            record = {**record, "shapes": records[0]["shapes"]}
        assert record == records[0]


@pytest.mark.parametrize(
    ("script", "parts", "call"),
    [
        ("numbers", "x and y of", "fit"),
        ("order_of_rows", "x and y of", "fit"),
        ("texts", "y of", "fit"),
        ("batches_of_a_loop", "y of", "the loop"),
        ("validation", "y of", "fit"),
    ],
)
def test_different_data_is_refused_before_the_first_step(
    records: list[dict[str, Any]], script: str, parts: str, call: str
) -> None:
    found = records[0][script]
    assert found["code"] == "data-differs"
    assert f"{parts} the first batch of {call} " in found["what"] and "seed" in found["fix"]


def test_batches_of_other_lengths_are_refused_with_what_each_member_has(
    records: list[dict[str, Any]],
) -> None:
    found = records[0]["shapes"]
    assert found["code"] == "exchange-mismatch"
    assert "member 0 wants the first batch, of 64 rows" in found["what"]
    assert "member 1 wants the first batch, of 65 rows" in found["what"]


@pytest.mark.parametrize("script", ["augmented", "augmented_loss_of_the_batch"])
def test_differences_in_x_alone_are_reported(records: list[dict[str, Any]], script: str) -> None:
    """A loss of the batch as a whole is still detected, and gets the predictions of all rows."""
    found = records[0][script]
    assert found["code"] == "" and len(found["said"]) == 1
    assert "differ only in x" in found["said"][0] and "num_parallel_calls" in found["said"][0]


def test_batches_that_differ_are_refused_where_each_has_to_be_computed_whole(
    records: list[dict[str, Any]],
) -> None:
    found = records[0]["augmented_batch_as_a_whole"]
    assert found["code"] == "data-differs"
    assert "whole" in found["what"] and "num_parallel_calls" in found["fix"]


@pytest.mark.parametrize("script", ["rounded", "as_it_should_be"])
def test_data_that_differs_by_rounding_or_not_at_all_is_accepted(
    records: list[dict[str, Any]], script: str
) -> None:
    assert records[0][script] == {"code": "", "what": "", "fix": "", "said": []}


def test_a_learning_rate_from_a_clock_is_a_failure_with_its_cause(records: list[dict[str, Any]]) -> None:
    found = records[0]["rate_from_a_clock"]
    assert found["code"] == "members-differ"
    assert "sets the learning rate differently" in found["what"] and "clock" in found["fix"]


def test_a_variable_outside_keras_that_diverged_is_a_failure_with_its_name(
    records: list[dict[str, Any]],
) -> None:
    found = records[0]["kept_past_keras"]
    assert found["code"] == "members-differ" and "kept" in found["what"]


@pytest.mark.parametrize("script", ["weights", "eager_weights", "batch_by_batch"])
def test_weights_that_diverged_are_a_failure_with_their_name(
    records: list[dict[str, Any]], script: str
) -> None:
    found = records[0][script]
    assert found["code"] == "members-differ"
    assert "dense" in found["what"] and "kernel" in found["what"]
