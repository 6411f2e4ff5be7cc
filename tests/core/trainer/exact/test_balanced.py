"""A real cluster of two whose speeds differ and change: shares follow, and the result is that of one process.

The times are made up, so that they are known even on a busy machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exactness import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
MODULE = "tests.core.trainer.exact.balanced_member"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    out = tmp_path_factory.mktemp("balanced")
    plain = processes.run((), [], out / "plain", processes.LIMIT_S, MODULE)
    return plain + processes.run((1, 1), [], out / "members", processes.LIMIT_S, MODULE)


@pytest.fixture(scope="module")
def records(folders: list[Path]) -> list[dict[str, Any]]:
    return [json.loads((folder / "record.json").read_text()) for folder in folders[1:]]


def test_the_first_shares_follow_the_measured_speeds(records: list[dict[str, Any]]) -> None:
    (measured,) = records[0]["measured"]
    assert measured["alone_s"] == pytest.approx([0.064, 0.192])
    assert measured["shares"] == [48, 16]
    assert records[0]["shares"][:2] == [[0, [32, 32]], [0, [48, 16]]], "before the first step was told"


def test_shares_change_in_the_middle_of_an_epoch_when_a_member_slows_down(
    records: list[dict[str, Any]],
) -> None:
    assert [shares for _, shares in records[0]["shares"]] == [[32, 32], [48, 16], [32, 32]]
    assert 20 < records[0]["shares"][2][0] < 40


def test_all_members_change_to_the_same_shares(records: list[dict[str, Any]]) -> None:
    told = [[shares for _, shares in record["shares"]] for record in records]
    assert told[0] == told[1]
    assert records[0]["measured"] == records[1]["measured"]


def test_the_result_is_exact_whatever_the_shares_were(
    folders: list[Path], records: list[dict[str, Any]]
) -> None:
    plain, *members = [dict(np.load(folder / "weights.npz")) for folder in folders]
    for member in members:
        for key, weight in member.items():
            assert np.array_equal(weight, members[0][key])
            assert np.abs(weight - plain[key]).max() < 4e-6  # 40 steps
    assert records[0]["sha256"] == records[1]["sha256"]
    alone = json.loads((folders[0] / "record.json").read_text())["history"]
    assert records[0]["history"] == records[1]["history"]
    for name, values in alone.items():
        assert records[0]["history"][name] == pytest.approx(values, rel=2e-5)
