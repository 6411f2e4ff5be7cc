"""The transfer rate of files, as far as known."""

from __future__ import annotations

import pytest

from core.run.transfer import RATE_S, ByteRate


def test_the_rate_is_that_of_the_last_seconds() -> None:
    rate = ByteRate()
    assert rate.at(0.0, 1_000_000) == 0.0, "what was here before did not come now"
    assert rate.at(0.2, 2_000_000) == 0.0, "too short a time to tell"
    assert rate.at(2.0, 5_000_000) == 2_000_000
    for tenth in range(21, 200):
        now = rate.at(tenth / 10, 5_000_000 + 10_000 * (tenth - 20))
    assert now == pytest.approx(100_000)
    assert rate.at(20.0 + RATE_S, 6_800_000) < 100_000, "it stands still"


def test_discarded_bytes_that_come_again_give_no_negative_rate() -> None:
    rate = ByteRate()
    rate.at(0.0, 1_000)
    assert rate.at(3.0, 10) == 0.0


def test_time_spent_on_own_files_does_not_slow_the_rate() -> None:
    rate = ByteRate()
    for second in range(4):
        assert rate.at(second, second * 1_000_000) == (1_000_000 if second else 0.0)
    assert rate.at(120.0, 3_000_000) == 0.0, "not known again"
    assert rate.at(122.0, 5_000_000) == 1_000_000
