"""Gradients in fewer bits on the wire: members stay bit-identical, and close to one process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.exactness import processes
from tests.exactness.matrix import NO_PROGRESS_S, UNEVEN, Matrix, difference

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]
NAMES = ("sgd_momentum", "embedding", "large_and_small_tensors")


def arrays(folder: Path, name: str) -> dict[str, np.ndarray]:
    error = folder / f"{name}.error"
    assert not error.exists(), error.read_text()
    return dict(np.load(folder / f"{name}.npz"))


@pytest.mark.parametrize(
    ("wire", "bits", "tolerance"),
    [("bf16", 16, 3e-2), ("int8", 8, 3e-2), pytest.param("fp16", 16, 3e-3, marks=pytest.mark.complete)],
)
def test_narrowed_gradients_leave_members_equal_and_near(
    matrix: Matrix, wire: str, bits: int, tolerance: float, tmp_path: Path
) -> None:
    chief, worker = processes.run(UNEVEN.shares, NAMES, tmp_path, NO_PROGRESS_S, wire=wire)
    for name in NAMES:
        alone, first, second = matrix.plain(name), arrays(chief, name), arrays(worker, name)
        weights = [key for key in alone if key.startswith("weight/")]
        assert weights
        assert all(difference(first[key], second[key]) == 0.0 for key in weights)
        apart = max(difference(first[key], alone[key]) for key in weights)
        assert apart <= tolerance, f"{name} is {apart:.1e} from one process"
        # Exact gradients end within 2e-6: a larger difference shows that they travelled in fewer bits.
        assert apart > 1e-5, f"{name} is only {apart:.1e} from one process"
        for folder in (chief, worker):
            told = json.loads((folder / f"{name}.told.json").read_text())
            assert told["sent_bits"] == [bits]
            assert any(
                f"gradients are sent in {bits} bits. The result is not" in each for each in told["words"]
            )


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("bf16", "planted_a_sum_that_is_skipped"),
        pytest.param("fp16", "planted_a_sum_that_is_skipped", marks=pytest.mark.complete),
        ("int8", "planted_numbers_in_eight_bits_that_are_halved"),
        ("bf16", "planted_slices_of_a_table_doubled"),
        pytest.param("f32", "planted_a_sum_that_is_skipped_eagerly", marks=pytest.mark.complete),
        ("f32", "planted_slices_of_a_table_doubled_eagerly"),
    ],
)
def test_a_wrong_sum_ends_a_run_whose_steps_are_not_audited(wire: str, name: str, tmp_path: Path) -> None:
    """Narrowed gradients, and steps that run eagerly."""
    for folder in processes.run(UNEVEN.shares, [name], tmp_path, NO_PROGRESS_S, wire=wire):
        # The fault begins at the 11th step; of the steps behind it, the 16th is the first to be audited.
        assert "In step 16, the laptops received sums" in (folder / f"{name}.error").read_text()
