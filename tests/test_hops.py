"""How many of the project's modules pressing Train passes, from the window's bridge to the trainer's start.

A real node takes the command on its own thread and trains alone; only the trainer is a stand-in. A context
variable, which callbacks, tasks and the threads' work inherit, tells what happens for this command from what
happens beside it (telemetry, discovery). ``core.vocabulary`` is data and the log is no stop: neither counts.

- A module is *passed* where one of its frames is running while the command is handed on, on the way that ends
  in the trainer's start: a callback, a task or posted work is scheduled from which that start follows, or a
  machine's input, effect or state is made before. What is scheduled beside it (a record, say) is not the way.
- A module is *consulted* where it runs and answers on that way, in a thread that is waited for, too: it reads
  the script, makes the plan, hears what is told.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, Token
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.connection import NodeConnection
from app.core_thread import CoreThread
from core.vocabulary.commands import StartRun
from core.vocabulary.phases import Exit
from core.vocabulary.plan import RunSpec
from core.vocabulary.trainer_messages import Order, Train
from tests.core import nodes

ROOT = Path(__file__).parent.parent
MOST_PASSED = 16
MOST_CONSULTED = 47
UNCOUNTED = ("core.vocabulary.", "core.runtime.logs")
LIMIT_MS = 60_000


def module_of(frame: FrameType) -> str:
    """``""`` for modules outside the project, or that do not count."""
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.startswith(("app.", "core.")) and not name.startswith(UNCOUNTED) else ""


HANDS_ON = {
    ("base_events.py", "call_soon"),
    ("base_events.py", "call_soon_threadsafe"),
    ("base_events.py", "create_task"),
    ("background.py", "post"),
}


def is_made_for_a_run(frame: FrameType) -> bool:
    """A frozen dataclass of a run: an input, an effect or a state of its machines."""
    if (frame.f_code.co_filename, frame.f_code.co_name) != ("<string>", "__init__"):
        return False
    kind: Any = type(frame.f_locals.get("self"))
    return kind.__module__.startswith("core.run.") and bool(kind.__dataclass_params__.frozen)


class Leg:
    """The events from one hand-over to the next. ``before``: the leg that handed over to this one."""

    def __init__(self, before: Leg | None, passed: set[str]) -> None:
        self.before = before
        self.passed = passed
        self.ran: set[str] = set()

    def way(self) -> Iterator[Leg]:
        leg: Leg | None = self
        while leg is not None:
            yield leg
            leg = leg.before


def modules_on(frame: FrameType | None) -> set[str]:
    """The project's modules, from this frame outwards."""
    found = set()
    while frame is not None:
        found.add(module_of(frame))
        frame = frame.f_back
    return found - {""}


class Way:
    """The frames that ran for one command, and those of them that handed it on."""

    def __init__(self) -> None:
        self.leg: ContextVar[Leg | None] = ContextVar("leg", default=None)
        self.handing: dict[FrameType, Token[Leg | None]] = {}
        self.last: Leg | None = None
        self.arrived = threading.Event()

    def look(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "return" and (token := self.handing.pop(frame, None)) is not None:
            self.leg.reset(token)
        if event != "call" or self.arrived.is_set() or (leg := self.leg.get()) is None:
            return
        if name := module_of(frame):
            leg.ran.add(name)
        if is_made_for_a_run(frame):
            leg.passed |= modules_on(frame)
        if (Path(frame.f_code.co_filename).name, frame.f_code.co_name) in HANDS_ON:
            self.handing[frame] = self.leg.set(Leg(leg, modules_on(frame)))

    def arrive(self, frame: FrameType) -> None:
        self.last = self.leg.get()
        if self.last is not None:
            self.last.passed |= modules_on(frame)
        self.arrived.set()

    @property
    def passed(self) -> set[str]:
        assert self.last is not None, "the way is lost: something between handed on without its context"
        return set().union(*(leg.passed for leg in self.last.way()))

    @property
    def consulted(self) -> set[str]:
        assert self.last is not None
        return set().union(*(leg.ran for leg in self.last.way())) - self.passed

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watches threads that start within."""
        threading.setprofile(self.look)
        try:
            yield
        finally:
            threading.setprofile(None)

    def go(self, bridge: Bridge, command: StartRun) -> None:
        before = sys.getprofile()
        token = self.leg.set(Leg(None, set()))
        sys.setprofile(self.look)
        try:
            bridge.submit(command)
        finally:
            sys.setprofile(before)
            self.leg.reset(token)


class StandIn:
    """A trainer that records its start and its starter."""

    def __init__(self, way: Way, **callbacks: Any) -> None:
        self._way = way
        self._on_exit = callbacks["on_exit"]

    def start(self) -> None:
        self._way.arrive(sys._getframe(1))

    @property
    def is_stopped(self) -> bool:
        return False

    @property
    def cpu_s(self) -> float:
        return 0.0

    def order(self, order: Order) -> None:
        raise AssertionError("nobody leaves")

    def stop(self, force: int = 0) -> None:
        asyncio.get_running_loop().call_soon(self._on_exit, Exit(reason="stopped"))


@pytest.mark.real
def test_pressing_train_passes_few_modules_until_the_trainer_starts(qtbot: QtBot, tmp_path: Path) -> None:
    way = Way()
    script = tmp_path / "somewhere" / "project" / "train.py"
    script.parent.mkdir(parents=True)
    script.write_text("import keras\nmodel = keras.Sequential()\nmodel.fit(1)\n")

    def make_trainer(train: Train, **callbacks: Any) -> StandIn:
        return StandIn(way, **callbacks)

    @asynccontextmanager
    async def opens() -> AsyncIterator[NodeConnection]:
        async with nodes.node(tmp_path, "Anna", make_trainer=make_trainer) as node:
            yield NodeConnection(node, own=True)

    bridge = Bridge()
    core = CoreThread(opens, bridge.deliver, bridge.begin, bridge.fail, bridge.end)
    bridge.attach(core)
    with way.watched():
        core.start()
        try:
            qtbot.waitUntil(lambda: bridge.state.me is not None, timeout=LIMIT_MS)
            way.go(bridge, StartRun(spec=RunSpec(script=str(script), seed=1, solo=True)))
            qtbot.waitUntil(way.arrived.is_set, timeout=LIMIT_MS)
        finally:
            core.ask_to_end()
            assert core.wait_ended()
    assert {"app.bridge", "core.node.node", "core.run.runs", "core.supervisor.trainers"} <= way.passed
    assert len(way.passed) <= MOST_PASSED, sorted(way.passed)
    assert len(way.consulted) <= MOST_CONSULTED, sorted(way.consulted)
