"""How many types a step's metric wears between Keras and a plot, counted while one passes through.

Every call of a function of ``core`` is looked at: what it is given and what it returns. A type of ``core``
that holds the metric, however deep, is an envelope. Here is the trainer's part of the way, from the engine's
numbers to the door of the participant; docs/decisions/0019 has the rest.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from core.supervisor.driver import TrainerProcess
from core.supervisor.spawn import Child
from core.trainer.exact.interface import StepReport
from core.trainer.observer import ReportingObserver
from core.trainer.reporter import Reporter
from core.vocabulary.progress import Progress
from core.vocabulary.trainer_messages import Progressed, Report, Train

CORE = str(Path(__file__).parent.parent / "core")
METRIC = "a metric that nothing else is called"
LIMIT_S = 60.0


def holds(value: Any, name: str) -> bool:
    """Whether a metric of this name is in there."""
    if isinstance(value, dict):
        return name in value or any(holds(each, name) for each in value.values())
    if isinstance(value, tuple | list):
        return any(holds(each, name) for each in value)
    return any(holds(part, name) for part in parts(value))


def parts(value: Any) -> Iterator[Any]:
    """What a message or another value is made of."""
    if isinstance(value, msgspec.Struct):
        yield from (getattr(value, field) for field in value.__struct_fields__)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name) for field in fields(value))


def envelopes_in(value: Any, name: str) -> Iterator[type]:
    """The types of ``core`` that hold the metric in ``value``, the outermost first."""
    if not holds(value, name):
        return
    if type(value).__module__.startswith("core."):
        yield type(value)
    for part in parts(value):
        yield from envelopes_in(part, name)


@contextmanager
def counted(name: str) -> Iterator[set[type]]:
    """Collects the envelopes that pass through ``core`` meanwhile, on threads that begin in here too."""
    found: set[type] = set()

    def watch(frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(CORE):
            return
        if event == "call":
            given = code.co_argcount + code.co_kwonlyargcount
            for argument in code.co_varnames[:given]:
                found.update(envelopes_in(frame.f_locals.get(argument), name))
        elif event == "return":
            found.update(envelopes_in(value, name))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class Sleeper:
    """A process that says nothing; in its name the test writes reports."""

    def __init__(self) -> None:
        reports_read, self.reports = os.pipe()
        orders_read, orders = os.pipe()
        leash_read, leash = os.pipe()
        self._ours = (orders_read, leash_read, self.reports)
        self.child = Child(
            process=subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            ),
            orders=orders,
            reports=reports_read,
            leash=leash,
            started_s=0.0,
        )

    def close(self) -> None:
        for fd in self._ours:
            os.close(fd)


def report(value: float) -> StepReport:
    return StepReport(step=1, epoch=0, batch=1, steps_in_epoch=10, rows=64, logs={METRIC: value}, step_s=0.02)


def test_an_envelope_is_found_however_deep() -> None:
    progress = Progress(at_s=0.0, epoch=0, epochs=1, step=0, batch=0, logs={METRIC: 0.5})
    assert [*envelopes_in(Progressed(progress=progress), METRIC)] == [Progressed, Progress]
    assert not [*envelopes_in(Progressed(progress=progress), "another")]


@pytest.mark.real
async def test_a_metric_comes_from_the_engine_to_the_participant_in_three_envelopes(tmp_path: Path) -> None:
    sleeper = Sleeper()
    told: asyncio.Queue[Report] = asyncio.Queue()
    over = asyncio.Event()
    passed_on: Callable[[Report], None] = told.put_nowait
    with counted(METRIC) as envelopes:
        trainer = TrainerProcess(
            Train(run="run", task="chief", folder=str(tmp_path), script="script.py"),
            log_path=tmp_path / "log",
            on_report=passed_on,
            on_output=lambda lines: None,
            on_exit=lambda exit: over.set(),
            child=sleeper.child,
        )
        trainer.start()
        reporter = Reporter(sleeper.reports)
        observer = ReportingObserver(reporter, shares=(1,), rank=0, stop_asked=lambda: False)
        observer.on_step(report(0.25))
        arrived = await asyncio.wait_for(told.get(), LIMIT_S)
    trainer.stop(2)
    await asyncio.wait_for(over.wait(), LIMIT_S)
    sleeper.close()
    assert isinstance(arrived, Progressed) and arrived.progress.logs == {METRIC: 0.25}
    assert envelopes == {StepReport, Progress, Progressed}
