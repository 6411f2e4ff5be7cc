"""Replaces the trainer's program: no TensorFlow, and the order's ``script`` is Python code to run."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from core.supervisor import parent_death
from core.supervisor.spawn import LOADED, WARM_ARGUMENT
from core.trainer.orders import Orders, claim
from core.vocabulary import trainer_messages
from core.vocabulary.wire import to_json

COMMAND = [sys.executable, "-m", "tests.core.run.fake_trainer"]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("orders", "reports", "leash"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument(WARM_ARGUMENT, action="store_true")
    fds = parser.parse_args()
    parent_death.arm(claim(fds.leash))
    reports = claim(fds.reports)

    def say(report: trainer_messages.Report) -> None:
        os.write(reports, to_json(report) + b"\n")

    orders = Orders(claim(fds.orders))
    if fds.warm:
        os.write(reports, LOADED)
        if orders.wait_begin() is None:
            return
    say(trainer_messages.Booted(seconds=0.1, devices=()))
    train = orders.wait_train()
    if train is not None:
        names: dict[str, Any] = {"say": say, "orders": orders, "train": train, "reports": reports}
        exec(train.script, {**vars(trainer_messages), **names})


if __name__ == "__main__":
    main()
