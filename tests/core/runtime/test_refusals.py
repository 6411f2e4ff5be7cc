"""Refusals: every one counted, few of them told."""

from __future__ import annotations

from core.runtime.refusals import TELL_EVERY_S, Refusals


def test_a_flood_is_counted_and_told_at_a_bounded_rate() -> None:
    now_s, lines = [0.0], list[str]()
    refusals = Refusals(lambda: now_s[0], lines.append)
    for number in range(1000):
        now_s[0] = number * 0.05
        refusals.add("192.0.2.7", "garbage")
    assert refusals.total == refusals.by_reason["garbage"] == 1000
    assert len(lines) == 1 + int(50 // TELL_EVERY_S) - 1
    assert "192.0.2.7" in lines[0]
    assert "garbage" in lines[0]
