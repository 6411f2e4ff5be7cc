"""Trainers of two members with one script that has its own strategy, and their output."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

from core.vocabulary import trainer_messages
from core.vocabulary.phases import Exit
from tests.core.trainer.attended import SCRIPTS, Attended, cluster, keys_for, members

FOLDER = SCRIPTS / "mirrored"
LONG_S = 600.0
PLACE = """
import json, psutil
sockets = psutil.Process().net_connections("all")
listens = [list(each.laddr) for each in sockets if each.status == psutil.CONN_LISTEN]
print("listens", json.dumps(listens), flush=True)
"""
"""Appended to a script: prints where its process listens."""


class Together(NamedTuple):
    """Results by rank."""

    trainers: list[Attended]
    exits: list[Exit]
    addresses: list[str]

    def said(self) -> str:
        return " ".join(report.words for report in self.trainers[0].of(trainer_messages.Said))

    def strategies(self) -> set[tuple[str, int]]:
        """Names and replicas, as reported by the trainers."""
        met = [report for trainer in self.trainers for report in trainer.of(trainer_messages.Met)]
        return {(report.strategy, report.replicas) for report in met}

    def listens_to_members_alone(self) -> bool:
        """For a script with ``PLACE``: each process listens at its exchange address, and nowhere else."""
        found = [json.loads(line) for trainer in self.trainers for line in told(trainer, "listens")]
        return [[f"{host}:{port}" for host, port in each] for each in found] == [
            [address] for address in self.addresses
        ]


async def train_together(logs: Path, **train: Any) -> Together:
    """By the exchange, in the script's own strategy unless another is given."""
    configs = cluster(chief=1, worker=1)
    asked = {"strategy": "own", "keys": keys_for(2), "folder": str(FOLDER), **train}
    trainers = list(members(logs, configs, **asked).values())
    spec = json.loads(configs["chief:0"])["cluster"]
    exits = list(await asyncio.gather(*(trainer.exit(LONG_S) for trainer in trainers)))
    return Together(trainers, exits, [*spec["chief"], *spec["worker"]])


def told(trainer: Attended, word: str = "told") -> list[str]:
    """The rest of each output line that begins with ``word``."""
    return told_in(trainer.text().splitlines(), word)


def told_in(lines: list[str], word: str = "told") -> list[str]:
    return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]
