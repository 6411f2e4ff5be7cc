"""Reports when a script's strategy meets its peers: TensorFlow waits inside the strategy's constructor."""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import collective_util
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
from tensorflow.python.distribute.distribute_lib import StrategyBase
from tensorflow.python.eager.context import Context

from core.trainer.reporter import Reporter
from core.trainer.tls_cluster import TlsCluster
from core.vocabulary.trainer_messages import Connecting, Met

HEARTBEAT_S = 600
"""Least time that TensorFlow waits for a heartbeat over a relay: its default is 10 s, and a step of a large
model may take that long. The nodes notice a lost member sooner."""
HEARTBEAT_MARGIN_S = 60
"""How much longer than the nodes TensorFlow waits for a silent laptop: their message says more."""
_FLUSH_S = 5.0
_PUBLIC = {
    "CollectiveAllReduceStrategy": "MultiWorkerMirroredStrategy",
    "ParameterServerStrategyV2": "ParameterServerStrategy",
    "_DefaultDistributionStrategy": "default strategy",
}
"""Names in ``tf.distribute`` of classes whose own names differ."""
_ALONE = ("_DefaultDistributionStrategy", "MirroredStrategy", "OneDeviceStrategy", "CentralStorageStrategy")
"""Strategies within one process."""


def environment(tf_config: str, cluster: Mapping[str, Any]) -> dict[str, str]:
    """TF_CONFIG, and variables with parts of it that some scripts read; empty for a single process."""
    if not cluster:
        return {}
    return {
        "TF_CONFIG": tf_config,
        "TF_CONFIG_CLUSTER": json.dumps(cluster["cluster"]),
        "TF_CONFIG_TASK_TYPE": str(cluster["task"]["type"]),
        "TF_CONFIG_TASK_INDEX": str(cluster["task"]["index"]),
    }


def over_relays(addresses: Sequence[str], away_s: float = 0.0) -> None:
    """Prepares TensorFlow for relays: longer heartbeats, no proxy, sums over its own connections only.

    NVIDIA's library would open ports of its own, which no relay connects. Call before the script.

    ``addresses``: each task's ``host:port``. ``away_s``: how long the run waits for a silent laptop.
    """
    others = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    hosts = [address.rpartition(":")[0] for address in addresses]
    no_proxy = ",".join([*filter(None, [others]), "localhost", "127.0.0.1", "::1", *hosts])
    os.environ.update(no_proxy=no_proxy, NO_PROXY=no_proxy)
    heartbeat_s = max(HEARTBEAT_S, away_s + HEARTBEAT_MARGIN_S)
    configure, init = Context.configure_coordination_service, collective_util.Options.__init__

    @functools.wraps(configure)
    def patiently(context: Any, *args: Any, **kwargs: Any) -> None:
        if not args[4:]:
            kwargs["heartbeat_timeout_in_ms"] = int(heartbeat_s * 1000)
        configure(context, *args, **kwargs)

    @functools.wraps(init)
    def by_ring(options: Any, *args: Any, **kwargs: Any) -> None:
        init(options, *args, **kwargs)
        options.implementation = collective_util.CommunicationImplementation.RING

    Context.configure_coordination_service = patiently
    collective_util.Options.__init__ = by_ring


def met_over_tls(reporter: Reporter, cluster: TlsCluster) -> Any:
    """The strategy whose replicas are the members."""
    reporter.send(Connecting())
    cluster.report_to(reporter)
    cluster.meet()
    report_strategy(reporter, cluster.strategy, cluster.members)
    return cluster.strategy


def report_strategy(reporter: Reporter, strategy: Any, replicas: int | None = None) -> None:
    """Reports which strategy trains, with how many replicas; None: the strategy's own number."""
    name = type(strategy).__name__
    count = int(strategy.num_replicas_in_sync) if replicas is None else replicas
    reporter.send(Met(strategy=_PUBLIC.get(name, name), replicas=count))


def give_back_sigterm() -> None:
    """Takes SIGTERM back from TensorFlow's preemption watcher, which would swallow it."""
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM) or signal.SIG_DFL)


def _mirrored_by_tensorflow(strategy: Any, *devices: Any, **options: Any) -> None:
    """Makes a MirroredStrategy a MultiWorkerMirroredStrategy, without its arguments for one machine."""
    extended = CollectiveAllReduceExtended(
        strategy,
        cluster_resolver=tf.distribute.cluster_resolver.TFConfigClusterResolver(),
        communication_options=tf.distribute.experimental.CommunicationOptions(),
    )
    super(tf.distribute.MirroredStrategy, strategy).__init__(extended)


class StrategyWatch:
    """Reports when a script's own strategy connects, and records whether the script created one."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.shared = False
        """Whether the script created a strategy that can share work between processes."""
        self._inside = 0
        self._alone: Sequence[str] = _ALONE

    def install(self, *, mirrors: bool) -> None:
        """``mirrors``: MirroredStrategy also has the members as its replicas."""
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
                self._reporter.send(Connecting())
                self._reporter.flush(_FLUSH_S)
            self._inside += 1
            try:
                original(strategy, *args, **kwargs)
            finally:
                self._inside -= 1
            if outer:
                self.shared = True
                give_back_sigterm()
                report_strategy(self._reporter, strategy)

        kind.__init__ = init
