"""One process of a pair that only exchanges: ``python -m bench.meeting.member PLACE``, with TF_CONFIG set.

``PLACE.kind``: ``tls`` is the exchange, ``ops`` the exchange within TensorFlow, ``tcp`` plain sockets on
which both send at once, ``ring`` TensorFlow's collectives with one array per packet, ``mwms`` with their
defaults, as in a hand-written loop under MultiWorkerMirroredStrategy. ``PLACE.work``: floats and packs, such
as ``5000000/4``. Lines ``train N`` on stdin request so many steps, each a sum of all packs. Answers like
``bench.engine.member``.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from bench.engine.place import Answer, Place
from core.exchange import keys
from core.exchange.driver import Exchange
from core.exchange.state import Key, Peer
from core.home.identity import load_or_create

Array = npt.NDArray[np.float32]
Step = Callable[[], Sequence[Any]]
"""Sums all packs once."""
SWITCH_S = 2e-4
"""As in a trainer: threads that encrypt must not wait long for the interpreter."""


def main(place: Place) -> None:
    # Before TensorFlow counts the cores for its thread pools.
    os.sched_setaffinity(0, {place.core})
    sys.setswitchinterval(SWITCH_S)
    said = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    floats, packs = map(int, place.work.split("/"))
    random = np.random.default_rng(place.rank)
    own = np.array_split(random.standard_normal(floats).astype(np.float32), packs)
    addresses = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
    make = {"tls": exchange, "ops": operations, "tcp": sockets, "ring": ring, "mwms": mirrored}[place.kind]
    step = make(place, [_split(each) for each in addresses], own)
    for line in sys.stdin:
        steps = int(line.split()[1])
        step()  # both begin together
        began_s = time.perf_counter()
        for _ in range(steps):
            step()
        answer = Answer(steps=steps, seconds=time.perf_counter() - began_s)
        said.write(f"{msgspec.json.encode(answer).decode()}\n")
    # TensorFlow's own shutdown would wait for the other member.
    os._exit(0)


def started(place: Place, addresses: list[tuple[str, int]]) -> Exchange:
    folder, other = Path(place.keys), 1 - place.rank
    pin = load_or_create(folder / str(other)).cert_der
    ring = keys.Keyring(load_or_create(folder / str(place.rank)), {other: pin})
    listener = socket.create_server(addresses[place.rank])
    meeting = Exchange(place.rank, [Peer(other, addresses[other])], ring, "bench", listener)
    meeting.start()
    return meeting


def exchange(place: Place, addresses: list[tuple[str, int]], own: list[Array]) -> Step:
    meeting, steps = started(place, addresses), 0

    def step() -> Sequence[Any]:
        nonlocal steps
        packs = [Key(0, 0, steps, number) for number in range(len(own))]
        steps += 1
        for key, array in zip(packs, own, strict=True):
            meeting.hand_over(key, array)
        return meeting.wait(packs)

    return step


def operations(place: Place, addresses: list[tuple[str, int]], own: list[Array]) -> Step:
    import tensorflow as tf

    from core.trainer.exact.members.exchange_ops import ExchangeCollectives

    collectives = ExchangeCollectives(started(place, addresses))
    variables = [tf.Variable(array) for array in own]
    summed = tf.function(lambda: collectives.sum([variable.read_value() for variable in variables]))
    return lambda: [total.numpy() for total in summed()]


def sockets(place: Place, addresses: list[tuple[str, int]], own: list[Array]) -> Step:
    if place.rank == 0:
        with socket.create_server(addresses[0]) as listener:
            joined = listener.accept()[0]
    else:
        joined = _dialled(addresses[0])
    joined.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    begin, done = threading.Semaphore(0), threading.Semaphore(0)

    def send() -> None:
        while True:
            begin.acquire()
            for array in own:
                joined.sendall(array.data.cast("B"))
            done.release()

    threading.Thread(target=send, daemon=True).start()

    def step() -> Sequence[Any]:
        begin.release()
        sums = []
        for array in own:
            theirs = np.empty_like(array)
            view = theirs.data.cast("B")
            while view:
                view = view[joined.recv_into(view) :]
            first, second = (array, theirs) if place.rank == 0 else (theirs, array)
            sums.append(np.add(first, second, out=theirs))
        done.acquire()
        return sums

    return step


def ring(place: Place, addresses: list[tuple[str, int]], own: list[Array]) -> Step:
    import tensorflow as tf

    chosen = tf.distribute.experimental
    around = chosen.CommunicationOptions(implementation=chosen.CommunicationImplementation.RING)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=around)
    return _reduced(strategy, own, chosen.CommunicationOptions(bytes_per_pack=1))


def mirrored(place: Place, addresses: list[tuple[str, int]], own: list[Array]) -> Step:
    import tensorflow as tf

    return _reduced(tf.distribute.MultiWorkerMirroredStrategy(), own, None)


def _reduced(strategy: Any, own: list[Array], options: Any) -> Step:
    import tensorflow as tf

    variables = [tf.Variable(array) for array in own]

    @tf.function  # type: ignore[untyped-decorator]
    def summed() -> Any:
        def in_replica() -> Any:
            context = tf.distribute.get_replica_context()
            values = [variable.read_value() for variable in variables]
            return context.all_reduce(tf.distribute.ReduceOp.SUM, values, options)

        return strategy.run(in_replica)

    return lambda: [total.numpy() for total in summed()]


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _dialled(address: tuple[str, int]) -> socket.socket:
    until_s = time.monotonic() + 60.0
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Place))
