"""On which batches gradients are checked before the first step, and what is told of an audit's findings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


@pytest.fixture
def checked(tf: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Settles how a step that cannot be computed twice is shared; returns the batches checked."""
    from core.trainer.exact.members.trace_record import TraceRecord
    from core.trainer.exact.steps import probe
    from core.trainer.exact.steps.division import Sharings
    from core.trainer.exact.steps.result import Traced

    model = SimpleNamespace(
        dtype_policy=SimpleNamespace(compute_dtype="float32"), trainable_variables=[], run_eagerly=True
    )

    def settled(batch: Any, *, cards: int = 0, fit: Any = None) -> list[Any]:
        looks: list[Any] = []

        def judged(engine: Any, traced: Any, batches: Any, weights: Any, **named: Any) -> str:
            looks.extend(batches)
            return "means"

        monkeypatch.setattr(probe, "gradients_judged", judged)
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"] * cards)
        collectives = SimpleNamespace(gather_numbers=lambda own, what: [own, own])
        engine = SimpleNamespace(
            wire="f32", members=2, draws_apart=False, collectives=collectives, innermost=fit and fit(model)
        )
        step = tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([None, 2]))
        traced = Traced(step, None, judged=True, record=TraceRecord(gradients=[tf.ones(2)]))  # type: ignore[arg-type]
        Sharings(engine, model, is_training=True).settle("kind", batch, traced, lambda: traced)  # type: ignore[arg-type]
        return looks

    return settled


def test_a_batch_with_a_none_in_it_is_checked(tf: Any, checked: Any) -> None:
    """Keras makes this of what a generator yields as (x, y, None)."""
    none = tf.experimental.Optional.empty(None)
    looks = checked((tf.ones([4, 2]), tf.ones([4]), none))
    assert [look[2] for look in looks] == [none, none]


def test_a_large_batch_is_sampled_unevenly(tf: Any, checked: Any) -> None:
    whole, thinned = checked((tf.ones([1024, 2]), tf.ones([1024])))
    assert whole[0].shape == thinned[0].shape == (256, 2)
    kept = np.mean(thinned[0], axis=1)
    assert kept[:85].mean() < 0.6 < 0.8 < kept[85:].mean()


def test_on_a_graphics_card_no_more_rows_are_checked_than_it_has_in_a_step(tf: Any, checked: Any) -> None:
    assert [len(look[0]) for look in checked((tf.ones([64, 2]), tf.ones([64])), cards=1)] == [32, 32]
    assert [len(look[0]) for look in checked((tf.ones([3, 2]), tf.ones([3])), cards=1)] == [2, 2]
    assert [len(look[0]) for look in checked((tf.ones([64, 2]), tf.ones([64])))] == [64, 64]


def test_rows_from_the_middle_are_those_of_the_models_own_fit_and_as_many(tf: Any, checked: Any) -> None:
    from core.trainer.exact.steps.data import SharedEpochIterator

    def fit(rows: int, *, of_it: bool = True) -> Any:
        iterator = SharedEpochIterator(None, np.ones([rows, 2]), np.arange(float(rows)), batch_size=4)
        return lambda model: SimpleNamespace(model=model if of_it else object(), iterator=iterator)

    batch = tf.ones([8, 2]), tf.ones([8])
    looks = checked(batch, fit=fit(40))
    assert len(looks) == 3
    assert looks[2][1].numpy().tolist() == list(range(20, 28))
    assert len(checked(batch, fit=fit(40, of_it=False))) == 2, "another model's, in a callback"
    assert len(checked(batch, fit=fit(6))) == 2, "fewer rows than the batch has"


ON = (
    "From step {} on every laptop computes each batch whole, since an audit found that gradients are of the "
    "batch as a whole there, not a mean over its rows. Such a step takes 1.9 times as long."
)
EXACT = " The result is exact, but several laptops are no faster than one."
AS_FAR = EXACT.replace("exact,", "exact, as far as the audits before it can tell,")
BEFORE = "Some of the steps before the training was resumed were"
MAY_DIFFER = " not audited: the result may differ from that of one laptop."


@pytest.mark.parametrize(
    ("confirmed", "certain", "again", "known", "before", "words", "back_to"),
    [
        (39, 39, 0, False, False, ON.format(140) + EXACT, None),
        (39, 20, 19, False, False, ON.format(121) + EXACT, None),
        (39, 20, 0, True, True, ON.format(140) + AS_FAR, None),
        (39, 39, 0, False, True, f"{ON.format(140)} {BEFORE}{MAY_DIFFER}", None),
        (39, 20, 0, False, False, f"{ON.format(140)} Some of the 39 steps before it were{MAY_DIFFER}", 120),
        (32, 20, 0, False, True, f"{ON.format(140)} Steps 133 to 139 were{MAY_DIFFER}", 132),
        (38, 38, 0, False, False, f"{ON.format(140)} Step 139 was{MAY_DIFFER}", 138),
    ],
)
def test_what_an_audit_found_is_told_with_its_cost_and_with_the_steps_that_may_be_wrong(
    confirmed: int, certain: int, again: int, known: bool, before: bool, words: str, back_to: int | None
) -> None:
    """The 40th step of a trace, the training's 140th, is wrong. ``before``: it was resumed, and steps before
    that were not audited."""
    from core.trainer.exact.members.trace_record import TraceRecord
    from core.trainer.exact.steps.audited_values import Discrepancy
    from core.trainer.exact.steps.course import Course
    from core.trainer.exact.steps.division import Sharings

    said: dict[str, bool] = {}
    engine = SimpleNamespace(
        whole=set(),
        innermost=SimpleNamespace(
            model="the model", progress=SimpleNamespace(unaudited="shared" if before else "")
        ),
        say_once=lambda words, difference=False: said.update({words: difference}),
    )
    at: dict[str, Any] = {
        "confirmed_at": 100 + confirmed,
        "certain_at": 100 + certain,
        "is_known_since": known,
    }
    course = Course(steps=39, confirmed=confirmed, certain=certain, slower=1.94, **at)
    traced: Any = SimpleNamespace(course=course, record=TraceRecord())
    sharings = Sharings(engine, "the model", is_training=True)  # type: ignore[arg-type]
    found = [Discrepancy("gradients", "gradient 0")]
    assert sharings.report_findings("kind", traced, found, 140, again=again) == back_to
    assert said == {words: "may differ" in words}
    assert sharings.of("kind").whole and engine.whole == {"the model"}


def test_own_code_is_found_in_wrappers_of_keras_and_in_every_function_of_a_layer(tf: Any) -> None:
    import keras

    from core.trainer.exact.steps.division import _own_code

    def own(*values: Any) -> Any:
        return keras.ops.mean(values[-1])

    def found(layer: Any = None, **compiled: Any) -> str:
        model = keras.Sequential([keras.Input((4, 3)), layer or keras.layers.LSTM(2)])
        model.compile(**{"loss": "mse", **compiled})
        return _own_code(model)

    assert found() == ""
    assert found(keras.layers.Dense(2, "tanh", kernel_regularizer="l2"), metrics=["mae"]) == ""
    assert found(metrics=[keras.metrics.MeanMetricWrapper(own)]) == "a loss or metric of the script"
    assert found(loss=keras.losses.MeanSquaredError(), metrics=[own]) == "a loss or metric of the script"
    assert found(keras.layers.LSTM(2, recurrent_activation=own, name="gates")).startswith("the layer ")
    assert found(keras.layers.Dense(2, kernel_regularizer=own, name="dense")) == "the layer dense"
