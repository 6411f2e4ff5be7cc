from __future__ import annotations

from core.run.timers import Waits
from core.run.waits import Wait
from tests.core.run.lan import HandClock


def test_waits_run_out_begin_anew_and_are_called_off() -> None:
    clock, over = HandClock(), list[Wait]()
    waits = Waits(clock, over.append)
    waits.begin("consent", 10.0)
    waits.begin("start", 5.0)
    waits.begin("stop", 1.0)
    waits.end("stop")
    clock.advance(4.0)
    waits.begin("start", 5.0)
    clock.advance(4.0)
    assert over == []
    clock.advance(1.0)
    assert over == ["start"]
    waits.end_all()
    clock.advance(100.0)
    assert over == ["start"]
