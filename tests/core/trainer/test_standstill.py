"""Whether, when and how a trainer reports that exchanges no longer end."""

from __future__ import annotations

import faulthandler
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from core.exchange.state import Waiting
from core.trainer.reporter import Reporter
from core.trainer.standstill import (
    REPORT_AFTER_S,
    STACK_AFTER_S,
    Place,
    Seen,
    Standstill,
    StandstillWatch,
    place_of,
)
from core.vocabulary.limits import ACTIVITY_EVERY_S
from core.vocabulary.trainer_messages import Report, Said, StatusChanged
from core.vocabulary.waits import TrainerStatus
from core.vocabulary.wire import from_json

LIMIT_S = 60.0


def in_script() -> Place:
    return "callback", "train.py, line 3"


def never() -> Place:
    raise AssertionError("who waits for others is not asked what it does")


def wait(come: int = 0, *, since_s: float = 3.0) -> Waiting:
    return Waiting(
        rank=1, since_s=since_s, bytes_come=come, bytes_total=100, connection="connected", heard_s=0.1
    )


def looked(
    standstill: Standstill, until_s: int, seen: Seen, place: Callable[[], Place] = in_script
) -> list[tuple[float, TrainerStatus | Literal["stack"] | None]]:
    """Once a second, like the watch."""
    first = int(standstill.now_s) + 1
    return [(now, word) for now in range(first, until_s + 1) for word in standstill.check(now, seen, place)]


def test_steps_that_end_are_not_reported() -> None:
    standstill = Standstill(0.0)
    assert [standstill.check(now, Seen(now), never) for now in range(1, 20)] == [[]] * 19


def test_a_long_wait_is_reported_repeatedly_and_once_when_it_ends() -> None:
    standstill = Standstill(0.0)
    told = looked(standstill, 11, Seen(0))
    times = [now for now, _ in told]
    assert times == [REPORT_AFTER_S, REPORT_AFTER_S + ACTIVITY_EVERY_S, REPORT_AFTER_S + 2 * ACTIVITY_EVERY_S]
    assert told[0][1] == TrainerStatus(activity="callback", where="train.py, line 3", lasted_s=2.0)
    assert standstill.check(12, Seen(1), never) == [None]
    assert standstill.check(13, Seen(1), never) == []


def test_another_place_is_reported_at_once() -> None:
    standstill = Standstill(0.0)
    looked(standstill, 3, Seen(0))
    told = standstill.check(4, Seen(0), lambda: ("script", "train.py, line 9"))
    assert [word.where for word in told if isinstance(word, TrainerStatus)] == ["train.py, line 9"]


def test_a_waiting_member_reports_for_whom_and_how_fast_data_comes() -> None:
    standstill = Standstill(0.0)
    assert standstill.check(1, Seen(0, [wait(0)]), never) == []
    (first,) = standstill.check(2, Seen(0, [wait(20)]), never)
    assert isinstance(first, TrainerStatus) and first.activity == "exchange"
    for now in (3, 4, 5):
        standstill.check(now, Seen(0, [wait(10 * now)]), never)
    (later,) = standstill.check(6, Seen(0, [wait(60)]), never)
    assert isinstance(later, TrainerStatus)
    (peer,) = later.peers
    assert (peer.rank, peer.bytes_come, peer.bytes_total) == (1, 60, 100)
    assert peer.bytes_s == pytest.approx(10.0) and peer.connected


def test_a_wait_of_a_moment_after_the_scripts_own_long_work_is_not_reported() -> None:
    standstill = Standstill(0.0)
    for now in range(1, 3):
        standstill.check(now, Seen(0), in_script)
    assert standstill.check(3, Seen(0, [replace(wait(0), since_s=0.01)]), never) == []
    assert standstill.check(4, Seen(0, [replace(wait(0), since_s=1.01)]), never) == []
    (word,) = standstill.check(5, Seen(0, [replace(wait(0), since_s=2.01)]), never)
    assert isinstance(word, TrainerStatus) and word.activity == "exchange"


def stacks(told: list[tuple[float, TrainerStatus | Literal["stack"] | None]]) -> list[float]:
    return [now_s for now_s, word in told if word == "stack"]


def test_a_member_that_keeps_others_waiting_logs_its_stack_once_for_each_place() -> None:
    standstill = Standstill(0.0)
    told = looked(standstill, 60, Seen(0, awaited=True))
    assert stacks(told) == [1 + STACK_AFTER_S]
    standstill.check(61, Seen(1), never)
    assert stacks(looked(standstill, 90, Seen(1, awaited=True))) == [], "each step is as slow as the last"
    standstill.check(91, Seen(2), never)
    elsewhere = looked(standstill, 120, Seen(2, awaited=True), lambda: ("script", "train.py, line 9"))
    assert stacks(elsewhere) == [92 + STACK_AFTER_S]


def test_a_member_that_keeps_others_waiting_from_line_to_line_logs_its_stack_once() -> None:
    standstill = Standstill(0.0)
    places: list[Place] = [("script", f"train.py, line {number}") for number in range(100)]
    told = looked(standstill, 60, Seen(0, awaited=True), places.pop)
    assert stacks(told) == [1 + STACK_AFTER_S]


def test_a_wait_of_others_counts_from_its_beginning_and_not_from_the_last_meeting() -> None:
    standstill = Standstill(0.0)
    looked(standstill, 100, Seen(0))
    told = looked(standstill, 130, Seen(0, awaited=True))
    assert stacks(told) == [101 + STACK_AFTER_S]


def test_a_member_that_keeps_nobody_waiting_logs_no_stack() -> None:
    assert "stack" not in [word for _, word in looked(Standstill(0.0), 300, Seen(0))]


def test_a_process_that_was_stopped_does_not_count_that_time() -> None:
    standstill = Standstill(0.0)
    looked(standstill, 1, Seen(0, awaited=True))
    assert standstill.check(100, Seen(0, awaited=True), in_script) == []
    told = looked(standstill, 102, Seen(0, awaited=True))
    assert [word.lasted_s for _, word in told if isinstance(word, TrainerStatus)] == [pytest.approx(2.0)]


# --- where a script is -------------------------------------------------------------------------------------


def stack_of(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A script that calls ``here()`` where it is inspected."""
    import builtins

    found: list[Place] = []
    monkeypatch.setattr(
        builtins, "here", lambda: found.append(place_of(sys._getframe(1), tmp_path)), raising=False
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "train.py").write_text(text)
    runpy.run_path(str(tmp_path / "train.py"))
    (place,) = found
    return place


def test_a_line_of_the_script_is_named_with_its_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def prepare():\n    list(map(lambda _: here(), [1]))\n\nprepare()\n"
    assert stack_of(tmp_path, text, monkeypatch) == ("script", "train.py, line 2, in <lambda>")


def test_a_module_that_is_imported_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_module_here.py").write_text("\nhere()\n")
    place = stack_of(tmp_path, "import slow_module_here\n", monkeypatch)
    assert place == ("importing", "slow_module_here.py, line 2")


def test_a_stack_without_the_script_has_no_place(tmp_path: Path) -> None:
    assert place_of(sys._getframe(), tmp_path) == ("script", "")
    assert place_of(None, tmp_path) == ("script", "")


# --- the thread --------------------------------------------------------------------------------------------


class Stuck:
    """Exchanges that never end, though others wait."""

    ended = 0
    is_awaited = True

    def waiting(self) -> list[Waiting]:
        return []


@pytest.mark.real
def test_the_watch_reports_by_itself_and_ends_when_told(tmp_path: Path) -> None:
    read, write = os.pipe()
    watch = StandstillWatch(Stuck(), Reporter(write), tmp_path)
    began_s = time.monotonic()
    with os.fdopen(read, "rb") as lines:
        report: Report = from_json(lines.readline(), Report)  # type: ignore[arg-type]
    assert time.monotonic() - began_s < LIMIT_S
    assert isinstance(report, StatusChanged) and report.status is not None
    watch.end()
    assert "standstill" not in [thread.name for thread in threading.enumerate()]
    assert not isinstance(report, Said)


@pytest.mark.real
def test_no_timer_dumps_the_stacks_of_running_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """faulthandler's timer fires when a stopped process continues: then every thread runs, and reading
    their stacks sometimes crashes."""
    armed: list[object] = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *args, **kw: armed.append(args))
    read, write = os.pipe()
    watch = StandstillWatch(Stuck(), Reporter(write), tmp_path)
    with os.fdopen(read, "rb") as lines:
        lines.readline()
    watch.end()
    assert armed == []
