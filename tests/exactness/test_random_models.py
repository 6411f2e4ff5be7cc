"""Random models end as in one process, or the difference is reported; for purely row-wise ones nothing is.

`make fuzz` tries 500. A failing seed prints its model.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.exactness import processes
from tests.exactness.limits import TOLERANCE
from tests.exactness.matrix import NO_PROGRESS_S, UNEVEN

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(7200)]
FIRST = int(os.environ.get("TANDEM_FUZZ_FIRST", "1"))
SEEDS = [str(FIRST + number) for number in range(int(os.environ.get("TANDEM_FUZZ_MODELS", "40")))]
SHORT = 20
"""Models of `make test`: scenarios of the matrix have the same parts."""


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(SEEDS[:SHORT], id="short"),
        pytest.param(SEEDS[SHORT:], id="complete", marks=pytest.mark.complete),
    ],
)
def test_random_models_end_as_in_one_process_or_are_told(tmp_path: Path, seeds: list[str]) -> None:
    module = "tests.exactness.random_member"
    (alone,) = processes.run((), seeds, tmp_path / "alone", NO_PROGRESS_S, module=module)
    chief, worker = processes.run(UNEVEN.shares, seeds, tmp_path / "members", NO_PROGRESS_S, module=module)
    record = json.loads((chief / "record.json").read_text())
    wrong, found = [], 0
    for seed in seeds:
        (one, first, second), told = [_weights(f, seed) for f in (alone, chief, worker)], record[seed]
        apart = max(_apart(a, b) for a, b in zip(one, first, strict=True))
        equal = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))
        exact = apart <= TOLERANCE
        found += any("audit" in words for words in told["words"])
        if not equal or not (exact or told["differences"]) or (told["of_rows"] and told["words"]):
            wrong.append(f"seed {seed} ({told['what']}): {apart:.1e} apart, told {told['words']}")
    assert not wrong, "\n".join(wrong)
    assert found, "no audit found anything: nothing was tried"


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """Weights that became NaN in one process must be NaN in members."""
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return float("inf")
    return float(np.abs(one - other, where=np.isfinite(one), out=np.zeros_like(one)).max())


def _weights(folder: Path, seed: str) -> list[np.ndarray]:
    left = np.load(folder / f"{seed}.npz")
    return [left[name] for name in left.files]
