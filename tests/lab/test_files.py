"""A project transfer survives any fault on the way: received data stays, and stopping it need not wait."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.transfer.machine import WINDOW
from core.vocabulary import events as ev
from core.vocabulary.commands import SetCodePolicy, StopRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Failed
from core.vocabulary.plan import RunSpec
from tests.lab import faults
from tests.lab.agent import Agent
from tests.lab.lab import Lab, linked, pair

MB = 1_000_000
BLOCK_BYTES = 1 << 20
SIZE = 60 * MB
OVERHEAD = 1.03
"""Overhead of network and TLS frames."""
CUTS = 10
GIVEN_UP_S = 13.0
"""A silence this long ends a connection, and another one is made."""

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


@pytest.fixture
def way(namespaces: None, tmp_path: Path) -> Iterator[Lab]:
    with Lab(tmp_path, rate="100mbit") as lab:
        yield lab


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "photos.bin").write_bytes(random.Random(0).randbytes(SIZE))
    (folder / "train.py").write_text("print(open('photos.bin', 'rb').read(1))\n")
    return folder / "train.py"


def two(lab: Lab) -> tuple[Agent, Agent]:
    anna, ben = lab.agent(0), lab.agent(1)
    assert ben.state.me is not None
    pair(anna, ben, ben.state.me.addresses[0])
    ben.do(SetCodePolicy(device=anna.device, policy="always"))
    return anna, ben


def starts(anna: Agent, ben: Agent, script: Path) -> RunId:
    return anna.train(RunSpec(script=str(script), devices=(ben.device,)))


def came(agent: Agent, other: Agent, run: RunId, least: int) -> ev.MemberPhaseChanged:
    """Waits until ``agent`` shows that this many bytes are at ``other``."""

    def has(told: ev.MemberPhaseChanged) -> bool:
        return told.run == run and told.device == other.device and told.done >= least

    event = agent.hears(ev.MemberPhaseChanged, has).event
    assert isinstance(event, ev.MemberPhaseChanged)
    return event


def is_here(ben: Agent, run: RunId) -> None:
    """Waits until the whole project is at ben's."""

    def is_past(told: ev.MemberPhaseChanged) -> bool:
        return told.run == run and told.device == ben.device and told.phase in ("prepared", "starting")

    ben.hears(ev.MemberPhaseChanged, is_past)


def _told(agent: Agent) -> list[ev.MemberPhaseChanged]:
    """Its reports on its own part so far."""
    told = [each.event for each in agent.told if isinstance(each.event, ev.MemberPhaseChanged)]
    return [event for event in told if event.device == agent.device]


def reads(agent: Agent, times: int) -> None:
    """Waits for so many readings of its own, one a second."""

    def is_own(told: ev.TelemetryReported) -> bool:
        return told.device == agent.device

    since = len(agent.told)
    for _ in range(times):
        told = agent.hears(ev.TelemetryReported, is_own, since=since)
        since = agent.told.index(told, since) + 1


def stop(run: RunId, *agents: Agent) -> None:
    for _ in range(3):
        agents[0].ask(StopRun())
    for agent in agents:
        agent.ends(run)


def test_each_of_ten_breaks_repeats_at_most_one_block(way: Lab, script: Path) -> None:
    """The cable is out ten times: once until the connection is given up, nine times for 0.3 s, which TCP
    survives by sending again. ``tests/core/transfer/test_lane.py`` resets ten connections."""
    anna, ben = two(way)
    before = faults.received_bytes(way.network, 1)
    run = starts(anna, ben, script)
    moments = sorted(random.Random(1).sample(range(MB, SIZE - 8 * MB), CUTS))
    for moment in moments:
        came(ben, ben, run, moment)
        with faults.cable_out(way.network, 1):
            time.sleep(GIVEN_UP_S if moment == moments[CUTS // 2] else 0.3)
        assert _told(ben)[-1].phase == "receiving"
    is_here(ben, run)
    received = faults.received_bytes(way.network, 1) - before
    print(f"{received / MB:.1f} MB came for {SIZE / MB:.0f} MB")
    assert SIZE < received < SIZE * OVERHEAD + CUTS * BLOCK_BYTES
    stop(run, anna, ben)


def test_a_node_that_is_killed_goes_on_with_what_had_come(way: Lab, script: Path) -> None:
    anna, ben = two(way)
    run = starts(anna, ben, script)
    had = came(ben, ben, run, SIZE // 2).done
    ben.kill()
    ben.waits_until_gone()
    anna.ends(run)
    ben.end()
    ben = way.agent(1)
    linked(anna, ben)
    before = faults.received_bytes(way.network, 1)
    run = starts(anna, ben, script)
    is_here(ben, run)
    received = faults.received_bytes(way.network, 1) - before
    assert received < (SIZE - had) * OVERHEAD + BLOCK_BYTES
    stop(run, anna, ben)


def test_a_disk_that_fills_up_midway_is_reported_and_nothing_is_half_there(way: Lab, script: Path) -> None:
    disk, size_mb = way.home(1).projects, 4 * SIZE // MB
    disk.mkdir(parents=True)
    way.network.do(1, "mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(disk))
    anna, ben = two(way)
    run = starts(anna, ben, script)
    came(ben, ben, run, SIZE // 4)
    # Room for the project at its start, and none from now on.
    way.network.do(1, "sh", "-c", f"head -c {size_mb}M /dev/zero > {disk}/other 2> /dev/null || true")
    assert way.network.do(1, "df", "--output=avail", str(disk)).split()[-1] == "0"
    for agent in (anna, ben):
        phase = agent.ends(run)
        assert isinstance(phase, Failed)
        assert phase.problem.code == "disk-full"
    kept = way.network.do(1, "find", str(disk), "-mindepth", "1", "-maxdepth", "1").split()
    assert {Path(path).name for path in kept} == {"incoming", "other"}
    # Received data is kept, and the transfer continues once there is room.
    way.network.do(1, "rm", f"{disk}/other")
    again = starts(anna, ben, script)
    assert came(ben, ben, again, 1).done >= SIZE // 4
    is_here(ben, again)
    stop(again, anna, ben)


@pytest.mark.parametrize("sender_stops", [False, True])
def test_who_stops_while_files_come_need_not_wait_for_them_and_the_next_run_goes_on(
    namespaces: None, tmp_path: Path, script: Path, sender_stops: bool
) -> None:
    with Lab(tmp_path, rate="20mbit") as slow:
        anna, ben = two(slow)
        at_first = faults.received_bytes(slow.network, 1)
        run = starts(anna, ben, script)
        told = came(anna, ben, run, MB)
        assert told.total >= SIZE
        stop(run, *((anna, ben) if sender_stops else (ben, anna)))
        had = max(told.done for told in _told(ben))
        assert had < SIZE / 2, "twelve seconds' worth was still to come"
        reads(ben, 6)  # what had been requested comes in four
        before = faults.received_bytes(slow.network, 1)
        assert before - at_first < had * OVERHEAD + (WINDOW + 1) * BLOCK_BYTES
        reads(ben, 3)
        assert faults.received_bytes(slow.network, 1) - before < BLOCK_BYTES / 10, "7 MB fit through"
        again = starts(anna, ben, script)
        assert came(ben, ben, again, 1).done >= had
        stop(again, anna, ben)
