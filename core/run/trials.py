"""Trials on other laptops: runs that this node starts there without taking part, several at once. On the core
loop.

A trial on this laptop is an ordinary run (``NodeRuns.start``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from core.run import problems
from core.run.context import RunContext
from core.run.coordinator import state as co
from core.run.coordinator.driver import CoordinatorDriver
from core.run.planner import Planner, TrialWanted
from core.run.recorder import Recorder
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import TandemError
from core.vocabulary.events import MirroredEvent, Shown
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import Message
from core.vocabulary.plan import Role, RunSpec
from core.vocabulary.traffic import LinkNews, run_of


class RemoteTrials:
    """One per node. ``planner``: its own, as plans are made one at a time."""

    def __init__(self, context: RunContext, planner: Planner, recorder: Recorder) -> None:
        self._context = context
        self._planner = planner
        self._recorder = recorder
        self._planning = asyncio.Lock()
        self._coordinators: dict[RunId, CoordinatorDriver] = {}
        self._none = asyncio.Event()
        self._none.set()
        self._closing = False

    async def start(
        self, spec: RunSpec, device: DeviceId, wanted: TrialWanted, on_event: Callable[[MirroredEvent], None]
    ) -> None:
        """Begin a trial on a linked laptop. ``on_event`` gets its events. Raises ``TandemError``."""
        pressed_s, me = self._context.clock.time(), self._context.me
        spec = replace(spec, devices=(device,), solo=False, roles={me: (Role.NONE,)})
        async with self._planning:
            planned = await self._planner.plan(spec, trial=wanted)
        if self._closing:
            raise TandemError.of(problems.stopped_by(self._context.my_name))

        def show(event: Shown) -> None:
            if not isinstance(event, ev.ConsentAsked | ev.ConsentSettled):
                self._recorder.record(event)
                on_event(event)

        def over() -> None:
            del self._coordinators[wanted.run]
            if not self._coordinators:
                self._none.set()

        project = planned.project
        self._recorder.begin(planned.plan, project.source, spec, project.manifest, self._context.state())
        driver = CoordinatorDriver(self._context, planned, pressed_s, emit=show, on_over=over)
        self._coordinators[wanted.run] = driver
        self._none.clear()
        driver.begin()

    def stop(self, run: RunId) -> None:
        """As ``NodeRuns.stop``; does nothing once it is over."""
        if (driver := self._coordinators.get(run)) is not None:
            driver.handle(co.StopWanted(self._context.my_name, driver.state.next_force))

    def on_link(self, news: LinkNews) -> None:
        for driver in tuple(self._coordinators.values()):
            if news.device in driver.state.parts:
                driver.handle(news)

    def on_message(self, device: DeviceId, message: Message) -> bool:
        """False: it is not about a trial that was started here."""
        run = None if isinstance(message, ms.Prepare) else run_of(message)
        driver = self._coordinators.get(run) if run is not None else None
        if driver is None:
            return False
        driver.on_message(device, message)
        return True

    async def close(self) -> None:
        """End all trials."""
        self._closing = True
        for driver in tuple(self._coordinators.values()):
            driver.handle(co.NodeEnds(self._context.my_name))
        await self._none.wait()
