"""Takes a reading once a second on its own thread: a driver that hangs never blocks the core loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from functools import partial

from core.telemetry import hardware
from core.telemetry.gpus import Gpus
from core.telemetry.sampler import Sampler
from core.vocabulary.readings import Hardware, Reading

PERIOD_S = 1.0
FIRST_LIMIT_S = 3.0
"""A driver that wakes a sleeping GPU takes a second or two to name it."""
STOP_LIMIT_S = 2.0
_log = logging.getLogger(__name__)


class Watch:
    """Calls ``on_reading`` on the loop's thread between ``begin`` and ``stop``; ``on_failure`` once."""

    def __init__(
        self,
        *,
        find_gpus: Callable[[], Gpus] = Gpus.find,
        make_sampler: Callable[[Gpus], Sampler] = Sampler,
        period_s: float = PERIOD_S,
        first_limit_s: float = FIRST_LIMIT_S,
        stop_limit_s: float = STOP_LIMIT_S,
    ) -> None:
        self._find_gpus = find_gpus
        self._make_sampler = make_sampler
        self._period_s = period_s
        self._first_limit_s, self._stop_limit_s = first_limit_s, stop_limit_s
        self._ending = threading.Event()
        self._begun = threading.Event()
        self._ended = asyncio.Event()
        self._on_reading: Callable[[Reading], None] | None = None
        self._on_failure: Callable[[Exception], None] | None = None
        self._failure: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> Hardware:
        """This laptop's hardware; without its GPUs if their driver fails or does not answer in time."""
        self._loop = asyncio.get_running_loop()
        found: asyncio.Future[Hardware] = self._loop.create_future()
        within = contextvars.copy_context()
        threading.Thread(target=within.run, args=(self._run, found), name="telemetry", daemon=True).start()
        try:
            async with asyncio.timeout(self._first_limit_s):
                return await found
        except TimeoutError:
            _log.warning("the GPU drivers did not answer within %g s", self._first_limit_s)
        except Exception as error:
            self._failure = error
        return await asyncio.to_thread(hardware.read, ())

    def begin(
        self, on_reading: Callable[[Reading], None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Begin to call ``on_reading``, first one period from now."""
        self._on_reading = on_reading
        self._on_failure = on_failure
        self._begun.set()
        if self._failure is not None and on_failure is not None:
            on_failure(self._failure)

    async def stop(self) -> None:
        """Stop after a reading under way. The thread of a driver that hangs is left to end with the
        process."""
        self._on_reading = self._on_failure = None
        self._ending.set()
        self._begun.set()
        if self._loop is None:
            return
        try:
            async with asyncio.timeout(self._stop_limit_s):
                await self._ended.wait()
        except TimeoutError:
            _log.warning("a driver did not answer within %g s; its thread is left behind", self._stop_limit_s)

    def _run(self, found: asyncio.Future[Hardware]) -> None:
        try:
            gpus = self._find_gpus()
            try:
                has = hardware.read(gpus.names)
                self._on_loop(partial(self._find, found, has))
                self._begun.wait()
                self._sample(self._make_sampler(gpus))
            finally:
                gpus.close()
        except Exception as error:
            _log.exception("telemetry ended")
            self._on_loop(partial(self._fail, found, error))
        finally:
            self._on_loop(self._ended.set)

    def _sample(self, sampler: Sampler) -> None:
        failed = False
        while not self._ending.wait(self._period_s):
            try:
                self._on_loop(partial(self._read, sampler.sample()))
            except Exception as error:
                # The next second may be better; report it once, not once a second.
                if not failed:
                    _log.exception("no reading")
                    self._on_loop(partial(self._fail, None, error))
                failed = True

    def _find(self, found: asyncio.Future[Hardware], has: Hardware) -> None:
        if not found.done():
            found.set_result(has)

    def _read(self, reading: Reading) -> None:
        if self._on_reading is not None:
            self._on_reading(reading)

    def _fail(self, found: asyncio.Future[Hardware] | None, error: Exception) -> None:
        if found is not None and not found.done():
            found.set_exception(error)
        elif self._on_failure is not None:
            self._on_failure(error)

    def _on_loop(self, call: Callable[[], object]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            self._ending.set()  # the loop is closed: nobody listens any more
