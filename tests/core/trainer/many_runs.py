"""One member of many runs, one after the other: ``… many_runs FOLDER``, with orders (``Train``) on stdin.

Loading TensorFlow takes longer than a short run, so it is loaded once, and each run's trainer is a fork of
this process that ends like a trainer. Writes ``N.exit`` for the run of order N, in JSON.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import tensorflow  # noqa: F401 (in the copies it is there already)

from core.trainer.orders import Orders
from core.trainer.reporter import Reporter
from core.trainer.session import TrainerSession
from core.vocabulary.trainer_messages import Train
from tests.core.trainer.crew import HARM


def train(order: Train, left: Path) -> None:
    harm = Path(order.folder) / HARM
    if harm.exists():
        exec(harm.read_text(), {})
    read, _ = os.pipe()
    reports = os.open(left.with_suffix(".reports"), os.O_CREAT | os.O_WRONLY)
    ended = TrainerSession(order, Reporter(reports), Orders(read)).run()
    left.with_suffix(".part").write_bytes(msgspec.json.encode(ended))
    left.with_suffix(".part").rename(left)


def main(folder: Path) -> None:
    for number, line in enumerate(sys.stdin):
        pid = os.fork()
        if pid == 0:
            try:
                train(msgspec.json.decode(line, type=Train), folder / f"{number}.exit")
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
