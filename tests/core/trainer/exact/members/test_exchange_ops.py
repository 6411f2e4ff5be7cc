"""Two TensorFlow processes connected by the exchange: in loops, in conditions, and without a graph."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.exchange.members import identities, listener, numbers, rank_order_sum

pytestmark = pytest.mark.cluster

LIMIT_S = 240.0


def told(folder: Path) -> list[dict[str, Any]]:
    identities(folder, 2)
    held = [listener() for _ in range(2)]
    ports = [str(sock.getsockname()[1]) for sock in held]
    for sock in held:
        sock.close()
    module = "tests.core.trainer.exact.members.exchange_member"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", module, str(rank), *ports, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=LIMIT_S)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [json.loads(text.splitlines()[-1]) for text in said]


def test_two_processes_meet_in_graphs_and_outside_with_the_same_bits(tmp_path: Path) -> None:
    one, other = told(tmp_path)
    assert one == other
    total = rank_order_sum([numbers(rank, 40_000, 40_000) for rank in range(2)])
    assert one["loop"] == one["eager"] == hashlib.sha256(total.tobytes()).hexdigest()
    assert one["rows"] == [[19.0, 19.0]] * 3
    first = float(numbers(0, 3, 3)[0] + numbers(1, 3, 3)[0])
    assert one["total"] == pytest.approx(2 * (6 * sum(range(20)) + 20 * first), rel=1e-5)
    assert one["other branch"] == 20.0
    assert one["bfloat16"] == [2.0, 5.0]
    assert one["words"] == [[0, 7], [1, 7]]
    assert one["numbers"] == [[0.5], [1.5]]
    assert one["any"] == [True, False]
    assert one["bytes"] == ["ab", "abab"]
    assert one["chief"] == "from 0"
    assert (
        "member 0 wants numbers (sum of float32 [2]); member 1 wants numbers (sum of float32 [3])."
        in one["mismatch"]
    )
