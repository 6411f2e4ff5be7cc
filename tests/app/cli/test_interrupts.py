import asyncio
import os
import signal

import pytest

from app.cli.interrupts import Interrupts


@pytest.mark.real
@pytest.mark.skipif(os.name != "posix", reason="Windows' loop has no signal handlers")
async def test_signals_are_waited_for_and_the_old_handling_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
            await asyncio.wait_for(interrupts.wait_next(), 30)
    assert interrupts.count == 2
    assert signal.getsignal(signal.SIGTERM) == before
