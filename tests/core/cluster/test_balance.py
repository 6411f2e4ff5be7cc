"""The balancer with made-up times."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from core.cluster.balance import Balancer
from core.cluster.costs import Cost

ROWS = 64
ALIKE = (Cost(0.0, 0.001), Cost(0.0, 0.001))
WIRE_S = 0.002


def made_up(
    balancer: Balancer, rows_s: Sequence[float], noise: random.Random | None = None
) -> dict[int, float]:
    """Own times by rank, at ``rows_s`` seconds per row; ``noise`` makes one in twenty half as long again."""
    times = [max(1, rows) * row_s for rows, row_s in zip(balancer.shares, rows_s, strict=True)]
    if noise is not None:
        times = [s * noise.uniform(0.9, 1.1) * (1.5 if noise.random() < 0.05 else 1.0) for s in times]
    return dict(enumerate(times))


def after(balancer: Balancer, measurements: int, rows_s: Sequence[float]) -> int:
    """How often shares changed in that many measurements."""
    return sum(balancer.measured(made_up(balancer, rows_s), WIRE_S) for _ in range(measurements))


def test_shares_go_to_three_to_one_and_stay() -> None:
    balancer = Balancer(ROWS, ALIKE, (32, 32))
    assert after(balancer, 10, (0.001, 0.003)) == 1
    assert balancer.shares == (48, 16)
    assert after(balancer, 200, (0.001, 0.003)) == 0


@pytest.mark.parametrize("row_s", [1e-5, 1.0])
def test_shares_go_there_without_any_calibration(row_s: float) -> None:
    balancer = Balancer(ROWS, (Cost(0.0, 1.0), Cost(0.0, 1.0)), (32, 32))
    assert after(balancer, 10, (row_s, 3 * row_s)) == 1
    assert balancer.shares == (48, 16)


def test_a_small_difference_changes_nothing() -> None:
    balancer = Balancer(ROWS, ALIKE, (32, 32))
    assert after(balancer, 100, (0.001, 0.0011)) == 0


def test_a_difference_that_the_wire_dwarfs_changes_nothing() -> None:
    balancer = Balancer(ROWS, ALIKE, (32, 32))
    assert not any(balancer.measured(made_up(balancer, (0.001, 0.0013)), 1.0) for _ in range(100))


def test_a_slow_drift_is_followed() -> None:
    balancer = Balancer(ROWS, ALIKE, (32, 32))
    for percent in range(100, 200):
        balancer.measured(made_up(balancer, (0.001, 0.00001 * percent)), WIRE_S)
    assert balancer.shares[0] == pytest.approx(43, abs=2)


def test_noise_hardly_ever_moves_shares_and_not_far() -> None:
    changes = 0
    for seed in range(20):
        noise = random.Random(seed)
        balancer = Balancer(ROWS, (Cost(0.0, 0.001), Cost(0.0, 0.003)), (48, 16))
        for _ in range(500):
            changes += balancer.measured(made_up(balancer, (0.001, 0.003), noise), WIRE_S)
            assert abs(balancer.shares[0] - 48) <= 6
    assert changes <= 40, "of 10000 measurements"


def test_a_slow_member_with_a_row_too_many_is_relieved_of_it() -> None:
    balancer = Balancer(ROWS, (Cost(0.0, 0.001), Cost(0.0, 0.003)), (47, 17))
    assert after(balancer, 10, (0.001, 0.003)) == 1
    assert balancer.shares == (48, 16), "6 % of a step"


@pytest.mark.parametrize("throttled", [2.0, 3.0])
def test_a_throttled_member_is_relieved_within_ten_measured_steps_and_loaded_again_afterwards(
    throttled: float,
) -> None:
    balancer = Balancer(ROWS, ALIKE, (32, 32))
    after(balancer, 50, (0.001, 0.001))
    assert balancer.shares == (32, 32)
    unsure = balancer.unsure
    assert not unsure
    balancer.measured(made_up(balancer, (0.001, 0.001 * throttled)), WIRE_S)
    assert balancer.unsure, "from here on portions are short: measurements are of few steps"
    assert after(balancer, 2, (0.001, 0.001 * throttled)) == 1
    assert balancer.shares[1] == pytest.approx(ROWS / (1 + throttled), abs=1)
    after(balancer, 50, (0.001, 0.001 * throttled))
    assert after(balancer, 3, (0.001, 0.001)) == 1
    assert balancer.shares == (32, 32)


def test_one_slow_moment_is_an_accident() -> None:
    balancer = Balancer(ROWS, ALIKE, (32, 32))
    after(balancer, 50, (0.001, 0.001))
    for _ in range(10):
        assert after(balancer, 2, (0.001, 0.01)) == 0
        assert after(balancer, 2, (0.001, 0.001)) == 0


def test_a_member_without_rows_can_come_back() -> None:
    balancer = Balancer(ROWS, ALIKE, (32, 32))
    after(balancer, 50, (0.001, 1.0))
    assert balancer.shares == (64, 0)
    after(balancer, 50, (0.001, 0.001))
    assert balancer.shares == (32, 32)


def test_calibrated_costs_determine_the_first_shares() -> None:
    costs = (Cost(0.0, 0.001), Cost(0.0, 0.003))
    balancer = Balancer(ROWS, costs, (32, 32))
    assert not balancer.improve(wire_s=10.0)
    assert balancer.shares == (32, 32)
    assert balancer.improve(WIRE_S)
    assert balancer.shares == (48, 16)


def test_a_training_does_not_begin_with_shares_that_a_member_cannot_hold() -> None:
    assert Balancer(ROWS, (Cost(0.0, 0.001, most=8), Cost(0.0, 0.001)), (32, 32)).shares == (8, 56)


def test_limits_of_memory_hold_whatever_the_speeds() -> None:
    balancer = Balancer(ROWS, (Cost(0.0, 0.001, most=40), Cost(0.0, 0.001)), (32, 32))
    after(balancer, 50, (0.001, 0.01))
    assert balancer.shares == (40, 24)


def test_a_step_with_a_member_that_has_left_since_counts_for_nothing() -> None:
    balancer = Balancer(ROWS, ALIKE, (32, 32))
    assert after(balancer, 2, (0.001, 0.01)) == 0
    balancer.divide_among((0,))
    assert balancer.shares == (64, 0)
    assert not balancer.measured({0: 9.0, 1: 9.0}, WIRE_S)
    assert not balancer.unsure
    balancer.measured({0: 9.0}, WIRE_S)
    assert balancer.unsure
