"""One process of a pair: ``python -m bench.engine.member KIND WORK RANK CORE WIRE``, with TF_CONFIG set.

Each line on stdin is a number of epochs to train; each on stdout says how many
steps that were and how many seconds they took. Ends with its stdin.
"""

from __future__ import annotations

import os
import sys
import time


def main(kind: str, name: str, rank: int, core: int, wire: str) -> None:
    # Before TensorFlow counts the cores for its thread pools.
    os.sched_setaffinity(0, {core})
    said = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    import tensorflow as tf

    from bench.engine import hand_written, with_tandem, work

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    job = work.load(name)
    if kind == "tandem":
        train = with_tandem.trainer(strategy, job, rank, strategy.num_replicas_in_sync, wire)
    else:
        train = hand_written.trainer(strategy, job, epoch_a_call=kind == "tuned")
    for line in sys.stdin:
        epochs = int(line)
        began_s = time.perf_counter()
        train(epochs)
        said.write(f"{epochs * job.steps} {time.perf_counter() - began_s}\n")
    # TensorFlow's own shutdown would wait for the other member.
    os._exit(0)


if __name__ == "__main__":
    kind, name, rank, core, wire = sys.argv[1:]
    main(kind, name, int(rank), int(core), wire)
