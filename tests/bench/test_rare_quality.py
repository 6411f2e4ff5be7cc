"""How losses become rows, and that the works hold out rows that they do not train on."""

import numpy as np
import pytest

from bench import rare_quality


def test_one_bad_run_breaks_its_promise_and_not_the_medians() -> None:
    middle, worst = rare_quality.summary({"every 16 steps": [0.98, 1.2, 1.0]})
    assert (middle.value, middle.kept) == (1.0, True)
    assert (worst.value, worst.kept) == (1.2, False)
    assert rare_quality.row("digits", [1.1, 1.0, 0.9], [0.2, 0.3, 0.4]).value == 1.0


@pytest.mark.cluster
@pytest.mark.parametrize("work", rare_quality.SCRIPTS)
def test_rows_held_out_are_not_trained_on(work: str) -> None:
    from bench.engine import learning

    one, other = learning.load(f"{work}:1"), learning.load(f"{work}:2")
    assert one.held_out is not None and other.held_out is not None
    trained = {row.tobytes() for row in one.images}
    held = {row.tobytes() for row in one.held_out[0]}
    assert held and len(held & trained) < 0.01 * len(held), "rows that the data has twice"
    assert not np.array_equal(one.held_out[0], other.held_out[0])
