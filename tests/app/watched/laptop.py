"""A home with a long history, and a node whose stand-in trainer trains by a clock."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.vocabulary import trainer_messages

if TYPE_CHECKING:
    from app.connection import NodeConnection
    from core.home.home import Home
    from core.supervisor.trainers import Trainer
    from core.vocabulary.trainer_messages import Train

RUNS = 200
STEPS = 100_000
STEP_S = 0.05
STEPS_A_RUN = 80
STEPS_AN_EPOCH = 20
LONG = ("20260101-000000-9f3a01bc", "20260101-000001-9f3a01bc")


def remember_runs(home: Home) -> None:
    """``RUNS`` runs in the history; the newest two have ``STEPS`` steps and long logs."""
    from msgspec.structs import replace

    from core.history.history import History
    from core.vocabulary import wire
    from core.vocabulary.ids import DeviceId, RunId
    from core.vocabulary.laptops import LaptopUsed
    from core.vocabulary.run_folder import LOGS, METRICS, PLAN
    from tests.app import world
    from tests.core.fake_node import ME, OTHER

    history = History(home.runs)
    history.open()
    for number in range(RUNS):
        run = RunId(f"20260101-{number:06}-9f3a01bc")
        folder = home.runs / run
        entry = replace(world.entry(number % 60), run=run, started_s=1_795_000_000.0 - 3600.0 * number)
        history.put(entry)
        if number > 1:
            continue
        (folder / PLAN).write_bytes(wire.to_json(world.plan()))
        (folder / LOGS).mkdir()
        (folder / LOGS / "chief-0.log").write_text("".join(f"line {n}\n" for n in range(20_000)))
        with (folder / METRICS).open("wb") as metrics:
            for step in range(STEPS):
                loss = 2.3 / (1 + step / 2_000) + 0.1 * math.sin(step)
                for device in (ME, OTHER):
                    metrics.write(wire.to_json(world.progressed(device, world.progress(step, loss=loss))))
                    metrics.write(b"\n")
            for device in (ME, OTHER):
                for second in range(STEPS // 10):
                    used = LaptopUsed(device=device, second=second, cpu_pct=30.0, gpu_pct=80.0 + second % 7)
                    metrics.write(wire.to_json(used) + b"\n")
            for epoch in range(STEPS // 23):
                metrics.write(wire.to_json(world.epoch_ended(DeviceId(ME), epoch, 2.3 / (1 + epoch / 90))))
                metrics.write(b"\n")
    history.close()


@asynccontextmanager
async def node_of(folder: Path) -> AsyncIterator[NodeConnection]:
    """Replaces ``app.connection.connect``: our own node, with a stand-in trainer."""
    from app.connection import NodeConnection
    from core.home import home as homes
    from core.node.node import Node
    from tests.core.nodes import quick_watch

    node = await Node.start(homes.choose(folder), watch=quick_watch(), make_trainer=make_trainer)
    try:
        yield NodeConnection(node, own=True)
    finally:
        await node.stop()


def make_trainer(train: Train, **callbacks: Any) -> Trainer:
    from core.vocabulary.progress import EpochEnd, LogLines, Progress
    from tests.core.run.lan import FakeTrainer

    class ByTheClock(FakeTrainer):
        def start(self) -> None:
            super().start()
            self.training = asyncio.ensure_future(self.train_on())

        async def train_on(self) -> None:
            await asyncio.sleep(0.3)
            self.meet()
            self.say(
                trainer_messages.FitBegan(fit=0, epochs=4, steps_in_epoch=STEPS_AN_EPOCH, global_batch=64)
            )
            step = 0
            while not self.over:
                self.say(
                    trainer_messages.Progressed(
                        progress=Progress(
                            at_s=asyncio.get_running_loop().time(),
                            epoch=step // STEPS_AN_EPOCH,
                            epochs=STEPS_A_RUN // STEPS_AN_EPOCH,
                            step=step,
                            batch=step % STEPS_AN_EPOCH,
                            steps_in_epoch=STEPS_AN_EPOCH,
                            logs={"loss": 2.3 / (1 + step), "accuracy": 1 - 1 / (1 + step)},
                            samples_s=640.0,
                            steps_s=10.0,
                            step_s=0.1,
                            wait_s=0.01 if train.task == "chief:0" else 0.06,
                        )
                    )
                )
                text = "\n".join(f"step {step}, line {n}: loss 0.1234" for n in range(40))
                self.write(LogLines(task=train.task, stream="stdout", text=text))
                step += 1
                if step % STEPS_AN_EPOCH == 0:
                    logs = {"loss": 1.0, "accuracy": 0.5, "val_loss": 1.1, "val_accuracy": 0.4}
                    self.say(
                        trainer_messages.EpochEnded(
                            epoch=EpochEnd(
                                at_s=asyncio.get_running_loop().time(),
                                epoch=step // STEPS_AN_EPOCH - 1,
                                epochs=STEPS_A_RUN // STEPS_AN_EPOCH,
                                step=step - 1,
                                logs=logs,
                                seconds=1.0,
                            )
                        )
                    )
                if step == STEPS_A_RUN and "--stay" not in train.arguments:
                    break
                await asyncio.sleep(STEP_S)
            self.end()

    return ByTheClock(train, **callbacks)
