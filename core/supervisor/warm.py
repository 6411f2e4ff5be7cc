"""A trainer kept ready, with TensorFlow imported, so that a run starts seconds earlier. On the core thread.

The child waits for its order, with one thread and the environment of no run (``core.trainer.warm``); it costs
memory (about 400 MB) and no CPU. Its leash ends it with the node.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable

import psutil

from core.runtime.background import Background
from core.supervisor import spawn
from core.vocabulary.errors import TandemError

_log = logging.getLogger(__name__)

FORESEEN_S = 300.0
"""How long a warm trainer waits for an expected run; during a run, until after its end."""
LEAST_FREE_BYTES, GIVEN_UP_BYTES = 1_500_000_000, 700_000_000
"""With less available memory, no trainer is started, or kept, for a run that may never come."""


class WarmTrainer:
    """``always``: the setting keeps one between runs. ``foresee`` starts one for a run in preparation.

    ``hand_over`` gives the child to one run; a later ``keep`` starts the next. ``is_wanted``: whether the
    user wants this. ``is_in_a_run``: then one waits in case a lost laptop comes back. ``foresees``: off where
    a test replaces trainers.
    """

    def __init__(
        self,
        is_wanted: Callable[[], bool] = lambda: True,
        is_in_a_run: Callable[[], bool] = lambda: False,
        *,
        foresees: bool = True,
    ) -> None:
        self._is_wanted, self.is_in_a_run, self._foresees = is_wanted, is_in_a_run, foresees
        self._background = Background()
        self._child: spawn.Child | None = None
        self._wanted = False
        self._foreseen: asyncio.TimerHandle | None = None
        self._loaded: asyncio.Future[bool] | None = None
        """Whether the child has loaded TensorFlow; False once there is none."""
        self.always = False

    async def hold(self, always: bool, *, busy: bool) -> None:
        """A setting changed. ``busy``: in a run, after which ``keep`` is called."""
        self.always = always
        if not always:
            self._forget()
            self._wanted = False
            await self._drop()
        elif not busy:
            await self.make_ready()

    async def make_ready(self) -> None:
        """Make sure that a trainer is booting or ready. Raises ``TandemError`` if no process can be
        started."""
        self._wanted = True
        if self._child is not None:
            if self._child.process.poll() is None:
                return
            await self._drop()
        child = await asyncio.to_thread(spawn.spawn_warm)
        # Meanwhile another call may have started one, or none may be wanted any more.
        if self._child is not None or not self._wanted:
            await asyncio.to_thread(child.end)
        else:
            self._child = child
            self._watch(child)

    async def wait_loaded(self, limit_s: float) -> bool:
        """Like ``foresee``, and waits until TensorFlow is loaded; False: not within ``limit_s``."""
        self.foresee()
        await self._background.wait_idle()
        if self._loaded is None:
            return False
        try:
            async with asyncio.timeout(limit_s):
                return await asyncio.shield(self._loaded)
        except TimeoutError:
            return False

    def foresee(self) -> None:
        """A run may begin soon. If none does, the child ends after ``FORESEEN_S``."""
        is_there = self._child is not None and self._child.process.poll() is None
        is_short = not is_there and psutil.virtual_memory().available < LEAST_FREE_BYTES
        if is_short or not (self._foresees and self._is_wanted()):
            return
        self._wait_for_a_run()
        if not len(self._background):
            self._background.start("make a trainer ready", self._try_to_make_ready())

    def _wait_for_a_run(self) -> None:
        self._forget()
        self._foreseen = asyncio.get_running_loop().call_later(FORESEEN_S, self._on_time)

    def _on_time(self) -> None:
        if self.is_in_a_run():
            self._wait_for_a_run()
        else:
            self._in_vain()

    def on_memory(self, free_bytes: int) -> None:
        """Drop the child if too little memory is available on this laptop now."""
        if self._foreseen is not None and free_bytes < GIVEN_UP_BYTES:
            self._in_vain()

    async def _try_to_make_ready(self) -> None:
        try:
            await self.make_ready()
        except TandemError as error:
            _log.info("no trainer could be made ready: %s", error)

    def _in_vain(self) -> None:
        self._forget()
        if not self.always or self.is_in_a_run():  # after a run it is kept again
            self._wanted = False
            self._background.start("end a trainer", self._drop())

    def _forget(self) -> None:
        if self._foreseen is not None:
            self._foreseen.cancel()
            self._foreseen = None

    def hand_over(self) -> spawn.Child | None:
        """The warm child, for ``TrainerProcess``; None where none is alive."""
        self._forget()
        self._wanted = self.always
        child = self._release()
        if child is None:
            return None
        if child.process.poll() is not None:
            child.reap()
            return None
        return child

    async def end(self) -> None:
        """The node closes: also ends a child that is being started."""
        self.always = self._wanted = self._foresees = False
        self._forget()
        await self._background.wait_idle()
        await self._drop()

    async def _drop(self) -> None:
        child = self._release()
        if child is not None:
            await asyncio.to_thread(child.end)

    def _watch(self, child: spawn.Child) -> None:
        """Wait for its first report, or its end, without reading: the report belongs to the run."""
        if sys.platform == "win32":
            return  # no loop can wait for a pipe there, so when it has loaded is unknown
        loop = asyncio.get_running_loop()
        loaded = self._loaded = loop.create_future()

        def on_report() -> None:
            loop.remove_reader(child.reports)
            loaded.set_result(child.process.poll() is None)

        loop.add_reader(child.reports, on_report)

    def _release(self) -> spawn.Child | None:
        """Give up the child, and return it."""
        child, self._child = self._child, None
        loaded, self._loaded = self._loaded, None
        if child is not None and loaded is not None and not loaded.done():
            asyncio.get_running_loop().remove_reader(child.reports)
            loaded.set_result(False)
        return child
