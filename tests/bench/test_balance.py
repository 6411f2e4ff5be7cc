"""A slowed member, and how its rounds become rows."""

import subprocess
import sys
import time

import numpy as np
import pytest

from bench import balance
from bench.engine import slowed

SPIN = "while True: pass"


def test_speeds_are_compared_round_by_round() -> None:
    speeds = {"even": [1.0, 2.0], "balanced": [2.0, 4.0], "fast": [1.5, 3.0], "slow": [0.5, 2.0]}
    rows = {row.what: row for row in balance.rows(speeds, {"even": 1e-7, "balanced": 1e-5}, [(3, 1), (6, 2)])}
    assert rows["shares by speed ÷ even split"].value == 2.0
    assert rows["shares by speed ÷ the sum of both alone"].value == (1.0 + 0.8) / 2
    assert rows["the faster one's part of a batch"].value == 0.75
    exact = [row.kept for what, row in rows.items() if "difference" in what]
    assert exact == [True, False]


def test_the_largest_difference_of_any_member_counts() -> None:
    one = [np.zeros((2, 2)), np.ones(3)]
    other = [np.zeros((2, 2)), np.array([1.0, 1.0, 1.25])]
    assert balance.difference([one, other], one) == 0.25
    assert balance.difference([one], one) == 0.0


@pytest.mark.real
@pytest.mark.parametrize("quota", [True, False])
def test_a_slowed_process_gets_no_more_than_its_part(quota: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not quota:
        monkeypatch.setattr(slowed, "_quota", lambda part: None)
    with subprocess.Popen([sys.executable, "-c", SPIN]) as busy:
        try:
            with slowed.slowed([busy.pid], 0.2) as how:
                clock = (
                    ~busy.pid << 3
                ) | 2  # of the CPU time of that process, as clock_getcpuclockid(3) has it
                before_s, began_s = time.clock_gettime(clock), time.monotonic()
                time.sleep(1.0)
                part = (time.clock_gettime(clock) - before_s) / (time.monotonic() - began_s)
            assert how in ("CPU quota", "stopped and continued")
            assert part < 0.5
        finally:
            busy.kill()
