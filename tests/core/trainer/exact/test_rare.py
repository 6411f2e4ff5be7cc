"""Members that meet rarely: equal at every flush, close to the exact run, with a small part of its bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exactness import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
MODULE = "tests.core.trainer.exact.rare_member"
JOBS = (
    *("plain@rare=16", "plain@exact", "large", "large@exact", "heard", "heard@exact"),
    *(
        "half-rows",
        "own-step",
        "gathering",
        "whole",
        "eager",
        "by-batch",
        "kept",
        "stopped",
        "resumed",
        "nan",
    ),
)

Records = tuple[dict[str, Any], dict[str, Any]]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """By member, then by job. The members have unequal shares."""
    out = tmp_path_factory.mktemp("rare")
    one, other = processes.run((40, 24), JOBS, out, processes.LIMIT_S, MODULE)
    return tuple(json.loads((each / "record.json").read_text()) for each in (one, other))


@pytest.mark.parametrize("job", [job for job in JOBS if job not in ("nan", "stopped")])
def test_members_end_bit_equal(records: Records, job: str) -> None:
    one, other = (record[job] for record in records)
    assert one["weights"] == other["weights"]
    assert one.get("state") == other.get("state"), "the optimizer's variables"


def test_members_are_equal_at_epochs_ends_and_apart_between(records: Records) -> None:
    one, other = (record["heard"] for record in records)
    assert one["epochs"] == other["epochs"] and len(set(one["epochs"])) == 3
    assert one["history"] == other["history"], "what callbacks decide by"
    same = [a == b for a, b in zip(one["inside"], other["inside"], strict=True)]
    # Only at the batch's end before which a prediction made them equal.
    assert [place for place, equal in enumerate(same) if equal] == [5]
    assert one["asked"] == other["asked"]


@pytest.mark.parametrize(
    ("job", "name"), [("plain@rare=16", "loss"), ("large", "loss"), ("heard", "val_loss")]
)
def test_the_loss_is_near_the_exact_runs(records: Records, job: str, name: str) -> None:
    exact = records[0][f"{job.partition('@')[0]}@exact"]
    rare = records[0][job]
    assert min(rare["history"][name]) <= 1.15 * min(exact["history"][name])
    assert rare["weights"] != exact["weights"]


def test_bytes_are_a_sixtieth_of_the_exact_runs(records: Records) -> None:
    exact = records[0]["plain@exact"]["wire_bytes"]
    assert exact == records[0]["plain@exact"]["expected"][0]
    assert 0 < records[0]["plain@rare=16"]["wire_bytes"] <= exact / 60
    assert 0 < records[0]["plain@rare=16"]["expected"][0] <= exact / 60


def test_the_step_that_is_trained_alone_is_also_the_one_that_is_timed_alone(records: Records) -> None:
    assert records[0]["plain@rare=16"]["alone"] == 1, "a trace of a large model takes long"


def test_meetings_of_a_large_model_overlap_steps(records: Records) -> None:
    """In each of 4 epochs of 29 steps, except for the meeting at the epoch's end."""
    for record in records:
        assert record["large"]["overlaps"] == 4 * 3 and record["large@exact"]["overlaps"] == 0


def test_it_is_reported(records: Records) -> None:
    for record in records:
        assert set(record["heard"]["met_every"]) == {8}
        assert set(record["half-rows"]["met_every"]) == {2}, "an epoch's steps"
        assert record["heard"]["said"] == [
            "sequential: laptops meet every 8 steps. The result is not that of one machine."
        ]
        assert record["heard"]["audits"] == "laptops meet rarely"
        assert set(record["heard@exact"]["met_every"]) == {0} and record["heard@exact"]["said"] == []


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ("own-step", "its train_step is the script's own"),
        ("gathering", "its loss is of the batch as a whole"),
        ("whole", "every laptop computes each batch whole"),
        ("eager", "it runs eagerly"),
        ("by-batch", "train_on_batch"),
    ],
)
def test_what_cannot_meet_rarely_is_exact_and_reported(records: Records, job: str, why: str) -> None:
    told = records[0][job]
    assert any("meet in every step" in words and why in words for words in told["said"])
    assert set(told["met_every"]) == {0}


def test_why_jit_compile_is_left_out_is_true_of_steps_that_exchange_nothing(records: Records) -> None:
    said = [words for words in records[0]["half-rows"]["said"] if "jit_compile" in words]
    why = "shares may change, and XLA would compile a step anew for each number of rows"
    assert said == [f"jit_compile is ignored: {why}. The result is the same."]


def test_a_stopped_training_goes_on_with_the_same_bits(records: Records) -> None:
    """With a checkpoint after each batch, all jobs flush alike."""
    stopped = [record["stopped"] for record in records]
    assert 9 < stopped[0]["stopped"] < 22 and stopped[0]["digest"] == stopped[1]["digest"]
    for record in records:
        assert record["resumed"]["weights"] == record["kept"]["weights"]
        assert record["resumed"]["state"] == record["kept"]["state"]
        assert record["resumed"]["momentum"] == record["kept"]["momentum"] > 0
        assert record["resumed"]["history"] == record["kept"]["history"]


def test_a_member_whose_weights_are_not_finite_is_named(records: Records) -> None:
    for record in records:
        assert "NaN, infinite or larger than 10³⁰ only on member 1" in record["nan"]["error"]


def test_a_mean_that_is_wrong_ends_the_training(tmp_path: Path) -> None:
    for folder in processes.run((40, 24), ["wrong"], tmp_path, processes.LIMIT_S, MODULE):
        found = json.loads((folder / "record.json").read_text())["wrong"]
        assert "the mean of the laptops' weights was not" in found["error"]
        assert found["meetings"] == [1, 2, 3, 4], "wrong from the third on, and the fourth is audited"
