"""The parts of a MultiWorkerMirroredStrategy whose workers are the members of a run.

Sums are as in ``MemberExtended``. A worker also has a task number in the cluster, and gets its data as
TensorFlow would give it: unchanged if the script leaves it unsharded or makes the pipeline itself.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import input_lib, input_util

from core.trainer.mirrored.replica import MemberExtended, refuse_replication

_SHARDED_BY_SCRIPT = (tf.data.experimental.AutoShardPolicy.OFF, tf.data.experimental.AutoShardPolicy.HINT)
"""With these policies the script shards its data itself; otherwise each batch is cut as on one machine."""


class WorkerExtended(MemberExtended):
    """One worker with one replica; the cluster is that of TF_CONFIG."""

    def __init__(self, strategy: Any, collectives: Any, device: str) -> None:
        super().__init__(strategy, collectives, device)
        self._cluster_resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        """Read by ``strategy.cluster_resolver``."""

    @property
    def should_checkpoint(self) -> bool:
        return bool(self._collectives.is_chief)

    @property
    def should_save_summary(self) -> bool:
        return self.should_checkpoint

    def _context(self) -> tf.distribute.InputContext:
        rank, members = self._collectives.rank, self._collectives.members
        return tf.distribute.InputContext(members, rank, members)

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
        refuse_replication(options)
        if dataset.options().experimental_distribute.auto_shard_policy not in _SHARDED_BY_SCRIPT:
            return self.cut(dataset, options)
        return input_lib.DistributedDataset(
            self._workers(options),
            self._strategy,
            dataset,
            num_replicas_in_sync=self._num_replicas_in_sync,
            input_context=self._context(),
            options=options,
        )

    def _distribute_datasets_from_function(self, dataset_fn: Any, options: Any) -> Any:
        refuse_replication(options)
        return input_util.get_distributed_datasets_from_function(
            dataset_fn, self._workers(options), [self._context()], self._strategy, options
        )
