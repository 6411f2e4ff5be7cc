"""How rounds of a transfer become rows."""

from bench import transfer_speed
from bench.transfer_speed import LATE_S, MEMORY_MB, Transferred

GOOD = Transferred(bytes_s=100e6, late_s=LATE_S / 2, memory_mb=MEMORY_MB / 2)


def test_the_worst_round_of_memory_and_lateness_and_the_median_of_speed_count() -> None:
    bad = Transferred(bytes_s=100e6, late_s=LATE_S * 2, memory_mb=MEMORY_MB * 2)
    speed, late, memory = transfer_speed.rows("a file", [0.8, 0.9, 0.95], [GOOD, bad, GOOD], 0.85)
    assert (speed.value, speed.kept) == (0.9, True)
    assert late.kept is False
    assert memory.kept is False
    assert transfer_speed.rows("a file", [0.8], [GOOD], 0.85)[0].kept is False
