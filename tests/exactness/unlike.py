"""Run by members that compute on different devices: where they compute, and the effect on rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
from tensorflow.python.eager import context

from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.registry import BATCH, table


def _inner(graph: Any) -> list[Any]:
    return [node for function in graph.library.function for node in function.node_def]


def run(rank: int, out: Path) -> None:
    """Writes ``unlike.npz``: weights at a fit's last callback and after it, and the devices of its
    products."""
    during: list[Any] = []

    class Rounds(keras.callbacks.Callback):
        """Acts as a device that rounds differently from the chief's."""

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if rank == 1:
                kernel = self.model.weights[0]
                kernel.assign(kernel + 1e-6)

        def on_train_end(self, logs: Any = None) -> None:
            during.extend(self.model.get_weights())

    x, y = table()
    model = dense()
    model.compile(keras.optimizers.SGD(0.01), loss="mse")
    context.enable_run_metadata()
    model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0, callbacks=[Rounds()])
    computed = context.export_run_metadata()
    context.disable_run_metadata()
    graphs = [graph for function in computed.function_graphs for graph in function.partition_graphs]
    nodes = [node for graph in graphs for node in (*graph.node, *_inner(graph))]
    products = {node.device for node in nodes if node.op in ("MatMul", "_FusedMatMul")}
    arrays = {f"during/{place}": weight for place, weight in enumerate(during)}
    arrays |= {f"after/{place}": weight for place, weight in enumerate(model.get_weights())}
    devices = {*products, *(weight.value.device for weight in model.weights)}
    np.savez(out / "unlike.npz", devices=np.array(sorted(devices)), **arrays)
