from __future__ import annotations

from core.runtime.timers import Timers
from core.vocabulary.limits import Wait
from tests.core.run.lan import HandClock


def test_timers_run_out_restart_and_are_cancelled() -> None:
    clock, fired = HandClock(), list[Wait]()
    timers = Timers(clock, fired.append)
    timers.set("consent", 10.0)
    timers.set("start", 5.0)
    timers.set("stop", 1.0)
    timers.cancel("stop")
    clock.advance(4.0)
    timers.set("start", 5.0)
    clock.advance(4.0)
    assert fired == []
    clock.advance(1.0)
    assert fired == ["start"]
    timers.cancel_all()
    clock.advance(100.0)
    assert fired == ["start"]
