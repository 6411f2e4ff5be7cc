"""A managed trainer's place among members that meet over TLS: TensorFlow starts no server and opens no port.

A member listens where TF_CONFIG says, and calls the others there. The order provides the keys (see
``core.exchange.keys``). The strategy is a MirroredStrategy whose replicas are the members (see
``exact.members.exchange_ops``).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.exchange.driver import Exchange
from core.exchange.keys import Keyring, RunPair
from core.exchange.problems import DONE, MISMATCH, ExchangeFailed, never_met
from core.exchange.state import Peer
from core.net.address import Address, parse
from core.supervisor.ports import listen_at
from core.trainer.exact.members.exchange_ops import ExchangeCollectives
from core.trainer.reporter import Reporter
from core.trainer.standstill import StandstillWatch
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.trainer_messages import ExchangeKeys, MeetWithout, Train

LINGER_S = 10.0
"""Least time that a finished member stays while others still need what it sent last."""
SWITCH_S = 2e-4
"""Interval at which Python's threads switch (default: 5 ms): a script's threads delay the exchange's. Sums
beside a thread that never yields were measured to be 1.6 times as fast."""
_DONE = Problem(code=DONE, what="The script has ended there.")


class TlsCluster:
    """One run's cluster: create, ``meet``, ``close``, ``leave``. Raises ``TandemError`` for keys that do not
    fit, ``OSError`` for a taken port."""

    def __init__(self, train: Train, keys: ExchangeKeys) -> None:
        rank, addresses = train.rank, _addresses(train.tf_config)
        pins = {other: der for other, der in enumerate(keys.certificates) if other != rank}
        keyring = Keyring(RunPair(keys.certificates[rank], keys.private_key), pins)
        names = train.names or tuple(f"member {each}" for each in range(len(addresses)))
        peers = [
            Peer(other, (at.host, at.port), names[other])
            for other, at in enumerate(addresses)
            if other != rank
        ]
        sys.setswitchinterval(SWITCH_S)
        self._exchange = Exchange(
            rank,
            peers,
            keyring,
            train.run,
            listen_at(addresses[rank]),
            name=names[rank],
            generation=keys.generation,
        )
        self._meet_timeout_s = train.meet_timeout_s
        self.collectives = ExchangeCollectives(self._exchange, keys.generation)
        self.collectives.names = names
        self._linger_s = max(LINGER_S, train.linger_s)
        self._folder = Path(train.folder)
        self._watch: StandstillWatch | None = None

    @property
    def strategy(self) -> Any:
        return self.collectives.strategy

    @property
    def members(self) -> int:
        return self.collectives.members

    @property
    def failure(self) -> TandemError | None:
        """Why a meeting failed: TensorFlow replaces the error with its own."""
        return self.collectives.failure

    def report_to(self, reporter: Reporter) -> None:
        """Starts reporting what this thread, the script's, does while a meeting takes long."""
        self._watch = StandstillWatch(self._exchange, reporter, self._folder)

    def meet(self) -> None:
        """Waits until every member has answered. Raises ``ExchangeFailed``, naming those that have not."""
        began_s = time.monotonic()
        self._exchange.start()
        try:
            self.collectives.barrier("the beginning", self._meet_timeout_s)
        except TimeoutError:
            now_s = time.monotonic()
            raise ExchangeFailed(never_met(self._exchange.absent(), now_s - began_s, now_s)) from None
        except ExchangeFailed as failed:
            self.collectives.failure = failed
            raise

    def go_on_without(self, order: MeetWithout) -> None:
        """Goes on without the members that have left the run. Callable from any thread."""
        self._exchange.regroup(order.generation, 0, order.gone)

    def close(self, limit_s: float) -> None:
        """Waits until the script has ended on all members, as it has here. Sets ``failure`` if one trains on.

        A member still in its own code after ``limit_s`` learns of the end at its next meeting.
        """
        try:
            self.collectives.barrier("the end of the script", limit_s)
        except TimeoutError:
            pass
        except ExchangeFailed as failed:
            # Nothing more is needed from the others: they may have left.
            if failed.code == MISMATCH:
                self.collectives.failure = failed

    def leave(self, why: Problem | None) -> None:
        """Tells the others that this member leaves. ``why``: what ended it early; they don't wait for it."""
        if self._watch is not None:
            self._watch.end()
        self._exchange.close(why or _DONE, linger_s=0.0 if why else self._linger_s)


def _addresses(tf_config: str) -> Sequence[Address]:
    """Addresses by rank: the chief's, then the workers'."""
    cluster = json.loads(tf_config)["cluster"]
    return [parse(text) for role in ("chief", "worker") for text in cluster.get(role, ())]
