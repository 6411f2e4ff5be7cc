"""Run by test_solo: a single member on two logical devices under MirroredStrategy, observed and stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from core.trainer.exact.interface import Cluster, StopRequested
from core.trainer.exact.patch.install import install
from tests.core.trainer.exact.observed_member import Recorder


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    recorder = Recorder()
    installation = install(Cluster(strategy, 0, (1,), seed=5), recorder)
    from tests.exactness.scenarios.optimizers import dense
    from tests.exactness.scenarios.registry import BATCH, table

    stopped, trained_before, losses = False, installation.trained, []
    with installation.scope():
        import keras

        x, y = table()
        model = dense()
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
        losses = model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0).history["loss"]
        loss = model.evaluate(x, y, batch_size=BATCH, verbose=0)
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
    }
    Path(sys.argv[1]).write_text(json.dumps(record))


if __name__ == "__main__":
    main()
