"""Run by test_keras_private in its own process: reports Keras' private parts that are not as known."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from types import FunctionType

import keras
import tensorflow as tf
from keras.src.callbacks.callback import Callback
from keras.src.layers.layer import Layer

import core.trainer
from core.trainer.exact.keras import keras_private as private
from core.vocabulary.errors import TandemError

SIGNATURES = {
    (private.TensorFlowTrainer, "make_train_function"): "(self, force=False)",
    (private.TensorFlowTrainer, "make_test_function"): "(self, force=False)",
    private.ADDITIONAL_LOSS: "(self, loss)",
    private.SHOULD_VALIDATE: "(self, epoch, validation_freq)",
    private.EPOCH_LOGS: "(self, logs)",
    private.BATCH_MOMENTS: "(self, inputs, mask)",
    private.COMPILED_LOSS: "(self, y_true, y_pred, sample_weight=None)",
    private.SYNCHRONISED_MOMENTS: "(x, axes, keepdims)",
    private.DISTORTED: "(images, alpha=20.0, sigma=5.0, interpolation='bilinear', fill_mode='reflect', "
    "fill_value=0.0, seed=None, data_format=None)",
    private.SHUFFLED: "(x, axis=0, seed=None)",
    (private.Trainer, "_symbolic_build"): "(self, iterator=None, data_batch=None)",
    (private.Trainer, "_assert_compile_called"): "(self, method_name=None)",
    (private.Trainer, "_flatten_metrics_in_order"): "(self, logs)",
    (Layer, "_flatten_layers"): "(self, include_self=True, recursive=True)",
    (private.CallbackList, "_flush_futures"): "(self)",
    (private.EpochIterator, "_enumerate_iterator"): "(self)",
    (private.EpochIterator, "_interrupted_warning"): "(self)",
    (private.TFEpochIterator, "_get_iterator"): "(self)",
    (private.BaseOptimizer, "apply"): "(self, grads, trainable_variables=None)",
    (private.loss_module, "reduce_values"): "(values, sample_weight=None, reduction='sum_over_batch_size')",
    (private.loss_module, "apply_mask"): "(sample_weight, mask, dtype, reduction)",
    (private.reduction_metrics.Mean, "update_state"): "(self, values, sample_weight=None)",
    (private.reduction_metrics.Sum, "update_state"): "(self, values, sample_weight=None)",
}
SOURCES = {
    # The engine relies on these inside functions that it leaves unchanged.
    (private.TensorFlowTrainer, "fit"): [
        "TFEpochIterator(",
        "isinstance(callbacks, callbacks_module.CallbackList)",
        "for begin_step, end_step, iterator in epoch_iterator:",
        "logs = self.train_function(iterator)",
        "initial_epoch = self._initial_epoch or initial_epoch",
        "self._should_eval(",
        "_use_cached_eval_dataset=True",
        "self._get_metrics_result_or_logs(logs)",
        "self._eval_epoch_iterator = TFEpochIterator(",
        "for epoch in range(initial_epoch, epochs):",
        "epochs > 0",
    ],
    (private.TensorFlowTrainer, "evaluate"): ["TFEpochIterator(", "logs = self.test_function(iterator)"],
    (private.TensorFlowTrainer, "train_on_batch"): ["logs = self.train_function(data())"],
    (private.TensorFlowTrainer, "train_step"): ["self._loss_tracker.update_state(", "apply_gradients("],
    (private.EpochIterator, "_enumerate_iterator"): [
        "self._steps_seen",
        "self._current_iterator",
        "self.data_adapter.on_epoch_begin()",
    ],
    (private.ArrayDataAdapter, "__init__"): ["self._inputs = inputs"],
    (private.EpochIterator, "__init__"): ["self._num_batches", "self._epoch_iterator"],
    (private.TFEpochIterator, "__init__"): ["self._distributed_dataset = dataset"],
    (private.TFEpochIterator, "_get_iterator"): ["return self._distributed_dataset"],
    (private.TFEpochIterator, "__next__"): ["return next(self._epoch_iterator)"],
    (private.CallbackList, "__init__"): ["self._async_train", "self._configure_async_dispatch"],
    (private.CallbackList, "_configure_async_dispatch"): ["self._async_test", "self._async_predict"],
    (private.CallbackList, "_add_default_callbacks"): ["self._progbar = None", "self._history = None"],
    (keras.callbacks.TensorBoard, "__init__"): ["_init_profile_batch"],
    (keras.callbacks.TensorBoard, "_init_profile_batch"): [
        "self._should_trace",
        "self._is_tracing",
        "self._profiler_started",
        "self._start_batch",
        "self._stop_batch",
    ],
    (keras.callbacks.BackupAndRestore, "_load_model"): ["self.model._initial_epoch = epoch"],
    (Callback, "set_model"): ["self._model = model"],
}


def ours() -> list[type]:
    """Our subclasses of Keras' classes, outside the module that may use their private parts."""
    for module in pkgutil.walk_packages(core.trainer.__path__, "core.trainer."):
        if not module.name.endswith(("__main__", "probe")):
            importlib.import_module(module.name)
    found, left = [], [Callback, private.CallbackList, private.EpochIterator]
    while left:
        cls = left.pop()
        left += cls.__subclasses__()
        if cls.__module__.startswith("core.") and cls.__module__ != private.__name__:
            found.append(cls)
    return found


def keras_names(cls: type) -> set[str]:
    """Private names used both by the class and by its Keras base classes."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("keras.")]
    return touched(cls) & set().union(*(touched(base) | set(vars(base)) for base in bases))


def touched(cls: type) -> set[str]:
    methods = [each for each in vars(cls).values() if isinstance(each, FunctionType)]
    names = {name for method in methods for name in method.__code__.co_names}
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def main() -> None:
    wrong = []
    try:
        private.check_release()
    except TandemError as error:
        wrong.append(str(error))
    for (owner, name), known in SIGNATURES.items():
        found = str(inspect.signature(vars(owner)[name])) if name in vars(owner) else "gone"
        if found != known:
            wrong.append(f"{owner.__name__}.{name} is {found}, was {known}")
    for (owner, name), lines in SOURCES.items():
        source = inspect.getsource(inspect.unwrap(vars(owner)[name]))
        wrong += [f"{owner.__name__}.{name} has no more: {line}" for line in lines if line not in source]
    variable = tf.Variable(1.0)
    if private.variable_dtype(variable.handle) != variable.dtype:
        wrong.append("a variable's type is not in its handle's _handle_data")
    if not private.is_compiled(tf.function(tf.abs, jit_compile=True)) or private.is_compiled(
        tf.function(tf.abs)
    ):
        wrong.append("whether XLA compiles a tf.function is not in its _jit_compile")
    graph = tf.function(lambda x: tf.function(tf.abs)(x)).get_concrete_function(1.0).graph
    (call,) = [op for op in graph.get_operations() if op.type.endswith("PartitionedCall")]
    inner = private.function_graph(graph, call.get_attr("f").name)  # _get_function
    if inner is None or "Abs" not in {op.type for op in inner.get_operations()}:
        wrong.append("the graph of a function that an operation calls is not found")
    if "_class" in private.attributes(call) or "f" not in private.attributes(call):
        wrong.append("an operation's attributes are not as they were")
    wrong += [f"{cls.__name__} touches {name}" for cls in ours() for name in keras_names(cls)]
    if private.tf_seeds() is not None:
        wrong.append("TensorFlow draws operations' seeds before a seed was set")
    keras.utils.set_random_seed(1)
    if not hasattr(private.tf_seeds(), "setstate"):
        wrong.append("TensorFlow's seeds of operations do not come from a random.Random in _rng")
    if private.global_seed_generator() is not None:
        wrong.append("Keras has a seed generator that nothing asked for")
    keras.random.uniform(())
    if private.global_seed_generator().state.shape != (2,):
        wrong.append("Keras' own seed generator is not where it was")
    stopping = keras.callbacks.EarlyStopping("loss", min_delta=0.1)
    stopping._set_monitor_op()
    if stopping.min_delta != -0.1:
        wrong.append("a callback that compares gives min_delta no sign any more")
    compiled = keras.Sequential()
    compiled.compile(loss="mse", metrics=["mae"], weighted_metrics=[None])
    if private.compiled_with(compiled) != ["mse", "mae", None]:
        wrong.append("_compile_metrics has not what compile got in _user_metrics and _user_weighted_metrics")
    if private.function_of(keras.metrics.MeanMetricWrapper(abs)) is not abs:
        wrong.append("a MeanMetricWrapper has its function not in _fn")
    if not private.is_default(Callback().on_train_batch_end):
        wrong.append("a callback's unused hook does not count as default")
    print(json.dumps(wrong))


if __name__ == "__main__":
    main()
