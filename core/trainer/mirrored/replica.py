"""The parts of a MirroredStrategy whose replicas are the members of a run.

A strategy is implemented by its ``extended``. MirroredStrategy's does not call ``CrossDeviceOps`` for
integers, sums that end on a processor, gathers and initial values of variables: with one device they would
silently stay local to this member. So all of these are replaced here, as in TensorFlow's strategy for several
machines (``CollectiveAllReduceExtended``), and use the exchange.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import (
    cross_device_utils,
    device_util,
    distribute_lib,
    distribute_utils,
    input_lib,
    input_util,
    values,
)
from tensorflow.python.distribute.mirrored_strategy import MirroredExtended
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_util
from tensorflow.python.trackable.base import CheckpointInitialValue

from core.trainer.exact.members.collectives import Collectives
from core.trainer.mirrored import parts
from core.vocabulary.errors import TandemError

_OWN_COUNTERS = ("iteration",)
"""Variables that would get the chief's value at each write, but that every member counts alike anyway: Keras'
optimizers have one, and fetching it would cost another meeting in each step."""


class MemberExtended(MirroredExtended):
    """One replica of ``collectives.members``, on ``device``; its number is this member's rank."""

    def __init__(self, strategy: Any, collectives: Collectives, device: str) -> None:
        self._collectives = collectives
        self._strategy = strategy
        super().__init__(strategy, devices=[device])
        self.meetings = 0
        """Sums and gathers that the script traced; with none, it shares nothing."""

    # --- replica numbers -----------------------------------------------------------------------------------

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._collectives.members

    def _get_replica_id_in_sync_group(self, replica_id: int) -> int:
        return self._collectives.rank + replica_id

    def _get_local_replica_id(self, replica_id_in_sync_group: int) -> int:
        return replica_id_in_sync_group - self._collectives.rank

    def _in_multi_worker_mode(self) -> bool:
        return True

    def _use_merge_call(self) -> bool:
        return True

    # --- sums and gathers ----------------------------------------------------------------------------------

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        if distribute_utils.is_mirrored(value) and reduce_op == tf.distribute.ReduceOp.MEAN:
            return value
        assert not distribute_utils.is_mirrored(value), "a mirrored value is no sum of parts"
        summed = self._reduced(reduce_op, tf.nest.flatten(value), "reduce")
        return tf.nest.pack_sequence_as(value, summed)

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> list[Any]:
        return self._reduced(reduce_op, [value for value, _ in value_destination_pairs], "all_reduce")

    def _reduced(self, reduce_op: Any, given: list[Any], what: str) -> list[Any]:
        """Reduces all values at once, with a single wait."""
        own = [_own(value) for value in given]
        dense = [value for value in own if not isinstance(value, tf.IndexedSlices)]
        with self._meeting():
            sums = iter(
                self._collectives.sum_without_strategy(dense, f"a {what} of the script's") if dense else ()
            )
            found = [
                self._joined(value) if isinstance(value, tf.IndexedSlices) else next(sums) for value in own
            ]
        if reduce_op == tf.distribute.ReduceOp.MEAN:
            count = self._num_replicas_in_sync
            return [cross_device_utils.divide_by_n_tensors_or_indexed_slices(each, count) for each in found]
        return found

    def _joined(self, slices: tf.IndexedSlices) -> tf.IndexedSlices:
        """The sum of the members' slices of a table: the slices of all, in rank order."""
        gather = self._collectives.gather
        rows = gather(slices.values, "slices of the script's")
        return tf.IndexedSlices(rows, gather(slices.indices, "the slices' places"), slices.dense_shape)

    def _gather_to_implementation(self, value: Any, destinations: Any, axis: Any, options: Any) -> Any:
        own = _own(value)
        with self._meeting():
            first = tf.concat([[axis], tf.range(axis), tf.range(axis + 1, tf.rank(own))], axis=0)
            joined = self._collectives.gather(tf.transpose(own, first), "a gather of the script's")
            found = tf.transpose(joined, tf.math.invert_permutation(first))
        if isinstance(axis, int) and own.shape.rank is not None:
            found.set_shape([*own.shape[:axis], None, *own.shape[axis + 1 :]])
        return found

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """The value of the first replica, the chief."""
        counts = str(getattr(destinations, "name", "")).rpartition("/")[2].partition(":")[0] in _OWN_COUNTERS
        if isinstance(tensor, float | int) or counts:
            return tensor
        return self.from_chief(tensor, "a value of the script's")

    def from_chief(self, tensor: Any, what: str) -> Any:
        """The chief's ``tensor``, of the same shape on every member. Strings stay each member's own."""
        tensor = tf.convert_to_tensor(tensor)
        if not (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool):
            return tensor
        with self._meeting(shares=False):
            flat = tf.reshape(tensor, [-1])
            joined = self._collectives.gather(flat if self._collectives.is_chief else flat[:0], what)
            return tf.ensure_shape(tf.reshape(joined, tf.shape(tensor)), tensor.shape)

    def _meeting(self, shares: bool = True) -> Any:
        if control_flow_util.GraphOrParentsInXlaContext(ops.get_default_graph()):
            raise TandemError(
                code="jit-compile",
                what="The script's step is compiled by XLA (jit_compile=True), and members cannot meet "
                "within what XLA compiles",
                fix="Remove jit_compile=True from the tf.function that calls strategy.run, and from the "
                "function that applies gradients.",
            )
        self.meetings += shares
        return tf.device("/device:CPU:0")

    # --- variables -----------------------------------------------------------------------------------------

    def _get_variable_creator_initial_value(
        self, replica_id: int, device: Any, primary_var: Any, **kwargs: Any
    ) -> Any:
        """The chief's value: members may draw different numbers."""

        def initial_value() -> Any:
            with tf.device(device):
                given = kwargs["initial_value"]
                given = given() if callable(given) else given
                if isinstance(given, CheckpointInitialValue):
                    given = given.wrapped_value
                given = tf.convert_to_tensor(given, dtype=kwargs.get("dtype"))
            return self.from_chief(given, "a variable's first value")

        return initial_value

    # --- data ----------------------------------------------------------------------------------------------

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
        refuse_replication(options)
        return self.cut(dataset, options)

    def cut(self, dataset: Any, options: Any) -> Any:
        """Cuts each batch of a dataset that all members read into equal parts, as on one machine."""
        part = parts.of_each_batch(dataset, self._collectives.rank, self._collectives.members)
        # Each member has a part of every batch, if only an empty one: no need to ask who has data left.
        self.experimental_enable_get_next_as_optional = False
        try:
            workers = self._workers(options)
            return input_lib.DistributedDataset(workers, self._strategy, part, options=options)
        finally:
            self.experimental_enable_get_next_as_optional = True

    def _distribute_datasets_from_function(self, dataset_fn: Any, options: Any) -> Any:
        refuse_replication(options)
        rank, members = self._collectives.rank, self._collectives.members
        return input_util.get_distributed_datasets_from_function(
            parts.dealt(dataset_fn, rank, members),
            self._workers(options),
            [parts.PipelineContext(members, rank, members)],
            self._strategy,
            options,
        )

    def _workers(self, options: Any) -> Any:
        """This member's processor, and the device it copies each part to."""
        [device] = self.worker_devices
        host = device_util.get_host_for_device(device)
        stays = options is not None and not options.experimental_fetch_to_device
        return input_lib.InputWorkers([(host, [host if stays else device])])

    def _experimental_distribute_values_from_function(self, value_fn: Any) -> Any:
        own = distribute_lib.ValueContext(self._collectives.rank, self._collectives.members)
        return distribute_utils.regroup([value_fn(own)], always_wrap=True)


def on_read(strategy: Any, replicas: Any, aggregation: Any) -> Any:
    """A variable that each replica writes separately; reading it aggregates."""
    first = aggregation == tf.VariableAggregation.ONLY_FIRST_REPLICA
    ours = first and isinstance(strategy.extended, MemberExtended)
    return (_ChiefsVariable if ours else values.SyncOnReadVariable)(strategy, replicas, aggregation)


class _ChiefsVariable(values.SyncOnReadVariable):
    """Reads as the chief's value outside of replicas."""

    def value(self) -> Any:
        outside = tf.distribute.in_cross_replica_context()
        return self._get_cross_replica() if outside else super().value()

    def _get_cross_replica(self) -> Any:
        [own] = self.values
        extended = self.distribute_strategy.extended
        with distribute_lib.enter_or_assert_strategy(self.distribute_strategy):
            return extended.from_chief(own.value(), "a variable that is read as the chief's")


def _own(value: Any) -> Any:
    """This member's part, as a tensor."""
    if isinstance(value, values.DistributedValues):
        [value] = value.values
    return value if isinstance(value, tf.IndexedSlices) else tf.convert_to_tensor(value)


def refuse_replication(options: Any) -> None:
    each = tf.distribute.InputReplicationMode.PER_REPLICA
    if options is not None and options.experimental_replication_mode == each:
        raise NotImplementedError("A member has one replica: InputReplicationMode.PER_WORKER is the same.")
