"""Stdin and stdout as bytes, off the loop. Daemon threads, so that waiting for a person never delays exit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator

CHUNK = 64 * 1024
WAITING_CHUNKS = 16


class Stdin:
    """Chunks until the end of the input, read from the first iteration on; a later iteration continues.

    Stdin is not touched before that: a background job that reads its terminal is stopped.
    """

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._chunks: asyncio.Queue[bytes] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._chunks is None:
            self._chunks = self._begin()
        while data := await self._chunks.get():
            yield data
        self._chunks.put_nowait(b"")  # for the next iteration: the input stays ended

    def _begin(self) -> asyncio.Queue[bytes]:
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[bytes] = asyncio.Queue(WAITING_CHUNKS)
        _forget_typed(self._fd)

        def read() -> None:
            # os.read, not sys.stdin: a buffered reader's lock would be held when the interpreter exits.
            while True:
                try:
                    data = os.read(self._fd, CHUNK)
                except OSError:
                    data = b""  # A missing stdin counts as ended.
                try:
                    asyncio.run_coroutine_threadsafe(chunks.put(data), loop).result()
                except (RuntimeError, asyncio.CancelledError):
                    return  # The loop has ended.
                if not data:
                    return

        threading.Thread(target=read, name="stdin", daemon=True).start()
        return chunks


def _forget_typed(fd: int) -> None:
    """Discards input typed into a terminal before anybody read from it: it answers no question."""
    if sys.platform != "win32" and os.isatty(fd):
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(fd, termios.TCIFLUSH)


class Stdout:
    """``write`` returns once the bytes are written; raises ``OSError`` if the reader has left."""

    def __init__(self, fd: int = 1) -> None:
        self._fd = fd
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def write(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(loop,), name="stdout", daemon=True)
            self._thread.start()
        done: asyncio.Future[None] = loop.create_future()
        self._lines.put((data, done))
        await done

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            data, done = self._lines.get()
            failure: OSError | None = None
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(self._fd, left) :]
            except OSError as error:
                failure = error
            try:
                loop.call_soon_threadsafe(_settle, done, failure)
            except RuntimeError:
                return  # The loop has ended.


def _settle(done: asyncio.Future[None], failure: OSError | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)
