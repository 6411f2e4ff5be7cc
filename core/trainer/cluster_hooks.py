"""Hears when a script's strategy meets its peers: TensorFlow waits inside the strategy's constructor."""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import collective_util
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended
from tensorflow.python.distribute.distribute_lib import StrategyBase
from tensorflow.python.eager.context import Context

from core.trainer.reporter import Reporter
from core.trainer.tls_cluster import TlsCluster
from core.vocabulary.trainer_messages import Meeting, Met

HEARTBEAT_S = 600
"""For so long at least TensorFlow waits for a sign of life where a relay carries it: by itself it gives up
after 10 s, and a step of a large model may last that long. Who has gone is known sooner, by the nodes."""
HEARTBEAT_MORE_S = 60
"""So much longer than the nodes wait for a silent laptop, whose verdict says more."""
_FLUSH_S = 5.0
_PUBLIC = {
    "CollectiveAllReduceStrategy": "MultiWorkerMirroredStrategy",
    "ParameterServerStrategyV2": "ParameterServerStrategy",
    "_DefaultDistributionStrategy": "default strategy",
}
"""Classes whose own names are not those that ``tf.distribute`` shows."""
_ALONE = ("_DefaultDistributionStrategy", "MirroredStrategy", "OneDeviceStrategy", "CentralStorageStrategy")


def environment(tf_config: str, cluster: Mapping[str, Any]) -> dict[str, str]:
    """TF_CONFIG, and its parts as some scripts look for them; nothing for one process alone."""
    if not cluster:
        return {}
    return {
        "TF_CONFIG": tf_config,
        "TF_CONFIG_CLUSTER": json.dumps(cluster["cluster"]),
        "TF_CONFIG_TASK_TYPE": str(cluster["task"]["type"]),
        "TF_CONFIG_TASK_INDEX": str(cluster["task"]["index"]),
    }


def over_relays(inside: Sequence[str], away_s: float = 0.0) -> None:
    """Before the script: TensorFlow is patient, and sums by its own connections alone.

    ``inside``: each task's ``host:port``, which no proxy joins. ``away_s``: so long the run waits for a
    laptop that is silent.

    NVIDIA's library would open ports of its own, which no relay joins.
    """
    others = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    own = [place.rpartition(":")[0] for place in inside]
    no_proxy = ",".join([*filter(None, [others]), "localhost", "127.0.0.1", "::1", *own])
    os.environ.update(no_proxy=no_proxy, NO_PROXY=no_proxy)
    heartbeat_s = max(HEARTBEAT_S, away_s + HEARTBEAT_MORE_S)
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
