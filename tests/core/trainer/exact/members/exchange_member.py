"""One of two processes connected by the exchange's operations: ``… exchange_member RANK PORT PORT FOLDER``.
Prints the results as one line of JSON, by name."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from core.exchange.driver import Exchange
from core.exchange.keys import Keyring
from core.exchange.state import Peer
from core.home.identity import load_or_create
from core.trainer.exact.members.exchange_ops import ExchangeCollectives
from core.vocabulary.errors import Problem
from tests.core.exchange.members import numbers

STEPS = 20


def main(rank: int, ports: tuple[int, int], folder: Path) -> None:
    of = [load_or_create(folder / f"member-{each}") for each in range(2)]
    other = 1 - rank
    keyring = Keyring(of[rank], {other: of[other].cert_der})
    listener = socket.create_server(("127.0.0.1", ports[rank]))
    exchange = Exchange(rank, [Peer(other, ("127.0.0.1", ports[other]))], keyring, "run", listener)
    exchange.start()
    told = meet(ExchangeCollectives(exchange))
    exchange.close(Problem(code="done", what="The run is over."), linger_s=5.0)
    print(json.dumps(told), flush=True)


def meet(collectives: ExchangeCollectives) -> dict[str, Any]:
    rank = collectives.rank
    own = [tf.constant(numbers(rank, size, size)) for size in (3, 40_000, 1)]

    @tf.function  # type: ignore[untyped-decorator]
    def steps(flag: Any) -> Any:
        """Several stages per step, in a loop, in a condition, and on tensors that depend on earlier
        stages."""

        def body(step: Any, total: Any, *_: Any) -> Any:
            sums = collectives.sum(own)
            rows = collectives.gather(tf.fill([rank + 1, 2], tf.cast(step, tf.float32)))
            more = tf.cond(
                flag,
                lambda: collectives.sum(tf.reduce_sum(rows) + sums[0][0]),
                lambda: collectives.sum(tf.constant(0.5)),
            )
            return step + 1, total + more, sums[1], rows

        return tf.while_loop(
            lambda step, *_: step < STEPS,
            body,
            [tf.constant(0), tf.constant(0.0), tf.zeros([40_000]), tf.zeros([3, 2])],
            shape_invariants=[
                tf.TensorShape([]),
                tf.TensorShape([]),
                tf.TensorShape([40_000]),
                tf.TensorShape([None, 2]),
            ],
            parallel_iterations=1,
        )

    _, total, sums, rows = steps(tf.constant(True))
    return {
        "loop": digest(sums.numpy()),
        "rows": rows.numpy().tolist(),
        "total": float(total),
        "other branch": float(steps(tf.constant(False))[1]),
        "eager": digest(collectives.sum(own)[1].numpy()),
        "bfloat16": collectives.sum(tf.constant([1.0, 2.5], tf.bfloat16)).numpy().astype(np.float32).tolist(),
        "words": collectives.gather_ints([rank, 7]),
        "numbers": collectives.gather_numbers([0.5 + rank]),
        "any": collectives.any([rank == 1, False]),
        "bytes": [each.decode() for each in collectives.gather_bytes(b"ab" * (rank + 1))],
        "chief": collectives.bytes_from_chief(b"from " + str(rank).encode()).decode(),
        "mismatch": mismatch(collectives),
    }


def mismatch(collectives: ExchangeCollectives) -> str:
    try:
        tf.function(collectives.sum)(tf.zeros([2 + collectives.rank]))
    except tf.errors.OpError:
        assert collectives.failure
        return collectives.failure.what
    return ""


def digest(array: Any) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


if __name__ == "__main__":
    main(int(sys.argv[1]), (int(sys.argv[2]), int(sys.argv[3])), Path(sys.argv[4]))
