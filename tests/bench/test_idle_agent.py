"""One real measurement, so that the measuring code stays working."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench import idle_agent, processes


@pytest.mark.real
def test_an_agent_gets_ready_and_the_time_is_taken(tmp_path: Path) -> None:
    wall_s, cpu_s = idle_agent.time_to_ready(tmp_path)
    assert cpu_s > 0
    assert wall_s > 0


@pytest.mark.real
async def test_what_a_process_costs_is_seen_from_outside() -> None:
    own = os.getpid()
    resident, proportional = processes.memory_mb(own)
    assert 1 < proportional <= resident
    assert processes.cpu_s(own) > 0
    assert processes.has_loaded(own, "libpython") or processes.has_loaded(own, "python")
    assert not processes.has_loaded(own, "no such library")


@pytest.mark.real
@pytest.mark.parametrize("gets_on", [False, True])
def test_a_process_that_only_does_not_get_on_is_not_at_rest(gets_on: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            if not gets_on:
                busy.send_signal(signal.SIGSTOP)
            with pytest.raises(TimeoutError):
                asyncio.run(processes.wait_at_rest(busy.pid, limit_s=1.5, quiet_s=0.5))
        finally:
            busy.kill()


@pytest.mark.real
def test_a_process_that_waits_is_at_rest() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as waiting:
        asyncio.run(processes.wait_at_rest(waiting.pid, limit_s=60.0, quiet_s=0.5))
        waiting.kill()
