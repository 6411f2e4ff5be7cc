"""One process of a pair: ``python -m bench.engine.member PLACE``, with TF_CONFIG set unless it is alone.

Lines on stdin are commands: ``train N`` trains so many epochs; ``expect N`` the first epoch of a fit that has
so many, or more if the engine measures nothing before a fit as short as that; ``evaluate`` computes the loss
of the rows held out, ``save FILE`` saves the weights. Each is answered on stdout by a line, an ``Answer``.
Ends with its stdin.
"""

from __future__ import annotations

import os
import sys
import time

import msgspec

from bench.engine.heard import Heard
from bench.engine.place import Answer, Place
from core.trainer.sealed import process
from core.trainer.walls import raise_walls


def main(place: Place) -> None:
    if place.walls is not None:
        raise_walls(place.walls)
    # Before TensorFlow counts the cores for its thread pools.
    os.sched_setaffinity(0, {place.core})
    said = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    sealed = process.begin(2) if place.seal else None

    import numpy as np
    import tensorflow as tf

    from bench.engine import hand_written, with_tandem, works
    from bench.engine.with_tandem import first_epoch_only
    from core.trainer import cluster_hooks
    from core.trainer.exact.steps.calibration import LEAST_STEPS

    if sealed is not None and place.seal is not None:
        sealed.open("bench", place.rank, place.seal)
        cluster_hooks.over_relays(place.seal.inside)
    job, heard = works.load(place.work), Heard()
    if place.kind == "tandem":
        model, train = with_tandem.trainer(job, place, heard)
    else:
        several = len(place.shares) > 1
        strategy = tf.distribute.MultiWorkerMirroredStrategy() if several else tf.distribute.get_strategy()
        model, train = hand_written.trainer(strategy, job, epoch_a_call=place.kind != "guide")
    for line in sys.stdin:
        order, _, value = line.strip().partition(" ")
        steps, loss, began_s = 0, None, time.perf_counter()
        if order == "train":
            train(int(value))
            steps = int(value) * job.steps
        elif order == "expect":
            train(max(int(value), -(-LEAST_STEPS // job.steps)), [first_epoch_only()])
            steps = job.steps
        elif order == "evaluate":
            assert job.held_out is not None
            inputs, labels = job.held_out
            loss = model.evaluate(inputs, labels, batch_size=job.batch, verbose=0, return_dict=True)["loss"]
            steps = -(-len(labels) // job.batch)
        else:
            np.savez(value, *model.get_weights())
        answer = Answer(
            steps=steps,
            seconds=time.perf_counter() - began_s,
            step_s=heard.step_s,
            loss=loss,
            expectation=heard.expectation,
            shares=heard.shares,
            losses=tuple(heard.losses),
            first_at_s=heard.first_at_s,
        )
        said.write(f"{msgspec.json.encode(answer).decode()}\n")
    # TensorFlow's own shutdown would wait for the other member.
    os._exit(0)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Place))
