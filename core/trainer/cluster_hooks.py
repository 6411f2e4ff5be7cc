"""Hears when a script's strategy meets its peers: TensorFlow waits inside the strategy's constructor."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
from tensorflow.python.distribute.distribute_lib import StrategyBase

from core.trainer.reporter import Reporter
from core.trainer.tls_cluster import TlsCluster
from core.vocabulary.trainer_messages import Meeting, Met

_FLUSH_S = 5.0
_PUBLIC = {
    "CollectiveAllReduceStrategy": "MultiWorkerMirroredStrategy",
    "ParameterServerStrategyV2": "ParameterServerStrategy",
    "_DefaultDistributionStrategy": "default strategy",
}
"""Classes whose own names are not those that ``tf.distribute`` shows."""
_ALONE = ("_DefaultDistributionStrategy", "MirroredStrategy", "OneDeviceStrategy", "CentralStorageStrategy")


def met(reporter: Reporter, build: Callable[[], Any]) -> Any:
    """Build a strategy that waits for peers. It holds the interpreter's lock meanwhile: hence the flush."""
    reporter.send(Meeting())
    reporter.flush(_FLUSH_S)
    strategy = build()
    give_back_sigterm()
    told(reporter, strategy)
    return strategy


def met_over_tls(reporter: Reporter, cluster: TlsCluster) -> Any:
    """The strategy whose replicas are the members."""
    reporter.send(Meeting())
    cluster.report_to(reporter)
    cluster.meet()
    told(reporter, cluster.strategy, cluster.members)
    return cluster.strategy


def told(reporter: Reporter, strategy: Any, replicas: int | None = None) -> None:
    """Say which strategy trains, with how many replicas; None: as many as it knows of."""
    name = type(strategy).__name__
    count = int(strategy.num_replicas_in_sync) if replicas is None else replicas
    reporter.send(Met(strategy=_PUBLIC.get(name, name), replicas=count))


def give_back_sigterm() -> None:
    """TensorFlow's preemption watcher takes SIGTERM for itself; then a terminate would do nothing."""
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM) or signal.SIG_DFL)


def _mirrored_by_tensorflow(strategy: Any, *devices: Any, **options: Any) -> None:
    """MirroredStrategy as MultiWorkerMirroredStrategy: its own arguments are about one machine."""
    extended = CollectiveAllReduceExtended(
        strategy,
        cluster_resolver=tf.distribute.cluster_resolver.TFConfigClusterResolver(),
        communication_options=tf.distribute.experimental.CommunicationOptions(),
    )
    super(tf.distribute.MirroredStrategy, strategy).__init__(extended)


class StrategyWatch:
    """For scripts that bring their own strategy: reports its meeting, and whether there was any."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.shared = False
        """A strategy that can share work between processes was made."""
        self._inside = 0
        self._alone: Sequence[str] = _ALONE

    def install(self, *, mirrors: bool) -> None:
        """``mirrors``: MirroredStrategy has the members as its replicas, too."""
        if mirrors:
            self._alone = tuple(name for name in _ALONE if name != "MirroredStrategy")
            tf.distribute.MirroredStrategy.__init__ = _mirrored_by_tensorflow
            self._wrap(tf.distribute.MirroredStrategy, waits=True)
        self._wrap(StrategyBase, waits=False)
        self._wrap(tf.distribute.MultiWorkerMirroredStrategy, waits=True)
        self._wrap(tf.distribute.ParameterServerStrategy, waits=True)

    def _wrap(self, kind: Any, *, waits: bool) -> None:
        original = kind.__init__

        @functools.wraps(original)
        def init(strategy: Any, *args: Any, **kwargs: Any) -> None:
            outer = self._inside == 0 and type(strategy).__name__ not in self._alone
            if outer and waits:
                self._reporter.send(Meeting())
                self._reporter.flush(_FLUSH_S)
            self._inside += 1
            try:
                original(strategy, *args, **kwargs)
            finally:
                self._inside -= 1
            if outer:
                self.shared = True
                give_back_sigterm()
                told(self._reporter, strategy)

        kind.__init__ = init
