"""Run by test_balanced: a row takes the worker thrice as long as the chief, until the chief slows down."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from tests.core.trainer.exact.observed_member import Recorder
from tests.exactness import member

ROW_S = 0.001
SLOW_FROM_EPOCH = 1


def main() -> None:
    member.end_with_parent()
    order = json.loads(sys.argv[1])
    out = Path(order["out"])
    shares = tuple(order["shares"])
    recorder = Recorder()
    installation = member.join(order, recorder, balance=True) if shares else None
    import keras
    import numpy as np
    import tensorflow as tf

    from tests.exactness.scenarios.registry import BATCH, FEATURES, table

    row_s = [ROW_S if order["rank"] == 0 else 3 * ROW_S] if shares else [0.0]

    class Slow(keras.layers.Layer):
        """Takes its time for each row, and changes nothing."""

        def call(self, x: Any) -> Any:
            def nap(value: Any) -> Any:
                time.sleep(row_s[0] * len(value))
                return value

            y = tf.py_function(nap, [x], x.dtype)
            y.set_shape(x.shape)
            return x + tf.stop_gradient(y - x)

    class Throttle(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == SLOW_FROM_EPOCH:
                row_s[0] = 3 * ROW_S if shares else 0.0

    keras.utils.set_random_seed(member.SEED)
    x, y = table()
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            Slow(),
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
    (out / "record.json").write_text(json.dumps(record))
    (out / "done").write_text("")
    os._exit(0)


if __name__ == "__main__":
    main()
