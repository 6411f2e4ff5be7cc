"""Run by test_solo: a single member on two logical devices under MirroredStrategy, observed and stopped."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

from core.trainer.exact.interface import Cluster, StopRequested
from core.trainer.exact.patch.install import install
from tests.core.trainer.exact.observed_member import Recorder

PAUSE_S = 0.5


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    recorder = Recorder()
    installation = install(Cluster(strategy, 0, (1,), seed=5), recorder)
    import keras

    from tests.exactness.scenarios.optimizers import dense
    from tests.exactness.scenarios.registry import BATCH, table

    class Slow(keras.callbacks.Callback):  # type: ignore[misc]
        """A long validation, and a long end of each epoch."""

        def on_test_begin(self, logs: Any = None) -> None:
            time.sleep(PAUSE_S)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            time.sleep(PAUSE_S)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            time.sleep(PAUSE_S)

    stopped, trained_before, losses = False, installation.trained, []
    with installation.scope():
        x, y = table()
        model = dense()
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
        losses = model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0).history["loss"]
        loss = model.evaluate(x, y, batch_size=BATCH, verbose=0)
        recorder.speeds.clear()
        few = slice(BATCH // 2, None)  # 19 whole batches and half a one
        model.fit(
            *(x[few], y[few]),
            batch_size=BATCH,
            epochs=4,
            verbose=0,
            validation_data=(x, y),
            callbacks=[Slow()],
        )
        speeds = list(recorder.speeds)
        recorder.asks = True
        try:
            model.fit(x, y, batch_size=BATCH, epochs=500, verbose=0)
        except StopRequested:
            stopped = True
    record: dict[str, Any] = {
        "heard": recorder.heard,
        "stopped": stopped,
        "trained": [trained_before, installation.trained],
        "sha256": installation.weights_sha256(),
        "replicas": model.distribute_strategy.num_replicas_in_sync,
        "losses": losses,
        "loss": loss,
        "speeds": speeds,
        "pause_s": PAUSE_S,
    }
    Path(sys.argv[1]).write_text(json.dumps(record))


if __name__ == "__main__":
    main()
