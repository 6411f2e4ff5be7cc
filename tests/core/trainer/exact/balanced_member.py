"""Run by test_balanced: a row takes the worker three times as long as the chief, until the chief slows
down."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from tests.core.trainer.exact.observed_member import Recorder
from tests.exactness import member

ROW_S = 0.001
WAIT_S = 0.001
SLOW_FROM_EPOCH = 1


def make_up(row_s: Any) -> None:
    """From here on, every measured time of own work is rows * ``row_s``, however busy the machine is.
    Everything else is real: the code, the members' messages, their conclusions."""
    import tensorflow as tf

    from core.trainer.exact.members.step_meter import StepMeter
    from core.trainer.exact.steps import calibration
    from core.trainer.exact.steps.calls import TracedCalls

    alone = calibration._alone
    rows_now: list[Any] = []

    def made_up_alone(step: Any, batches: Any, rows: int, *rest: Any) -> tuple[float, ...]:
        alone(step, batches, rows, *rest)
        cost_s = float(row_s)
        return 1.0, rows // 4, rows // 4 * cost_s, rows, rows * cost_s, rows

    def remembering(call: Any) -> Any:
        def remembered(calls: Any, traced: Any, *given: Any) -> Any:
            *_, shares, _words = given
            rows_now[:] = [shares[calls._engine.rank]]
            return call(calls, traced, *given)

        return remembered

    def made_up_times(meter: Any, before: Any, after: Any, done: Any, began_s: Any) -> tuple[Any, Any]:
        own_s = tf.cast(rows_now[0], tf.float64) * row_s
        return tuple(tf.where(began_s > 0, time, 0.0) for time in (own_s, tf.cast(WAIT_S, tf.float64)))

    mock.patch.object(calibration, "_alone", made_up_alone).start()
    for name in ("sure", "unsure", "on_batch"):
        mock.patch.object(TracedCalls, name, remembering(getattr(TracedCalls, name))).start()
    mock.patch.object(StepMeter, "times", made_up_times).start()


def main() -> None:
    member.begin()
    order = json.loads(sys.argv[1])
    out = Path(order["out"])
    shares = tuple(order["shares"])
    recorder = Recorder()
    installation = member.join(order, recorder, balance=True) if shares else None
    import keras
    import numpy as np
    import tensorflow as tf

    from tests.exactness.scenarios.registry import BATCH, FEATURES, table

    row_s = tf.Variable(ROW_S if order["rank"] == 0 else 3 * ROW_S, dtype=tf.float64)
    if shares:
        make_up(row_s)

    class Throttle(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == SLOW_FROM_EPOCH:
                row_s.assign(3 * ROW_S)

    keras.utils.set_random_seed(member.SEED)
    x, y = table()
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(12, activation="tanh"),
            keras.layers.BatchNormalization(synchronized=True),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss="mse", metrics=["mae"])
    history = model.fit(x, y, batch_size=BATCH, epochs=2, callbacks=[Throttle()], verbose=0).history
    np.savez(out / "weights.npz", **{str(place): weight for place, weight in enumerate(model.get_weights())})
    record = {
        "history": history,
        "shares": recorder.shares,
        "measured": [msgspec.to_builtins(expectation) for expectation in recorder.measured],
        "steps": [said[1:] for said in recorder.heard if said[0] == "step"],
        "sha256": installation.weights_sha256() if installation else "",
    }
    member.leave(out, record)


if __name__ == "__main__":
    main()
