"""One real measurement, so that the measuring code stays working."""

import os
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
