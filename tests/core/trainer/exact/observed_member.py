"""Run by test_observed: a member that is observed, changes its shares between epochs and is asked to stop."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from core.trainer.exact.interface import StepReport, StopRequested
from tests.exactness import member


class Recorder:
    """Records an observer's calls; asks to stop when told to."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.asks = False
        self.measured: list[Any] = []
        self.shares: list[tuple[int, tuple[int, ...]]] = []
        """The newest step heard, and the shares from then on."""
        self.step = 0
        self.recent: list[list[Any]] = []
        """Per step: the step, its epoch and batch, the loss of the epoch so far and since the previous
        step."""
        self.order: list[str] = []
        """The first ten reports of steps, and computations of a whole batch on one member."""
        self.speeds: list[tuple[int, int, float, float]] = []
        """Per step: its epoch and batch, the rows of a batch, and the seconds of a step."""
        self.validated: list[tuple[int, bool, bool]] = []
        """Per epoch: its number, whether it was complete, whether it had a validation value."""

    def on_fit_began(self, *args: Any) -> None:
        self.heard.append(["fit", *args])

    def step_due(self) -> bool:
        return True

    def on_step(self, report: StepReport) -> None:
        self.step = report.step
        self.note(f"step {report.step}")
        self.speeds.append((report.epoch, report.batch, report.rows, report.step_s))
        place = [report.step, report.epoch, report.batch, report.steps_in_epoch]
        self.heard.append(["step", *place, report.rows, report.logs["loss"]])
        assert report.recent is not None
        self.recent.append([*place[:3], report.logs["loss"], report.recent["loss"], sorted(report.recent)])

    def note(self, words: str) -> None:
        if len(self.order) < 10:
            self.order.append(words)

    def on_epoch_ended(self, epoch: int, logs: Any, steps: int, whole: bool) -> None:
        self.heard.append(["epoch", epoch, logs["loss"]])
        self.validated.append((epoch, whole, "val_loss" in logs))

    def on_evaluated(self, logs: Any) -> None:
        self.heard.append(["evaluated", logs["loss"]])

    def on_fit_ended(self) -> None:
        self.heard.append(["ended"])

    def on_measured(self, expectation: Any) -> None:
        self.measured.append(expectation)

    def on_shares(self, shares: tuple[int, ...]) -> None:
        self.shares.append((self.step, shares))

    def on_said(self, words: str, difference: bool = False) -> None:
        self.heard.append(["said", words])

    def should_stop(self) -> bool:
        return self.asks


def states(kind: str) -> dict[str, Any]:
    """A model with every kind of state, after 40 steps."""
    import keras
    import numpy as np

    from tests.exactness.scenarios.registry import BATCH, FEATURES, table

    keras.utils.set_random_seed(member.SEED)
    x, y = table()
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(12, activation="tanh"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(1),
        ]
    )
    adam = keras.optimizers.Adam(0.005, use_ema=True, gradient_accumulation_steps=3)
    model.compile(keras.optimizers.LossScaleOptimizer(adam), loss="mse", metrics=["mae"])
    # Portions of one step: combined statistics are rounded, and the portions' lengths follow the clock.
    each = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)
    history = model.fit(x, y, batch_size=BATCH, epochs=2, callbacks=[each], verbose=0).history
    variables = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    found = {f"{kind}/{place}": np.asarray(variable) for place, variable in enumerate(variables)}
    return {**found, **{f"{kind}/{name}": np.asarray(values) for name, values in history.items()}}


def main() -> None:
    member.begin()
    order = json.loads(sys.argv[1])
    out = Path(order["out"])
    shares = tuple(order["shares"])
    recorder = Recorder()
    installation = member.join(order, recorder) if shares else None
    import keras
    import numpy as np

    from core.trainer.exact.steps import calibration
    from core.trainer.exact.steps.engine import Engine
    from tests.exactness.scenarios.optimizers import dense
    from tests.exactness.scenarios.registry import BATCH, table

    keras.utils.set_random_seed(member.SEED)
    x, y = table()
    model = dense()
    metrics = [keras.metrics.RootMeanSquaredError(name="rmse")]
    model.compile(keras.optimizers.Adam(0.005), loss="mse", metrics=metrics, jit_compile=bool(shares))
    ends: list[str] = []

    class Change(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if installation is not None:
                installation.set_shares((10 + epoch, 30, 3)[: len(shares)])

        def on_train_end(self, logs: Any = None) -> None:
            ends.append("on_train_end")

    given_to = Engine.given_to

    def noted(engine: Engine, rank: int | None) -> Any:
        if rank is not None:
            recorder.note("whole")
        return given_to(engine, rank)

    Engine.given_to = noted  # type: ignore[method-assign, assignment]
    patient = keras.callbacks.EarlyStopping(monitor="rmse", patience=9, mode="min")
    model.fit(x, y, batch_size=BATCH, epochs=3, callbacks=[Change(), patient], verbose=0)
    Engine.given_to = given_to  # type: ignore[method-assign]
    model.evaluate(x, y, batch_size=BATCH, verbose=0)
    weights = {str(place): weight for place, weight in enumerate(model.get_weights())}
    stopped, uneven = False, list[Any]()
    if installation is not None:
        heard, recorder.heard = recorder.heard, []
        neutral = states("calibrated")
        wanted, calibration.wanted = calibration.wanted, lambda *_: False
        neutral |= states("as ever")
        recorder.speeds.clear()
        other = dense()
        other.compile(keras.optimizers.Adam(0.005), loss="mse")
        other.fit(x[BATCH // 2 :], y[BATCH // 2 :], batch_size=BATCH, epochs=6, verbose=0)
        uneven = list(recorder.speeds)
        calibration.wanted = wanted
        np.savez(out / "neutral.npz", **neutral)
        recorder.heard, recorder.validated = heard, []

        class StopInValidation(keras.callbacks.Callback):
            """Asks for a stop within the second epoch's validation, with batches left."""

            def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
                if len(recorder.validated) == 1:
                    recorder.asks = order["rank"] == len(shares) - 1

        called: list[Any] = [Change(), StopInValidation()]
        try:
            model.fit(
                *(x, y), batch_size=BATCH, epochs=500, callbacks=called, verbose=0, validation_data=(x, y)
            )
        except StopRequested:
            stopped = True
    np.savez(out / "weights.npz", **weights)
    record = {
        "heard": recorder.heard,
        "ends": ends,
        "stopped": stopped,
        "order": recorder.order,
        "validated": recorder.validated,
        "recent": recorder.recent,
        "uneven": uneven,
        "measured": [msgspec.to_builtins(expectation) for expectation in recorder.measured],
        "trained": installation is not None and installation.trained,
        "sha256": installation.weights_sha256() if installation else "",
    }
    member.leave(out, record)


if __name__ == "__main__":
    main()
