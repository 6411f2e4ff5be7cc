"""A real cluster of three, observed, with shares that change at epochs' ends, and stopped by one member."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exactness import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
MODULE = "tests.core.trainer.exact.observed_member"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    out = tmp_path_factory.mktemp("observed")
    plain = processes.run((), [], out / "plain", processes.LIMIT_S, MODULE)
    return plain + processes.run((40, 16, 8), [], out / "members", processes.LIMIT_S, MODULE)


@pytest.fixture(scope="module")
def records(folders: list[Path]) -> list[dict[str, Any]]:
    return [json.loads((folder / "record.json").read_text()) for folder in folders[1:]]


def test_shares_changed_between_steps_leave_the_result_exact(folders: list[Path]) -> None:
    plain, *members = [dict(np.load(folder / "weights.npz")) for folder in folders]
    for member in members:
        for key, weight in member.items():
            assert np.array_equal(weight, members[0][key])
            assert np.abs(weight - plain[key]).max() < 4e-6  # 60 steps of Adam


def test_calibration_leaves_every_variable_as_it_was(
    folders: list[Path], records: list[dict[str, Any]]
) -> None:
    assert all(len(record["measured"]) == 2 for record in records), "the first fit, and one of the two"
    for folder in folders[1:]:
        found = dict(np.load(folder / "neutral.npz"))
        calibrated = [key for key in found if key.startswith("calibrated/")]
        assert len(calibrated) > 20
        for key in calibrated:
            assert np.array_equal(found[key], found[key.replace("calibrated", "as ever")]), key


def test_all_members_expect_the_same(records: list[dict[str, Any]]) -> None:
    first = records[0]["measured"][0]
    assert all(record["measured"] == records[0]["measured"] for record in records)
    assert first["shares"] == [40, 16, 8], "fixed shares stay"
    assert first["step_s"] > 0 and first["wire_s"] >= 0 and first["wire_bytes"] > 0
    low_s, high_s = first["step_range_s"]
    assert low_s * 1.09 < first["step_s"] < high_s / 1.09, "no measurement is exact"
    assert first["audit_bytes"] > 0
    assert len(first["alone_s"]) == 3 and all(seconds > 0 for seconds in first["alone_s"])


def test_one_member_asked_to_stop_stops_all_after_the_same_step(records: list[dict[str, Any]]) -> None:
    assert all(record["stopped"] for record in records)
    assert all(record["ends"] == ["on_train_end"] * 2 for record in records)
    assert len({record["sha256"] for record in records}) == 1
    newest = [[said for said in record["heard"] if said[0] == "step"][-1][1] for record in records]
    assert all(step < 60 + 500 * 20 for step in newest)


def test_recent_logs_add_up_to_the_means_that_keras_gives(records: list[dict[str, Any]]) -> None:
    """Each reported loss is that of the steps since the previous report: over all rows, from an epoch's first
    step on."""
    for record in records:
        fit = [each for each in record["recent"] if each[0] <= 60]
        assert {epoch for _, epoch, *_ in fit} == {0, 1, 2}
        told, batches, before = 0.0, 0, -1
        for _, epoch, batch, so_far, since, names in fit:
            assert names == ["loss"], "a root of a mean is none"
            told, batches = (told, batches) if epoch == before else (0.0, 0)
            told, batches, before = told + since * (batch - batches), batch, epoch
            assert told / batch == pytest.approx(so_far, rel=1e-4)


def test_an_epochs_last_batch_counts_with_the_rows_it_has(records: list[dict[str, Any]]) -> None:
    """19 batches of 64 rows and one of 32: the mean is that of the steps that were timed."""
    for record in records:
        ends = [each for each in record["uneven"] if each[1] == 20 and each[0]]
        assert len(ends) == 5
        means = [(64 * (steps - 1) + 32) / steps for steps in range(1, 21)]
        assert all(rows in means for _, _, rows, _ in ends)
        assert any(rows > 32 for _, _, rows, _ in ends), "several steps were timed together"
        assert all(rows == 64 for _, batch, rows, _ in record["uneven"] if batch < 20)


def test_a_validation_cut_short_by_a_stop_has_no_value(records: list[dict[str, Any]]) -> None:
    for record in records:
        assert record["validated"] == [[0, True, True], [1, True, False]], "epoch, whole, validated"


def test_an_observer_hears_a_fit_from_its_beginning_to_its_end(records: list[dict[str, Any]]) -> None:
    for record in records:
        heard = [heard for heard in record["heard"] if heard[0] != "said"]
        assert heard[0] == ["fit", 3, 20, 64, 0, 0, "rmse"]
        kinds = [said[0] for said in heard]
        assert kinds.count("epoch") >= 3 and kinds.count("evaluated") == 1 and kinds.count("ended") == 2
        steps = [said for said in heard if said[0] == "step"]
        assert steps[0][1:6] == [1, 0, 1, 20, 64]
        assert [said[1] for said in steps] == sorted({said[1] for said in steps})
        assert record["trained"]


def test_the_first_step_is_reported_once_before_it_is_audited(records: list[dict[str, Any]]) -> None:
    for record in records:
        assert record["order"][:2] == ["step 1", "whole"]
        assert record["order"].count("step 1") == 1


def test_that_jit_compile_is_ignored_is_reported_once(records: list[dict[str, Any]]) -> None:
    for record in records:
        said = [words for kind, words, *_ in (heard for heard in record["heard"] if heard[0] == "said")]
        assert len(said) == 1 and said[0].startswith("jit_compile is ignored: "), said


def test_every_member_hears_the_same_numbers(records: list[dict[str, Any]]) -> None:
    epochs = [[said for said in record["heard"] if said[0] in ("epoch", "evaluated")] for record in records]
    assert epochs[0] == epochs[1] == epochs[2]
