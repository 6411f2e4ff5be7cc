import asyncio
import os
import signal

import pytest

from app.cli.interrupts import Interrupts, unless


@pytest.mark.real
@pytest.mark.skipif(os.name != "posix", reason="Windows' loop has no signal handlers")
async def test_signals_are_waited_for_and_the_old_handling_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        for number, by_system in ((signal.SIGINT, False), (signal.SIGTERM, True)):
            os.kill(os.getpid(), number)
            await asyncio.wait_for(interrupts.wait_next(), 30)
            assert interrupts.by_system is by_system
    assert interrupts.count == 2
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.real
@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGHUP")
@pytest.mark.parametrize("handling", [signal.SIG_IGN, signal.SIG_DFL])
async def test_a_closed_terminal_counts_unless_the_program_is_to_outlive_it(
    handling: signal.Handlers,
) -> None:
    before = signal.signal(signal.SIGHUP, handling)
    try:
        with Interrupts() as interrupts:
            for number in (signal.SIGHUP, signal.SIGTERM):
                os.kill(os.getpid(), number)
            await asyncio.wait_for(interrupts.wait_next(), 30)
            await asyncio.sleep(0.1)
        assert interrupts.count == (1 if handling is signal.SIG_IGN else 2)
        assert signal.getsignal(signal.SIGHUP) is handling
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_work_is_waited_for_unless_an_interrupt_comes_first() -> None:
    async def never() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return 1

    async def soon() -> int:
        return 2

    interrupts, ended = Interrupts(), list[bool]()
    assert await interrupts.unless(soon()) == 2
    waiting = asyncio.create_task(interrupts.unless(never()))
    await asyncio.sleep(0)
    interrupts.interrupt()
    assert await waiting is None and ended == [True]


async def test_what_ends_work_and_fails_is_not_hidden() -> None:
    async def fails() -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await unless(fails(), asyncio.Event().wait())
