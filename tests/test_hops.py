"""How many of the project's modules pressing Train passes, from the window's bridge to the trainer's start.

A real node takes the command on its own thread and trains alone; only the trainer is a stand-in. A context
variable, which callbacks, tasks and the threads' work inherit, tells what happens for this command from what
happens beside it (telemetry, discovery). ``core.vocabulary`` is data and the log is no stop: neither counts.

- A module is *passed* where one of its frames is running while the command is handed on: something is
  scheduled on a loop or a thread, a machine's input, effect or state is made, or the trainer is started.
- A module is *consulted* where it runs and answers: it reads the script, makes the plan, writes the record.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.connection import Connection
from app.core_thread import CoreThread
from core.vocabulary.commands import StartRun
from core.vocabulary.phases import Exit
from core.vocabulary.plan import RunSpec
from core.vocabulary.trainer_messages import Train
from tests.core import nodes

ROOT = Path(__file__).parent.parent
MOST_PASSED = 20
MOST_CONSULTED = 31
UNCOUNTED = ("core.vocabulary.", "core.runtime.logs")
LIMIT_MS = 60_000


def module_of(frame: FrameType) -> str:
    """``""`` for what is not the project's, or does not count."""
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.startswith(("app.", "core.")) and not name.startswith(UNCOUNTED) else ""


def hands_on(frame: FrameType) -> bool:
    code = frame.f_code
    if code.co_filename == "<string>" and code.co_name == "__init__":  # a dataclass is made
        return type(frame.f_locals.get("self")).__module__.startswith("core.run.")
    file = Path(code.co_filename).name
    return (file, code.co_name) in {
        ("base_events.py", "call_soon"),
        ("base_events.py", "call_soon_threadsafe"),
        ("thread.py", "submit"),
    }


class Way:
    """What ran for one command, and what of it handed the command on."""

    def __init__(self) -> None:
        self.mine = ContextVar("mine", default=False)
        self.ran: set[str] = set()
        self.passed: set[str] = set()
        self.arrived = threading.Event()

    def look(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or self.arrived.is_set() or not self.mine.get():
            return
        if name := module_of(frame):
            self.ran.add(name)
        if hands_on(frame):
            self.take_stack(frame)

    def take_stack(self, frame: FrameType | None) -> None:
        while frame is not None:
            if name := module_of(frame):
                self.passed.add(name)
            frame = frame.f_back

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Threads that start within are watched."""
        threading.setprofile(self.look)
        try:
            yield
        finally:
            threading.setprofile(None)

    def go(self, bridge: Bridge, command: StartRun) -> None:
        before = sys.getprofile()
        token = self.mine.set(True)
        sys.setprofile(self.look)
        try:
            bridge.submit(command)
        finally:
            sys.setprofile(before)
            self.mine.reset(token)


class StandIn:
    """A trainer that notes that it was started, and by whom."""

    def __init__(self, way: Way, **callbacks: Any) -> None:
        self._way = way
        self._on_exit = callbacks["on_exit"]

    def start(self) -> None:
        self._way.take_stack(sys._getframe(1))
        self._way.arrived.set()

    @property
    def is_stopped(self) -> bool:
        return False

    @property
    def cpu_s(self) -> float:
        return 0.0

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
    async def opens() -> AsyncIterator[Connection]:
        async with nodes.node(tmp_path, "Anna", make_trainer=make_trainer) as node:
            yield Connection(node, own=True)

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
    consulted = way.ran - way.passed
    assert {"app.bridge", "core.node.node", "core.run.runs", "core.supervisor.trainers"} <= way.passed
    assert len(way.passed) <= MOST_PASSED, sorted(way.passed)
    assert len(consulted) <= MOST_CONSULTED, sorted(consulted)
