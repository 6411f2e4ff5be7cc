"""The one place that touches Keras' private parts. Written for Keras 3.15; another release is refused.

What is replaced, and why (by `replace`, for the life of the process; all of it does as Keras does outside a
shared step):

  trainer.TFEpochIterator                       portions of several steps; only steps done count
  TensorFlowTrainer.make_train/test_function    the step takes the member's rows; members meet after it
  TensorFlowTrainer.fit, evaluate               shared callbacks, members start equal, agreed stop
  TensorFlowTrainer.predict                     own rows predicted, all rows returned, in order
  TensorFlowTrainer._aggregate_additional_loss  per-row additional losses are sums over rows
  Trainer._should_eval                          no validation after an agreed stop
  Optimizer.apply (base and every override)     gradients of all members before clipping and accumulation
  losses.loss.reduce_values, apply_mask         divisors of all members
  metrics Mean.update_state, Sum.update_state   a scalar without weight is a mean over the own rows
  backend nn._compute_moments_sync              unequal shares, in one all-reduce, right gradient
  SeedGenerator.next                            different dropout masks on different members
  saving.load_model, Model.load_weights         files that only the chief wrote
  Trainer._get_metrics_result_or_logs           an epoch gone on with at its very end has the logs of before

Read but not replaced: Layer._non_trainable_variables, Layer._flatten_layers, Model._initial_epoch,
Model._eval_epoch_iterator, CallbackList._async_*, ._history, ._progbar, EpochIterator's attributes,
whether its data are arrays; of TensorFlow the generator of operations' seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras.src import tree
from keras.src.backend.common import global_state
from keras.src.backend.tensorflow import nn as backend_nn
from keras.src.backend.tensorflow import trainer as tf_trainer
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer, TFEpochIterator, potentially_ragged_concat
from keras.src.callbacks.callback_list import CallbackList
from keras.src.losses import loss as loss_module
from keras.src.metrics import reduction_metrics
from keras.src.optimizers.base_optimizer import BaseOptimizer
from keras.src.random import seed_generator
from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR, SeedGenerator
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.trainers.trainer import Trainer
from keras.src.utils.python_utils import is_default, pythonify_logs
from tensorflow.python.eager import context

from core.vocabulary.errors import TandemError

flatten = tree.flatten
pack_sequence_as = tree.pack_sequence_as

KNOWN_RELEASE = "3.15."

__all__ = [
    "KNOWN_RELEASE",
    "ArrayDataAdapter",
    "BaseOptimizer",
    "CallbackList",
    "EpochIterator",
    "SeedGenerator",
    "TFEpochIterator",
    "TensorFlowTrainer",
    "Trainer",
    "backend_nn",
    "check_release",
    "flatten",
    "global_seed_generator",
    "is_default",
    "loss_module",
    "made_global_seed_generator",
    "pack_sequence_as",
    "potentially_ragged_concat",
    "pythonify_logs",
    "reduction_metrics",
    "replace",
    "replace_in_subclasses",
    "tf_seeds",
    "tf_trainer",
]


def check_release(version: str = keras.__version__) -> None:
    """Raises TandemError on a Keras whose private parts are not known."""
    if not version.startswith(KNOWN_RELEASE) or keras.backend.backend() != "tensorflow":
        raise TandemError(
            code="keras-release",
            what=f"Exact training knows Keras {KNOWN_RELEASE}x on TensorFlow; "
            f"here is {version} on {keras.backend.backend()}.",
            fix=f"Install keras=={KNOWN_RELEASE}* and leave KERAS_BACKEND unset.",
        )


def replace(owner: Any, name: str, substitute: Callable[..., Any]) -> None:
    """Puts `substitute(original, *args)` in the place of owner.name. Once; a second time does nothing."""
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
    """`replace` on a class and on each of its subclasses, as known now, that override the method."""
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
    """The random.Random from which TensorFlow draws the seeds of operations; None before a seed was set."""
    return getattr(context.context(), "_rng", None)


def global_seed_generator() -> Any:
    """Keras' generator for random operations without a seed; None where nothing has needed it yet."""
    return global_state.get_global_attribute(GLOBAL_SEED_GENERATOR)


def made_global_seed_generator() -> Any:
    """The same, made now where it was not there yet; that takes a number from Python's generator."""
    return seed_generator.global_seed_generator()
