"""Custom loops in a MirroredStrategy whose replicas are two members: as on two devices of one machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.trainer.attended import cluster, keys_for, members
from tests.core.trainer.mirrored.together import FOLDER, LONG_S, told, told_in, train_together

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
WAYS = (
    *("dataset", "shuffled", "remainder", "one-left", "repeated", "off", "function", "alike", "values"),
    *("in-graph", "eager"),
)


def ends(told: list[str]) -> dict[str, Any]:
    """The loop's final values for each way of distributing data."""
    pairs = [line.split(" ", 1) for line in told]
    return {way: json.loads(rest) for way, rest in pairs}


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """The loops' final values on two devices of one machine."""
    alone = [sys.executable, str(FOLDER / "loops.py"), "--two-devices", *WAYS, "doubled"]
    machine = subprocess.run(alone, stdout=subprocess.PIPE, text=True, check=True, timeout=LONG_S)
    lines = machine.stdout.splitlines()
    assert "replicas 2" in lines
    return ends(told_in(lines))


def same(way: str, own: dict[str, Any], other: dict[str, Any]) -> None:
    apart = [
        np.abs(np.subtract(one, two)).max() for one, two in zip(own["weights"], other["weights"], strict=True)
    ]
    assert max(apart) <= 2e-6, way
    assert own["losses"] == pytest.approx(other["losses"], rel=1e-5), way
    assert (own["rows"], own["steps"]) == (other["rows"], other["steps"]), way
    assert own["seen"] == pytest.approx(other["seen"], rel=1e-5), way


async def test_each_way_of_distributing_data_gives_the_weights_of_two_devices_of_one_machine(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    together = await train_together(tmp_path, script="loops.py", arguments=WAYS)
    assert [exit.reason for exit in together.exits] == ["finished", "finished"], together.exits
    assert all(exit.shared for exit in together.exits)
    chief, worker = (ends(told(trainer)) for trainer in together.trainers)
    assert together.strategies() == {("MirroredStrategy", 2)}
    assert "replicas 2" in together.trainers[0].text()
    assert "MirroredStrategy has 2 replicas, one a member" in together.said()
    for way in WAYS:
        assert chief[way] == worker[way], f"{way}: members with the same bits"
        same(way, chief[way], expected[way])


async def test_loops_of_several_workers_give_the_weights_of_two_devices_too(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    """In a MultiWorkerMirroredStrategy, of which each member considers itself a worker."""
    ways = ("dataset", "shuffled", "one-left", "function", "values", "in-graph")
    unsharded = ("off", "alike")
    arguments = ("--workers", *ways, *unsharded)
    together = await train_together(tmp_path, script="loops.py", arguments=arguments)
    assert [exit.reason for exit in together.exits] == ["finished", "finished"], together.exits
    assert all(exit.shared for exit in together.exits)
    assert together.strategies() == {("MirroredStrategy", 2)}
    assert "MultiWorkerMirroredStrategy has 2 replicas, one a member" in together.said()
    first, second = together.addresses
    spec = json.dumps({"chief": [first], "worker": [second]})
    assert [told(trainer, "task") for trainer in together.trainers] == [
        [f"chief 0 {spec}"],
        [f"worker 0 {spec}"],
    ]
    chief, worker = (ends(told(trainer)) for trainer in together.trainers)
    for way in (*ways, *unsharded):
        assert chief[way] == worker[way], f"{way}: members with the same bits"
        # Data that no worker shards goes to both, as TensorFlow does it.
        same(way, chief[way], expected["doubled" if way in unsharded else way])


async def test_fit_of_the_loops_own_model_is_refused_by_name_and_stop_ends_both(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"strategy": "own", "keys": keys_for(2), "folder": str(FOLDER)}
    trainers = list(members(tmp_path, cluster(chief=1, worker=1), script="endless.py", **asked).values())
    await trainers[0].wait(lambda: len(told(trainers[0], "loss")) > 4, LONG_S)
    for trainer in trainers:
        trainer.stop()
    exits = await asyncio.gather(*(trainer.exit(LONG_S) for trainer in trainers))
    assert [exit.reason for exit in exits] == ["stopped", "stopped"], exits
    for trainer in trainers:
        assert told(trainer, "refused") == ["fit-beside-loop"]
    assert told(trainers[0], "alone") == told(trainers[1], "alone") != []
    both = list(zip(*(told(trainer, "loss") for trainer in trainers), strict=False))
    assert len(both) > 1 and all(one == other for one, other in both)
