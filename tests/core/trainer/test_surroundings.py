"""What a script finds around it is the same on all members, or it is told."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.trainer import surroundings
from core.vocabulary.errors import TandemError
from tests.core.trainer.attended import Attended, cluster, keys_for


@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shares", [(48, 16), pytest.param((40, 16, 8), marks=pytest.mark.complete)], ids=str)
async def test_members_find_the_same_order_of_strings_and_folders_time_and_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: tuple[int, ...]
) -> None:
    """Each laptop's disk has another order, and its user another time zone and language."""
    names, found = [f"file{number}" for number in range(40)], []
    trainers = []
    keys, tasks = keys_for(len(shares)), cluster(chief=1, worker=len(shares) - 1)
    for rank, (task, config) in enumerate(tasks.items()):
        folder = tmp_path / task
        folder.mkdir()
        for name in names if rank else reversed(names):
            (folder / name).touch()
        found.append([path.name for path in folder.iterdir()])
        monkeypatch.setenv("PYTHONHASHSEED", str(rank + 1))
        monkeypatch.setenv("TZ", ("Europe/Berlin", "Asia/Tokyo", "America/Lima")[rank])
        monkeypatch.setenv("LC_ALL", ("C.UTF-8", "POSIX", "POSIX")[rank])
        order: dict[str, Any] = {
            "tf_config": config,
            "rank": rank,
            "shares": shares,
            "exchange": keys[rank],
        }
        script = "looks_around.py"
        monkeypatch.setenv("LOOKED_AT", str(folder))
        trainer = Attended(tmp_path / f"{rank}.log", task=task, script=script, **order)
        await trainer.wait(partial(len, trainer.reports))  # it has the environment that was made for it
        trainers.append(trainer)
    assert all(listed != sorted(names) for listed in found), "the disk sorts by itself: nothing is shown"
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers))
    assert [exit.reason for exit in exits] == ["finished"] * len(shares), exits
    (digest,) = {exit.weights_sha256 for exit in exits}
    chief, *workers = (
        trainer.text().replace("\n", "").replace(str(tmp_path / task), "")
        for trainer, task in zip(trainers, tasks, strict=True)
    )
    assert digest and all(worker == chief for worker in workers)
    assert f"listdir {sorted(names)}" in chief and f"scandir {sorted(names)}" in chief
    assert "time 11:00" in chief and "language C.UTF-8" in chief


class Others:
    """In place of the collectives: this process is the worker, and the chief is as it is told."""

    rank = 1

    def __init__(self, **chief: Any) -> None:
        self.chief = chief

    def gather_bytes(self, data: bytes, what: str = "") -> list[bytes]:
        return [json.dumps({**json.loads(data), **self.chief}).encode(), data]


@pytest.mark.real
def test_what_cannot_be_made_alike_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    said: list[str] = []
    surroundings.agree(Others(zone="", offsets=[1, 2, 3, 4], encoding="cp1252"), said.append)
    assert len(said) == 2
    assert "Local times differ" in said[0] and "same time zone" in said[0]
    assert "cp1252 on the chief" in said[1] and "encoding='utf-8'" in said[1]


@pytest.mark.real
def test_another_order_of_strings_in_sets_is_refused() -> None:
    with pytest.raises(TandemError) as refused:
        surroundings.agree(Others(order=1, python="3.10.1"), print)
    assert refused.value.code == "order-differs" and "there 3.10.1" in refused.value.what
