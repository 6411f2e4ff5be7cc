"""Sums and gathers of a MirroredStrategy whose replicas are two members; replica r contributes r + 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.trainer.mirrored.together import told, train_together

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


async def test_every_sum_gather_and_variable_is_that_of_all_members_and_xla_is_refused(
    tmp_path: Path,
) -> None:
    together = await train_together(tmp_path, script="sums.py", arguments=("--compiled",))
    chief, worker = (json.loads(told(trainer)[0]) for trainer in together.trainers)
    listens = [each.pop("listens") for each in (chief, worker)]
    assert [[f"{host}:{port}" for host, port in each] for each in listens] == [
        [address] for address in together.addresses
    ], "nothing listens but the exchange"
    assert chief == worker, "first values that were drawn by chance included"

    assert chief.pop("members") == 2
    for key in ("", "graph "):
        for dtype in ("int32", "int64", "float32", "float64", "bfloat16"):
            assert chief[f"{key}reduce {dtype}"] == [3, 1.5], "sum and mean"
        assert chief[f"{key}reduce rows"] == [0 + 1 + 2, 1], "of a part without rows, and one of three"
        assert chief[f"{key}gather"] == [[0, 1, 2]]
        assert chief[f"{key}gather columns"] == [[[0, 1, 1], [0, 1, 1]]]
        assert chief[f"{key}in replica"] == [1, 1.0, 0.5, [0, 1, 1]]
        assert chief[f"{key}gradient"] == [4.0], "a sum's gradient is the sum of gradients"
    written_twice = {"SUM": [6, 6], "MEAN": [3, 3], "FIRST": [2, 2]}
    for name, values in written_twice.items():
        for dtype in ("float32", "int32") if name != "MEAN" else ("float32",):
            assert chief[f"{name} {dtype}"] == [values, values], "on read, on write"

    said = together.said()
    assert "is given a list of devices (each member computes on one of its own), which is ignored" in said
    assert "is given cross_device_ops (members are added up over TLS), which is ignored" in said
    for exit in together.exits:
        assert exit.reason == "script-error" and exit.problem is not None
        assert exit.problem.code == "jit-compile"
        assert exit.problem.what.startswith("The script's step is compiled by XLA (jit_compile=True), and")
        assert exit.problem.what.endswith("(sums.py, line 116).")
        assert exit.problem.fix.startswith("Remove jit_compile=True from the tf.function")
