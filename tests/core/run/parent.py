"""The node of the orphan test: starts a trainer, prints its pids once ready, and waits."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from core.supervisor import spawn
from core.vocabulary import trainer_messages, wire
from tests.core.run.fake_trainer import COMMAND
from tests.core.trainer.attended import Attended


async def attend(train: trainer_messages.Train, ready: type) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fields = {name: getattr(train, name) for name in train.__struct_fields__}
        trainer = Attended(Path(folder) / "log", **fields)
        await trainer.wait(lambda: trainer.of(ready))
        words = " ".join(said.words for said in trainer.of(trainer_messages.Said))
        print(trainer.process.pid, words, flush=True)
        print(await trainer.exit(), flush=True)


if __name__ == "__main__":
    order, ready = sys.argv[1:]
    spawn.command = lambda: COMMAND
    asyncio.run(attend(wire.from_json(order, trainer_messages.Train), getattr(trainer_messages, ready)))
