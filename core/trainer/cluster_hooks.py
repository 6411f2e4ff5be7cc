"""Hears when a script's strategy meets its peers: TensorFlow waits inside the strategy's constructor."""

from __future__ import annotations

import functools
import inspect
import signal
from collections.abc import Callable
from typing import Any

import tensorflow as tf
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


class StrategyWatch:
    """For scripts that bring their own strategy: reports its meeting, and whether there was any."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.shared = False
        """A strategy that can share work between processes was made."""
        self.on_built: Callable[[Any], None] = lambda strategy: None
        """Told of each such strategy as soon as it is there."""
        self.resolver: Callable[[], Any] | None = None
        """Where MultiWorkerMirroredStrategy is told of peers and devices, whatever the script says."""
        self._inside = 0

    def install(self) -> None:
        self._wrap(StrategyBase, waits=False)
        self._wrap(tf.distribute.MultiWorkerMirroredStrategy, waits=True)
        self._wrap(tf.distribute.ParameterServerStrategy, waits=True)

    def _wrap(self, kind: Any, *, waits: bool) -> None:
        original = kind.__init__

        @functools.wraps(original)
        def init(strategy: Any, *args: Any, **kwargs: Any) -> None:
            outer = self._inside == 0 and type(strategy).__name__ not in _ALONE
            if self.resolver is not None and kind is tf.distribute.MultiWorkerMirroredStrategy:
                bound = inspect.signature(original).bind(strategy, *args, **kwargs)
                bound.arguments["cluster_resolver"] = self.resolver()
                args, kwargs = bound.args[1:], bound.kwargs
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
                self.on_built(strategy)

        kind.__init__ = init
