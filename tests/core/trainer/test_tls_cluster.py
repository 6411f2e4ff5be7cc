"""Real trainers that connect over TLS: one never comes, has other keys, leaves, or is behind a router."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from core.vocabulary import trainer_messages
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Exit
from tests.core.trainer.attended import GENEROUS, LONG_S, Attended, cluster, free_ports, keys_for, members

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

BOTH_S = GENEROUS.boot_s + 2 * LONG_S
"""The trainers' own limits on loading and meeting: two minutes on a busy machine."""


async def exits_of(trainers: list[Attended]) -> list[Exit]:
    return list(await asyncio.gather(*(trainer.exit(BOTH_S) for trainer in trainers)))


async def test_the_remaining_member_says_why_the_other_left(tmp_path: Path) -> None:
    failing: dict[str, Any] = {
        "script": "fits.py",
        "arguments": ("--fail-in-epoch", "1", "--fail-task", "worker"),
    }
    configs = cluster(chief=1, worker=1)
    named = {"keys": keys_for(2), "names": ("anna", "ben"), **failing}
    chief, worker = await exits_of(list(members(tmp_path, configs, **named).values()))
    assert worker.reason == "script-error" and worker.problem is not None
    assert chief.reason == "lost-peer" and chief.problem is not None
    assert chief.problem.what == f"ben has left: {worker.problem.what}"
    assert "the data ran out" in chief.problem.what


async def test_keys_of_another_run_meet_nobody(tmp_path: Path) -> None:
    keys = [keys_for(2)[0], keys_for(2)[1]]
    configs = cluster(chief=1, worker=1)
    named: dict[str, Any] = {"keys": keys, "names": ("anna", "ben"), "script": "fits.py"}
    trainers = members(tmp_path, configs, meet_timeout_s=15.0, **named)
    for exit, other in zip(await exits_of(list(trainers.values())), ("ben", "anna"), strict=True):
        assert exit.reason == "never-met" and exit.problem is not None
        what = exit.problem.what
        assert what.startswith(f"The trainers did not meet within 15 s: {other} (at 127.0.0.1:")
        assert "has a certificate that is not of this run, or refused ours" in what
    assert not any(trainer.of(trainer_messages.Met) for trainer in trainers.values())


async def test_a_member_that_never_comes_is_named_with_its_address_and_the_number_of_calls(
    tmp_path: Path,
) -> None:
    configs = cluster(chief=1, worker=1)
    at = json.loads(configs["chief:0"])["cluster"]["worker"][0]
    named: dict[str, Any] = {"exchange": keys_for(2)[0], "names": ("anna", "ben"), "shares": (1, 1)}
    config = configs["chief:0"]
    chief = Attended(tmp_path / "log", script="fits.py", tf_config=config, meet_timeout_s=6.0, **named)
    exit = await chief.exit()
    assert exit.reason == "never-met" and exit.problem is not None
    said = exit.problem.what
    assert said.startswith(f"The trainers did not meet within 6 s: ben (at {at}, called ")
    assert said.endswith(" s) is there, but nothing listens on that port.")
    assert int(said.partition("called ")[2].partition(" times")[0]) > 3
    assert "its trainer did not start" in exit.problem.fix


def wait_until_it_meets(member: Any) -> None:
    until_s = time.monotonic() + 60.0
    while not member._exchange.waiting():
        assert time.monotonic() < until_s
        time.sleep(0.01)


async def test_a_member_reached_through_a_router_listens_on_every_address() -> None:
    from core.trainer.tls_cluster import TlsCluster

    took_turns_s = sys.getswitchinterval()
    (port,) = free_ports(1)
    not_here = {"chief": [f"192.0.2.1:{port}"], "worker": ["192.0.2.2:20000"]}
    config = json.dumps({"cluster": not_here, "task": {"type": "chief", "index": 0}})
    train = trainer_messages.Train(run="r", task="chief:0", folder="", script="", tf_config=config)
    member = TlsCluster(train, keys_for(2)[0])
    meeting = asyncio.create_task(asyncio.to_thread(member.meet))
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 60.0)
        writer.close()
        await asyncio.to_thread(wait_until_it_meets, member)  # it listened before
        with pytest.raises(OSError, match="in use"):
            TlsCluster(train, keys_for(2)[0])
    finally:
        await asyncio.to_thread(member.leave, Problem(code="enough", what="Enough was seen."))
        sys.setswitchinterval(took_turns_s)
    with pytest.raises(Exception, match="Enough was seen"):
        await meeting
    assert member.failure is not None and "Enough was seen" in member.failure.what
