"""The cost of the check of the first batch, relative to a trace of the same steps; docs/exactness.md has
seconds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.exactness import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
MODULE = "tests.core.trainer.exact.look_member"
OF_TRACING = 1.3
"""Both times are processor time. It was 0.85, and 0.21 s, on 2 busy cores."""


def test_the_check_takes_little_longer_than_tracing_the_steps(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    for folder in processes.run((48, 16), [], tmp_path, processes.LIMIT_S, MODULE):
        spent_s = json.loads((folder / "record.json").read_text())
        tracing_s = spent_s.pop("_trace")
        checks = {"judged", "own_writes", "metrics_in_gradients", "agree_on_data"}
        assert set(spent_s) == checks, "each of them was done"
        record_property(folder.name, sum(spent_s.values()))
        assert 0 < sum(spent_s.values()) <= OF_TRACING * tracing_s, spent_s
