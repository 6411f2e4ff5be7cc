"""Installs the engine into Keras, in this process, and provides its results."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.ops import gen_logging_ops

from core.trainer.exact.interface import Cluster, Observer
from core.trainer.exact.keras import callback_kinds, model_state
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members.collectives import Collectives
from core.trainer.exact.patch import (
    callbacks,
    gradients,
    in_step,
    load_files,
    one_member,
    predict,
    random_numbers,
    tape,
    whole_loss,
)
from core.trainer.exact.rare.loop import RareLoop
from core.trainer.exact.steps import data, random_positions
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.loop import Loop
from core.vocabulary.options import meet_every
from core.vocabulary.progress import Audits

_thread = threading.local()
"""``predicts_locally``: whether this thread predicts without the other members."""
_CALLS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")


class Installation:
    """The engine in this process."""

    def __init__(self, cluster: Cluster, host: Engine | one_member.OneMember) -> None:
        self._cluster = cluster
        self._host = host

    def scope(self) -> AbstractContextManager[Any]:
        """The context to run the script in: the strategy's scope for one member, none for several."""
        return nullcontext() if isinstance(self._host, Engine) else self._cluster.strategy.scope()

    @property
    def collectives(self) -> Collectives | None:
        """The members' collectives; None for one member alone."""
        return self._host.collectives if isinstance(self._host, Engine) else None

    @property
    def trained(self) -> bool:
        """Whether the script trained through fit or train_on_batch, so that something was shared."""
        return bool(self.models)

    @property
    def audits(self) -> Audits | None:
        """Audits of the steps that members shared, in all runs of this training; None if there were none."""
        return self._host.keeper.exactness.audits

    def weights_sha256(self) -> str:
        """Digest of the weights of all models trained, in order; equal on all members."""
        return model_state.weights_digest(self.models)

    def set_shares(self, shares: tuple[int, ...]) -> None:
        """New shares from the next portion of steps on. Every member must call it between the same steps."""
        if isinstance(self._host, Engine):
            self._host.set_shares(shares)

    def settle(self) -> None:
        """Call once the script has ended on every member. Raises TandemError if they diverged."""
        if isinstance(self._host, Engine):
            self._host.settle()

    def begin_training(self) -> None:
        """Call before another training: allows messages to be repeated, and renews the audits' time."""
        self._host.said.clear()
        if isinstance(self._host, Engine):
            self._host.renew_audits()

    def keep_at_stop(self) -> None:
        """Writes a checkpoint of what was trained since the last one, unless a Stop in a fit already did."""
        self._host.keeper.stopped()

    def end_checkpointing(self) -> None:
        """Ends checkpointing; afterwards no checkpoint is being written."""
        self._host.keeper.end()

    @property
    def models(self) -> list[Any]:
        """The models that the script trained through fit or train_on_batch, in order."""
        return self._host.trained


def install(cluster: Cluster, observer: Observer) -> Installation:
    """Makes Keras in this process train across the cluster. Once per process; imports TensorFlow."""
    private.check_release()
    _refuse_in_forks()
    if cluster.seed is not None:
        keras.utils.set_random_seed(cluster.seed)
    if cluster.members == 1:
        return Installation(cluster, one_member.install(observer, cluster.checkpointing))
    engine = Engine(cluster, observer)
    _replace_all(engine)
    return Installation(cluster, engine)


def _refuse_in_forks() -> None:
    """Makes calls fail in a process that the script forks: without TensorFlow's threads they would wait
    forever, as they do in plain Keras."""

    def in_child() -> None:
        for name in _CALLS:
            setattr(private.TensorFlowTrainer, name, _refusing(name))

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        # Not a TandemError: a pool sends errors to the script's process, where Tandem's modules are hidden.
        raise RuntimeError(
            f"{name} cannot run in a process that was forked from a training: it has none of TensorFlow's "
            "threads. Start it with multiprocessing.get_context('spawn') and load the saved model in it, or "
            f"call {name} in the script itself."
        )

    return refuse


def _replace_all(engine: Engine) -> None:
    trainer = private.TensorFlowTrainer
    data.SharedEpochIterator.opened = engine.opened
    private.replace(private.tf_trainer, "TFEpochIterator", _open_epochs)

    def make(kind: str) -> Any:
        name = f"{kind}_function"

        def make_function(original: Any, model: Any, force: bool = False) -> Any:
            if getattr(model, name) is None or force:
                step, is_training = getattr(model, f"{kind}_step"), kind == "train"
                loop = RareLoop if is_training and meet_every(engine.sync) is not None else Loop
                setattr(model, name, loop(model, step, engine, is_training=is_training))
            return getattr(model, name)

        return make_function

    private.replace(trainer, "make_train_function", make("train"))
    private.replace(trainer, "make_test_function", make("test"))
    private.replace(trainer, "fit", _fit(engine))
    private.replace(trainer, "evaluate", _evaluate(engine))
    private.replace(trainer, "predict", _predict(engine))
    private.replace(*private.ADDITIONAL_LOSS, in_step.add_loss)
    private.replace(
        *private.SHOULD_VALIDATE,
        lambda original, model, *args: not engine.stopping and original(model, *args),
    )
    private.replace(*private.EPOCH_LOGS, _epoch_logs(engine))
    private.replace_in_subclasses(private.BaseOptimizer, "apply", gradients.apply)
    private.replace(*private.COMPILED_LOSS, whole_loss.compiled_loss)
    private.replace(private.loss_module, "reduce_values", in_step.reduce_values)
    private.replace(private.loss_module, "apply_mask", in_step.apply_mask)
    private.replace(private.reduction_metrics.Mean, "update_state", in_step.update_mean)
    private.replace(private.reduction_metrics.Sum, "update_state", in_step.update_mean)
    private.replace(*private.SYNCHRONISED_MOMENTS, in_step.moments)
    private.replace(*private.BATCH_MOMENTS, in_step.batch_moments)
    private.replace(type(tf.function(lambda: None)), "__call__", in_step.call_function)
    private.replace(gen_logging_ops, "print_v2", in_step.print_once)
    random_numbers.replace_drawing()
    random_positions.replace_positions()
    private.replace(tf.GradientTape, "gradient", tape.gradient)
    for name in ("jacobian", "batch_jacobian"):
        private.replace(tf.GradientTape, name, tape.jacobian)
    load_files.replace_loading(engine)


def _predict_locally(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
    """Predicts in a thread of the script's own: computes all rows here, without the other members, whose
    threads may call predict in another order."""
    _thread.predicts_locally = True
    try:
        return original(model, *args, **kwargs)
    finally:
        _thread.predicts_locally = False


def _open_epochs(original: Any, *args: Any, **kwargs: Any) -> Any:
    is_local = getattr(_thread, "predicts_locally", False)
    return original(*args, **kwargs) if is_local else data.SharedEpochIterator(*args, **kwargs)


def _bound(original: Any, model: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """All arguments of a call by name, defaults included, without ``self``."""
    bound = inspect.signature(original).bind(model, *args, **kwargs)
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    arguments.pop("self")
    return arguments


def _epoch_logs(engine: Engine) -> Any:
    def logs_of(original: Any, model: Any, logs: Any) -> Any:
        if engine.fitting and engine.fit.model is model:
            engine.flush(model)
        return original(model, logs or engine.keeper.logs_before(model))

    return logs_of


def _shared_callbacks(
    engine: Engine, model: Any, call: dict[str, Any], listed: Any, **options: Any
) -> callbacks.SharedCallbacks:
    """The callbacks `listed` for a call with these arguments. ``options``: those of Keras' list, too."""
    verbose = call["verbose"]
    options = {"epochs": 1, "steps": None, "verbose": verbose, "add_progbar": verbose != 0, **options}
    return callbacks.SharedCallbacks(engine, listed, model, **options)


def _fit(engine: Engine) -> Any:
    def fit(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        private.assert_compiled(model, "fit")
        private.replace_in_subclasses(private.BaseOptimizer, "apply", gradients.apply)
        call = _bound(original, model, args, kwargs)
        heard = callback_kinds.each_batch(call["callbacks"])
        progress = engine.keeper.begin(model, callback_kinds.listed(call["callbacks"]))
        listed = call["callbacks"] if progress.outcome is None else None
        call["callbacks"] = _shared_callbacks(
            engine, model, call, listed, add_history=True, epochs=call["epochs"]
        )
        inside = engine.inside(model, "fit", heard, call["epochs"], progress, call["initial_epoch"])
        with engine.in_thread("fit"), inside:
            progress.began()
            progress.change(call)
            history = original(model, **call)
            if progress.outcome is not None:
                engine.on_trained(model)
            progress.ended(history)
        return history

    return fit


def _evaluate(engine: Engine) -> Any:
    def evaluate(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(kwargs.get("callbacks"), callbacks.SharedCallbacks):
            return original(model, *args, **kwargs)  # the validation inside a fit
        private.assert_compiled(model, "evaluate")
        call = _bound(original, model, args, kwargs)
        heard = callback_kinds.each_batch(call["callbacks"])
        call["callbacks"] = _shared_callbacks(engine, model, call, call["callbacks"])
        as_dict, call["return_dict"] = call["return_dict"], True
        call.update(call.pop("kwargs", {}))
        with engine.in_thread("evaluate"), engine.inside(model, "evaluate", heard):
            logs = original(model, **call)
        engine.on_evaluated(logs)
        return logs if as_dict else private.metrics_in_order(model, logs)

    return evaluate


def _predict(engine: Engine) -> Any:
    def predicted(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return _predict_locally(original, model, *args, **kwargs)
        call = _bound(original, model, args, kwargs)
        shared = _shared_callbacks(engine, model, call, call["callbacks"])
        heard = callback_kinds.each_batch(call["callbacks"])
        with engine.in_thread("predict"), engine.inside(model, "predict", heard):
            iterator = data.SharedEpochIterator(
                x=call["x"],
                batch_size=call["batch_size"],
                steps_per_epoch=call["steps"],
                shuffle=False,
                distribute_strategy=model.distribute_strategy,
                steps_per_execution=model.steps_per_execution,
            )
            return predict.predict(engine, model, iterator, shared)

    return predicted
