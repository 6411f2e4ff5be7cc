from __future__ import annotations

from core.runtime.timers import Timers
from core.vocabulary.limits import Wait
from tests.core.run.lan import HandClock


def test_waits_run_out_begin_anew_and_are_called_off() -> None:
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
