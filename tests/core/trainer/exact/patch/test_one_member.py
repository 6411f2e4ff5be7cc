"""A single member keeps Keras' own fit under any strategy, and is still observed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.trainer.exact.keras.test_keras_private import run

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path: Path = tmp_path_factory.mktemp("solo") / "record.json"
    run(["-m", "tests.core.trainer.exact.solo_member", str(path)])
    return dict(json.loads(path.read_text()))


def test_the_script_runs_in_the_strategys_scope(record: dict[str, Any]) -> None:
    assert record["replicas"] == 2


def test_fit_and_evaluate_are_reported(record: dict[str, Any]) -> None:
    heard = record["heard"]
    assert heard[0] == ["fit", 2, 20, 64, 0, 0, ""]
    assert [said for said in heard if said[0] == "epoch"][:2] == [
        ["epoch", epoch, loss] for epoch, loss in enumerate(record["losses"])
    ]
    assert ["evaluated", record["loss"]] in heard
    steps = [said for said in heard if said[0] == "step" and said[1] <= 40]
    assert steps[-1][1:6] == [40, 1, 20, 20, 64]


def test_the_time_between_epochs_counts_for_no_step(record: dict[str, Any]) -> None:
    """Not the validation, nor callbacks at an epoch's end and beginning."""
    steps = [each for each in record["speeds"] if each[0]]
    assert {batch for _, batch, *_ in steps} >= {1, 20}, "first and last steps are reported"
    assert max(step_s for *_, step_s in steps) < record["pause_s"]


def test_an_epochs_last_batch_counts_with_the_rows_it_has(record: dict[str, Any]) -> None:
    assert [rows for _, batch, rows, _ in record["speeds"] if batch == 20] == [32] * 4
    assert {rows for _, batch, rows, _ in record["speeds"] if batch < 20} == {64}


def test_a_stop_ends_the_fit(record: dict[str, Any]) -> None:
    assert record["stopped"]
    assert [said[0] for said in record["heard"]].count("ended") == 3


def test_trained_models_are_recorded(record: dict[str, Any]) -> None:
    assert record["trained"] == [False, True]
    assert len(record["sha256"]) == 64
