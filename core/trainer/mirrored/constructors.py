"""Gives the run's strategy to scripts that open a mirrored strategy themselves, in a run of several members.

A hand-written loop gets a strategy whose replicas are the members (`replica.py`, and `workers.py` for a
MultiWorkerMirroredStrategy). For ``fit`` the script runs as if without a strategy: ``scope()`` creates
plain variables that the engine keeps equal (docs/exactness.md says why), and a distributed dataset stays
whole, since members share each step's rows anyway. Main thread of the trainer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_utils
from tensorflow.python.distribute.distribute_lib import StrategyBase, StrategyV1

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members.collectives import Collectives
from core.trainer.mirrored.replica import MemberExtended, on_read
from core.trainer.mirrored.workers import WorkerExtended
from core.vocabulary.errors import TandemError

_MIRRORED = (tf.distribute.MirroredStrategy, tf.compat.v1.distribute.MirroredStrategy)
_MULTI_WORKER = (
    tf.distribute.MultiWorkerMirroredStrategy,
    tf.distribute.experimental.MultiWorkerMirroredStrategy,
    tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy,
)
_IGNORED = {
    "devices": "a list of devices (each member computes on one of its own)",
    "cross_device_ops": "cross_device_ops (members are added up over TLS)",
    "cluster_resolver": "a cluster resolver (Tandem has already found the members)",
    "communication_options": "communication options (members are added up over TLS)",
    "communication": "an implementation of its communication (members are added up over TLS)",
}
_LOOP = (
    "The script's {name} has {members} replicas, one a member: each gets an equal part of every batch that "
    "the strategy distributes."
)
_FIT = (
    "The script's fit trains on {members} members, which are the replicas of its own {name}: a batch counts "
    "all members' rows, as on one machine."
)
_WHOLE = "The script's distributed dataset is read whole: Tandem itself shares each step's rows."


class Constructors:
    """Replaces the mirrored strategies that a script opens, once ``for_loops`` or ``for_fits`` is called."""

    def __init__(self, collectives: Collectives, say: Callable[[str], None]) -> None:
        self._collectives = collectives
        self._say = say
        self._said: set[str] = set()
        self._loops: list[MemberExtended] = []

    @property
    def shared(self) -> bool:
        """Whether any loop has summed or gathered anything over the members."""
        return any(extended.meetings for extended in self._loops)

    def for_loops(self) -> None:
        """Gives mirrored strategies the members as replicas, for hand-written loops."""
        for kind in (*_MIRRORED, *_MULTI_WORKER):
            self._replace(kind, self._open_loop)
        distribute_utils.VARIABLE_CLASS_MAPPING[tf.VariableSynchronization.ON_READ] = on_read
        original = private.TensorFlowTrainer.fit

        @functools.wraps(original)
        def fit(model: Any, *args: Any, **kwargs: Any) -> Any:
            self._refuse_fit_of(model)
            return original(model, *args, **kwargs)

        private.TensorFlowTrainer.fit = fit

    def for_fits(self) -> None:
        """Makes mirrored strategies pass everything through, for the engine's fit."""
        for kind in (*_MIRRORED, *_MULTI_WORKER):
            self._replace(kind, self._open_fit)

    def _replace(self, kind: Any, opened: Callable[[Any, MemberExtended], None]) -> None:
        original = kind.__init__
        # Not the next class in the MRO: it may itself be replaced.
        base: Any = StrategyV1 if issubclass(kind, StrategyV1) else tf.distribute.Strategy
        extends = WorkerExtended if kind in _MULTI_WORKER else MemberExtended

        @functools.wraps(original)
        def init(strategy: Any, *args: Any, **kwargs: Any) -> None:
            self._say_ignored(kind, original, args, kwargs)
            extended = extends(strategy, self._collectives, _device())
            base.__init__(strategy, extended)
            opened(strategy, extended)

        kind.__init__ = init

    def _say_ignored(self, kind: Any, original: Any, args: Any, kwargs: Any) -> None:
        names = [name for name in inspect.signature(original).parameters if name != "self"]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if isinstance(given.get("devices"), tf.distribute.cluster_resolver.ClusterResolver):
            given["cluster_resolver"] = given.pop("devices")
        for name, value in given.items():
            if name not in _IGNORED:
                raise TypeError(f"{kind.__name__}.__init__() got an unexpected keyword argument {name!r}")
            if value is not None:
                self._say_once(f"The script's own strategy is given {_IGNORED[name]}, which is ignored.")

    def _open_loop(self, strategy: Any, extended: MemberExtended) -> None:
        self._loops.append(extended)
        self._say_once(_LOOP.format(members=self._collectives.members, name=_name(strategy)))

    def _open_fit(self, strategy: Any, extended: MemberExtended) -> None:
        self._say_once(_FIT.format(members=self._collectives.members, name=_name(strategy)))
        strategy.scope = functools.partial(_no_scope, strategy)
        strategy.experimental_distribute_dataset = self._whole
        strategy.distribute_datasets_from_function = self._whole_from

    def _whole(self, dataset: Any, options: Any = None) -> Any:
        self._say_once(_WHOLE)
        return dataset

    def _whole_from(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """One pipeline that reads everything, as on one machine."""
        self._say_once(_WHOLE)
        return dataset_fn(tf.distribute.InputContext())

    def _refuse_fit_of(self, model: Any) -> None:
        """Keras' ``fit`` cannot train a model of several members; it can train one outside the strategy."""
        if any(model.distribute_strategy.extended is extended for extended in self._loops):
            raise TandemError(
                code="fit-beside-loop",
                what="The script trains with fit and with its strategy's run(). Over several laptops it can "
                "use only one of the two",
                fix="Train with fit alone, or with the loop alone.",
            )

    def _say_once(self, words: str) -> None:
        if self._collectives.is_chief and words not in self._said:
            self._said.add(words)
            self._say(words)


def _name(strategy: StrategyBase) -> str:
    """The strategy's name in ``tf.distribute``; the class's own name if the script defines it."""
    name = type(strategy).__name__.replace("CollectiveAllReduceStrategy", "MultiWorkerMirroredStrategy")
    return name.removesuffix("V1").removesuffix("Experimental").strip("_")


def _no_scope(strategy: StrategyBase) -> AbstractContextManager[Any]:
    return nullcontext(strategy)


def _device() -> str:
    """This member's GPU, if it has one."""
    return "GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"
