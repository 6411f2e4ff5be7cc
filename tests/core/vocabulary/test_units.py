"""One convention for durations, sizes and rates."""

from datetime import datetime

import pytest

from core.vocabulary import units


def test_a_part_has_the_unit_of_the_whole() -> None:
    assert units.part(1.7e9, 25.3e9) == "1.7 of 25.3 GB"
    assert units.part(9e8, 25.3e9) == "900 MB of 25.3 GB"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0 s"),
        (-3.0, "0 s"),
        (0.0004, "0.4 ms"),
        (0.0014, "1.4 ms"),
        (0.01, "10 ms"),
        (0.2304, "230 ms"),
        (0.9996, "1 s"),
        (2.0, "2 s"),
        (4.24, "4.2 s"),
        (9.96, "10 s"),
        (40.4, "40 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (180.0, "3 min"),
        (7100.0, "118 min"),
        (7199.0, "2 h"),
        (1e7, "2,778 h"),
    ],
)
def test_a_duration_has_the_unit_that_fits(seconds: float, shown: str) -> None:
    assert units.duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(7.4, "0:07"), (59.6, "1:00"), (750.0, "12:30"), (3723.0, "1:02:03"), (-3.0, "0:00")],
)
def test_a_clock_counts_hours_only_where_there_are_any(seconds: float, shown: str) -> None:
    assert units.clock(seconds) == shown


def test_a_moment_is_that_of_the_clock_on_the_wall() -> None:
    noon_s = datetime(2026, 11, 21, 12, 3, 10).timestamp()
    assert units.moment(noon_s) == "2026-11-21 12:03"
    assert units.moment(noon_s, "%H:%M:%S") == "12:03:10"
    assert units.moment(1e300) == units.moment(float("nan")) == "unknown"


def test_a_count_uses_singular_and_plural() -> None:
    assert [units.number_of(count, "file") for count in (0, 1, 1234)] == ["0 files", "1 file", "1,234 files"]


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (-1, "0 bytes"),
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1024, "1 kB"),
        (1_440_000, "1.4 MB"),
        (70_500_000, "70.5 MB"),
        (512_000_000, "512 MB"),
        (999_960_000, "1 GB"),
        (16_600_000_000, "16.6 GB"),
        (4e12, "4,000 GB"),
    ],
)
def test_a_size_is_in_powers_of_a_thousand(count: float, shown: str) -> None:
    assert units.size(count) == shown


def test_rates() -> None:
    assert units.rate(1_440_000) == "1.4 MB/s"
    assert units.rate(999.4) == "0"
    assert units.samples(1234.4) == "1,234 samples/s"
    assert units.steps(1234.56) == "1,234.6 steps/s"
