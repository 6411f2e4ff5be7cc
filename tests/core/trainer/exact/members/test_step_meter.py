"""The meter in TensorFlow, in this process; tests/core/trainer/test_session.py tests it in a cluster."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


@pytest.fixture
def meter(tf: Any) -> Any:
    from core.trainer.exact.members.step_meter import StepMeter

    return StepMeter()


@pytest.mark.parametrize("traced", [True, False])
def test_the_wait_counts_from_the_own_gradients_to_all_members(tf: Any, meter: Any, traced: bool) -> None:
    def late(value: Any) -> Any:
        time.sleep(0.05)
        return value

    def step(own: Any) -> Any:
        own = tf.py_function(late, [own], tf.float32)  # own work is not waiting
        return meter.exchange([own, None], lambda: [tf.py_function(late, [own], tf.float32), None])[0]

    step = tf.function(step) if traced else step
    began_s = time.perf_counter()
    for _ in range(4):
        step(tf.ones([2]))
    took_s = (time.perf_counter() - began_s) / 4
    waited_s = float(meter.waited_s()) / 4
    assert 0.05 <= waited_s <= took_s - 0.05
    assert meter.norm() is None


def test_the_bytes_of_a_step_are_the_mean_since_the_last_call(tf: Any, meter: Any) -> None:
    from core.trainer.exact.members.collectives import summed_bytes

    dense = [tf.TensorSpec([10, 6], tf.float32), tf.TensorSpec([12], tf.bfloat16)]
    assert summed_bytes(dense, 2) == 264
    assert summed_bytes(dense, 3) == 352  # each of three sends 4 thirds
    step = tf.function(lambda gathered: (meter.record_sent(264), meter.record_sent(gathered))[0])
    for _ in range(4):
        step(tf.constant(36, tf.int64))
    assert meter.wire_bytes(4) == 300
    assert meter.wire_bytes(5) == 0


@pytest.mark.parametrize("traced", [True, False])
def test_on_a_gpu_one_number_shows_that_the_own_gradients_are_ready(
    tf: Any, meter: Any, traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind])

    def summed(value: Any) -> Any:
        time.sleep(0.002)  # TensorFlow's clock counts microseconds: within one, a sum would take no time
        return value + 1.0

    def step(own: Any) -> Any:
        return meter.exchange([own, None], lambda: [tf.py_function(summed, [own], tf.float32), None])[0]

    step = tf.function(step) if traced else step
    assert step(tf.zeros([2, 3])).numpy().tolist() == [[1.0] * 3] * 2
    assert step(tf.zeros([])) == 1.0
    assert float(meter.waited_s()) > 0


def test_the_norm_is_that_of_all_gradients_without_their_loss_scale(tf: Any, meter: Any) -> None:
    dense = np.arange(6, dtype=np.float32).reshape(2, 3)
    sparse = tf.IndexedSlices(tf.constant([[3.0], [4.0]]), tf.constant([1, 1], tf.int64))
    step = tf.function(lambda: meter.record_norm([tf.constant(dense * 8), None], 8.0))
    step()
    assert meter.norm() == pytest.approx(np.linalg.norm(dense), rel=1e-6)
    meter._norm_at_s.assign(0.0)
    tf.function(lambda: meter.record_norm([sparse], 1.0))()
    assert meter.norm() == pytest.approx(5.0, rel=1e-6)


def test_the_norm_is_taken_now_and_then(tf: Any, meter: Any) -> None:
    value = tf.Variable(1.0)
    step = tf.function(lambda: meter.record_norm([value.read_value()], 1.0))
    step()
    meter._norm_at_s.assign(tf.timestamp() + 1000.0)  # just taken
    value.assign(2.0)
    step()
    assert meter.norm() == 1.0
    meter._norm_at_s.assign(0.0)
    step()
    assert meter.norm() == 2.0


def test_a_norm_that_is_not_finite_is_none(tf: Any, meter: Any) -> None:
    meter.record_norm([tf.constant([1.0, float("inf")])], 1.0)
    assert meter.norm() is None
    meter.record_norm([], 1.0)


def test_an_optimizers_loss_scale_is_known(tf: Any) -> None:
    import keras

    from core.trainer.exact.members.step_meter import loss_scale

    assert loss_scale(keras.optimizers.SGD()) == 1.0
    assert loss_scale(keras.optimizers.SGD(loss_scale_factor=4.0)) == 4.0
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), initial_scale=8.0)
    assert float(loss_scale(scaled)) == 8.0
    scaled.build([keras.Variable([1.0])])
    assert float(loss_scale(scaled)) == 8.0
    assert loss_scale(SimpleNamespace()) == 1.0
