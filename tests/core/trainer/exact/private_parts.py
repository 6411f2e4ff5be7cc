"""Run by test_keras_private in a process of its own: says what of Keras' private parts is not as known."""

from __future__ import annotations

import inspect
import json

import keras
from keras.src.callbacks.callback import Callback

from core.trainer.exact.keras import keras_private as private
from core.vocabulary.errors import TandemError

SIGNATURES = {
    (private.TensorFlowTrainer, "make_train_function"): "(self, force=False)",
    (private.TensorFlowTrainer, "make_test_function"): "(self, force=False)",
    (private.TensorFlowTrainer, "_aggregate_additional_loss"): "(self, loss)",
    (private.Trainer, "_should_eval"): "(self, epoch, validation_freq)",
    (private.Trainer, "_get_metrics_result_or_logs"): "(self, logs)",
    (private.Trainer, "_symbolic_build"): "(self, iterator=None, data_batch=None)",
    (private.BaseOptimizer, "apply"): "(self, grads, trainable_variables=None)",
    (private.loss_module, "reduce_values"): "(values, sample_weight=None, reduction='sum_over_batch_size')",
    (private.loss_module, "apply_mask"): "(sample_weight, mask, dtype, reduction)",
    (private.reduction_metrics.Mean, "update_state"): "(self, values, sample_weight=None)",
    (private.reduction_metrics.Sum, "update_state"): "(self, values, sample_weight=None)",
    (private.backend_nn, "_compute_moments_sync"): "(x, axes, keepdims)",
    (private.SeedGenerator, "next"): "(self, ordered=True)",
}
SOURCES = {
    # What the engine relies on inside functions that it leaves as they are.
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
    (private.CallbackList, "__init__"): ["self._async_train", "self._configure_async_dispatch"],
}


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
    layer = keras.layers.BatchNormalization()
    layer.build((None, 2))
    if len(layer._non_trainable_variables) != 2:
        wrong.append("a layer's statistics are not in _non_trainable_variables")
    if private.tf_seeds() is not None:
        wrong.append("TensorFlow draws operations' seeds before a seed was set")
    keras.utils.set_random_seed(1)
    if not hasattr(private.tf_seeds(), "setstate"):
        wrong.append("TensorFlow's seeds of operations do not come from a random.Random")
    if private.global_seed_generator() is not None:
        wrong.append("Keras has a seed generator that nothing asked for")
    keras.random.uniform(())
    if private.global_seed_generator().state.shape != (2,):
        wrong.append("Keras' own seed generator is not where it was")
    stopping = keras.callbacks.EarlyStopping("loss", min_delta=0.1)
    stopping._set_monitor_op()
    if stopping.min_delta != -0.1:
        wrong.append("a callback that compares gives min_delta no sign any more")
    if not private.is_default(Callback().on_train_batch_end):
        wrong.append("a callback's unused hook does not count as default")
    print(json.dumps(wrong))


if __name__ == "__main__":
    main()
