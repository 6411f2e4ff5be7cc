"""All access to Keras' private parts. Written for Keras 3.15; any other release is refused.

The replacements and their reasons (made by `replace`, for the life of the process; outside a shared step
everything behaves as in Keras):

  trainer.TFEpochIterator                       portions of several steps; only steps done count
  TensorFlowTrainer.make_train/test_function    the step takes the member's rows; members meet after it
  TensorFlowTrainer.fit, evaluate               shared callbacks, members start equal, agreed stop
  TensorFlowTrainer.predict                     own rows predicted, all rows returned, in order
  ADDITIONAL_LOSS                               per-row additional losses are sums over rows
  SHOULD_VALIDATE                               no validation after an agreed stop
  EPOCH_LOGS                                    an epoch resumed at its very end keeps its earlier logs
  Optimizer.apply (base and every override)     gradients of all members before clipping and accumulation
  COMPILED_LOSS                                 of the batch as a whole: gets all members' predictions
  losses.loss.reduce_values, apply_mask         divisors of all members
  metrics Mean.update_state, Sum.update_state   a scalar without weight is a mean over the own rows
  SYNCHRONISED_MOMENTS                          unequal shares, in one all-reduce, right gradient
  BATCH_MOMENTS                                 of all members' rows, as one process has them
  SHUFFLED, DISTORTED                           reported: each member shuffles, or distorts by, its own rows
  saving.load_model, Model.load_weights         files that only the chief wrote

Everything read or called is below, each under a public name. Nothing outside this module names a private
attribute of Keras, and tests/core/trainer/exact/private_parts.py checks each of those named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
from keras.src import tree
from keras.src.backend.common import global_state
from keras.src.backend.common.masking import get_keras_mask
from keras.src.backend.tensorflow import image as backend_image
from keras.src.backend.tensorflow import nn as backend_nn
from keras.src.backend.tensorflow import random as backend_random
from keras.src.backend.tensorflow import trainer as tf_trainer
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer, TFEpochIterator, potentially_ragged_concat
from keras.src.callbacks.callback_list import CallbackList
from keras.src.losses import loss as loss_module
from keras.src.metrics import reduction_metrics
from keras.src.optimizers.base_optimizer import BaseOptimizer
from keras.src.random import seed_generator
from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR
from keras.src.saving.serialization_lib import SafeModeScope, in_safe_mode
from keras.src.trainers.compile_utils import CompileLoss
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.trainers.trainer import Trainer
from keras.src.utils.python_utils import is_default, pythonify_logs
from tensorflow.python.eager import context

from core.vocabulary.errors import TandemError

ADDITIONAL_LOSS = (TensorFlowTrainer, "_aggregate_additional_loss")
SHOULD_VALIDATE = (Trainer, "_should_eval")
EPOCH_LOGS = (Trainer, "_get_metrics_result_or_logs")
SYNCHRONISED_MOMENTS = (backend_nn, "_compute_moments_sync")
COMPILED_LOSS = (CompileLoss, "call")
DISTORTED = (backend_image, "elastic_transform")
SHUFFLED = (backend_random, "shuffle")
BATCH_MOMENTS = (keras.layers.BatchNormalization, "_moments")
"""Methods and functions to `replace`."""

flatten = tree.flatten
pack_sequence_as = tree.pack_sequence_as

KNOWN_RELEASE = "3.15."

OF_THE_FIT = {"params", "model", "_model"}
"""Attributes that every callback holds while a fit lasts."""
OF_THE_PROCESS: dict[str, set[str]] = {
    "TensorBoard": {"_should_trace", "_is_tracing", "_profiler_started", "_start_batch", "_stop_batch"},
}
"""Attributes of Keras' callbacks that belong to this process, and mean nothing in another."""


class Callbacks(CallbackList):
    """Keras' list of callbacks, its parts under public names."""

    @property
    def history(self) -> Any:
        return self._history

    @property
    def progress_bar(self) -> Any:
        return self._progbar

    def run_in_order(self) -> None:
        """Makes every callback run on this thread, before the next step."""
        self._async_train = self._async_test = self._async_predict = False

    def wait_handled(self) -> None:
        """Waits until callbacks on another thread have handled everything so far."""
        self._flush_futures()


class Epochs(TFEpochIterator):
    """Keras' iterator over the epochs of a fit's data, its parts under public names."""

    def open_whole(self, prepared: Callable[[Any], Any], *args: Any, **kwargs: Any) -> None:
        """Replaces ``__init__``, whose strategy would distribute the data. `args`: its further arguments."""
        EpochIterator.__init__(self, *args, **kwargs)
        self._distributed_dataset = prepared(self.data_adapter.get_tf_dataset())

    @property
    def dataset(self) -> Any:
        return self._distributed_dataset

    @property
    def known_batches(self) -> int | None:
        """How many batches the data has, if Keras knows; ``num_batches`` prefers ``steps_per_epoch``."""
        return self._num_batches

    @property
    def last_rows(self) -> int | None:
        """Rows of the last batch of arrays, if they are fewer than the others'."""
        return self.data_adapter.partial_batch_size if self.is_of_arrays else None

    @property
    def arrays(self) -> Any:
        """The data in arrays, nested as a batch; None if it is anything else."""
        return self.data_adapter._inputs if self.is_of_arrays else None

    @property
    def is_of_arrays(self) -> bool:
        return isinstance(self.data_adapter, ArrayDataAdapter)

    @property
    def reader(self) -> Any:
        """The iterator over the data that the current epoch reads."""
        return self._current_iterator

    @reader.setter
    def reader(self, iterator: Any) -> None:
        self._current_iterator = iterator

    @property
    def steps_seen(self) -> int:
        """Steps that the reader has yielded."""
        return self._steps_seen

    @steps_seen.setter
    def steps_seen(self, steps: int) -> None:
        self._steps_seen = steps

    @property
    def under_way(self) -> Iterator[Any]:
        """The rest of the epoch: (first step, last step, what they are read from)."""
        return self._epoch_iterator

    @under_way.setter
    def under_way(self, epoch: Iterator[Any]) -> None:
        self._epoch_iterator = epoch

    def reopen(self) -> Any:
        """A new iterator over the data, from its beginning."""
        return iter(self._get_iterator())

    def warn_of_interruption(self) -> None:
        """Warns that the data ended before ``steps_per_epoch`` was reached."""
        self._interrupted_warning()

    def epoch(self) -> Iterator[Any]:
        """A new epoch's items."""
        return super()._enumerate_iterator()

    def _enumerate_iterator(self) -> Iterator[Any]:
        return self.epoch()


def check_release(version: str = keras.__version__) -> None:
    """Raises TandemError on a Keras release whose private parts are not known."""
    if not version.startswith(KNOWN_RELEASE) or keras.backend.backend() != "tensorflow":
        raise TandemError(
            code="keras-release",
            what=f"Exact training supports Keras {KNOWN_RELEASE}x on TensorFlow; "
            f"installed is {version} on {keras.backend.backend()}.",
            fix=f"Install keras=={KNOWN_RELEASE}* and leave KERAS_BACKEND unset.",
        )


def replace(owner: Any, name: str, substitute: Callable[..., Any]) -> None:
    """Replaces owner.name by `substitute(original, *args)`. Does nothing the second time."""
    original = owner.__dict__[name]
    if getattr(original, "_tandem_original", None) is not None:
        return

    def replaced(*args: Any, **kwargs: Any) -> Any:
        return substitute(original, *args, **kwargs)

    replaced.__name__ = name
    replaced.__doc__ = original.__doc__
    replaced._tandem_original = original  # type: ignore[attr-defined]
    setattr(owner, name, replaced)


def replace_in_subclasses(base: type, name: str, substitute: Callable[..., Any]) -> None:
    """Applies `replace` to a class and to each currently known subclass that overrides the method."""
    seen, left = set(), [base]
    while left:
        cls = left.pop()
        if cls in seen:
            continue
        seen.add(cls)
        left.extend(cls.__subclasses__())
        if name in vars(cls):
            replace(cls, name, substitute)


def tf_seeds() -> Any:
    """The random.Random from which TensorFlow draws operation seeds; None before a seed was set."""
    return getattr(context.context(), "_rng", None)


def global_seed_generator() -> Any:
    """Keras' generator for random operations without a seed; None if nothing has needed it yet."""
    return global_state.get_global_attribute(GLOBAL_SEED_GENERATOR)


def made_global_seed_generator() -> Any:
    """The same, created if missing, which draws a number from Python's generator."""
    return seed_generator.global_seed_generator()


def assert_compiled(model: Any, call: str) -> None:
    """Raises Keras' own error if `call` comes before ``compile``."""
    model._assert_compile_called(call)


def build(model: Any, data_spec: Any) -> None:
    """Creates the variables of model, metrics and optimizer for batches like `data_spec`, without a step."""
    model._symbolic_build(data_batch=data_spec)


def is_built_before_a_step(optimizer: Any, *, is_training: bool) -> bool:
    """Whether `build` may create an optimizer's variables, if it has any.

    Not in a test, where a step creates none; nor if building assigns values beyond the initial ones: Keras'
    `fit` creates the variables while tracing a step and loses such values, so they must be lost here, too.
    """
    if optimizer is None or optimizer.built:
        return True
    own = not type(optimizer).build.__module__.startswith("keras.")
    return is_training and not own and not isinstance(optimizer, keras.optimizers.ScheduleFreeAdamW)


def every_metric(model: Any) -> list[Any]:
    """The metrics in ``model.metrics``, and those that Keras' step updates although the script omits them."""
    return list({id(metric): metric for metric in [*model.metrics, *Trainer.metrics.fget(model)]}.values())


def metrics_in_order(model: Any, logs: Any) -> Any:
    """Logs as a list in the order of ``metrics_names``, as evaluate returns them."""
    return model._flatten_metrics_in_order(logs)


def compiled_with(model: Any) -> list[Any]:
    """The losses and metrics given to ``compile``, and None where one is left out."""
    metrics = model._compile_metrics
    given = [] if metrics is None else [metrics._user_metrics, metrics._user_weighted_metrics]
    return list(flatten([model.loss, *given]))


def function_of(part: Any) -> Any:
    """The function that a wrapper of Keras', such as ``MeanMetricWrapper``, calls; else the part itself."""
    return getattr(part, "_fn", None) or getattr(part, "fn", None) or part


def layers_of(model: Any) -> list[Any]:
    """The model and every layer in it."""
    return list(model._flatten_layers())


def initial_epoch(model: Any) -> int | None:
    """The first epoch that ``BackupAndRestore`` sets for a fit; None if nothing was restored."""
    epoch = model._initial_epoch
    return None if epoch is None else int(epoch)


def set_initial_epoch(model: Any, epoch: int | None) -> None:
    model._initial_epoch = epoch


def validation_iterator(model: Any) -> Any:
    """The iterator over a fit's validation data; None before the first validation."""
    return getattr(model, "_eval_epoch_iterator", None)


def traces_batches(tensorboard: Any) -> bool:
    """Whether a TensorBoard callback profiles batches."""
    return bool(tensorboard._should_trace)


def is_compiled(function: Any) -> bool:
    """Whether the script asked for XLA for a ``tf.function``."""
    return bool(getattr(function, "_jit_compile", None))


def variable_dtype(handle: Any) -> Any:
    """The dtype of the variable behind a TensorFlow resource handle. Raises ValueError if there is none."""
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        raise ValueError(f"{handle} is no variable")
    return data.shape_and_type[0].dtype


def function_graph(graph: Any, name: bytes) -> Any:
    """The graph of a function that an operation of `graph` calls; None if TensorFlow has none."""
    return getattr(graph._get_function(name), "graph", None)


def attributes(op: Any) -> dict[str, Any]:
    """An operation's attributes, for making one like it; without those about colocation."""
    return {name: value for name, value in op.node_def.attr.items() if name != "_class"}


def mask_of(tensor: Any) -> Any:
    """A mask of the tensor's entries that count; None: all of them."""
    return get_keras_mask(tensor)


def numbers(logs: Any) -> dict[str, float]:
    """The logs that are one number each; a metric may also give an array (``F1Score(average=None)``)."""
    found = {}
    for name, value in pythonify_logs(dict(logs or {})).items():
        try:
            found[str(name)] = float(value)
        except (TypeError, ValueError):
            continue
    return found
