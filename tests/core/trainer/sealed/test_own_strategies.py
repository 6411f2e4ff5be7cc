"""Scripts that need TensorFlow's own runtime, in real sealed trainers on one machine."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.vocabulary import trainer_messages
from core.vocabulary.trainer_messages import Seal
from tests.core.trainer.attended import Attended, free_ports, keys_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
EXAMPLES = Path(__file__).parents[4] / "resources/examples/strategies"


def sealed(tmp_path: Path, roles: tuple[str, ...], **train: Any) -> dict[str, Attended]:
    """A trainer for each of ``roles``, in rank order."""
    places = [f"127.0.0.1:{port}" for port in free_ports(len(roles))]
    inside = [f"127.77.0.{rank + 1}:{port.partition(':')[2]}" for rank, port in enumerate(places)]
    spec: dict[str, list[str]] = {}
    for role, place in zip(roles, inside, strict=True):
        spec.setdefault(role, []).append(place)
    found = {}
    for rank, (role, keys) in enumerate(zip(roles, keys_for(len(roles)), strict=True)):
        task = {"type": role, "index": spec[role].index(inside[rank])}
        name = f"{role}:{task['index']}"
        found[name] = Attended(
            tmp_path / f"{role}-{rank}.log",
            task=name,
            strategy="own",
            tf_config=json.dumps({"cluster": spec, "task": task}),
            rank=rank,
            shares=(1,) * len(roles),
            seal=Seal(keys=keys, outside=tuple(places), inside=tuple(inside)),
            **train,
        )
    return found


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(shutil.copytree(EXAMPLES, tmp_path / "project"))


async def test_a_multi_worker_loop_meets_trains_and_ends_through_relays(tmp_path: Path, folder: str) -> None:
    trainers = sealed(
        tmp_path,
        ("chief", "worker"),
        folder=folder,
        script="multi_worker_loop.py",
        arguments=("--epochs", "2"),
    )
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers.values()))
    assert [exit.reason for exit in exits] == ["finished", "finished"], (
        exits,
        trainers["chief:0"].text("stderr"),
    )
    assert all(exit.shared for exit in exits)
    for trainer in trainers.values():
        assert trainer.of(trainer_messages.Met) == [
            trainer_messages.Met(strategy="MultiWorkerMirroredStrategy", replicas=2)
        ]
        assert "epoch 2/2: loss" in trainer.text()
        assert "in a network of its own" in " ".join(said.words for said in trainer.of(trainer_messages.Said))
    assert trainers["chief:0"].text() == trainers["worker:0"].text()
