"""TensorFlow's setup before a script that needs its runtime. Each test in its own process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.trainer.exact.keras.test_keras_private import run

pytestmark = pytest.mark.cluster
CODE = """
import json, os, sys
os.environ.pop("NO_PROXY", None)
os.environ["no_proxy"] = "intranet.example"
import tensorflow as tf
from tensorflow.python.distribute import collective_util
from tensorflow.python.eager import context
from core.trainer import cluster_hooks

def heartbeat_s(*arguments, **named):
    context.context().configure_coordination_service("standalone", *arguments, **named)
    return context.context().coordination_service.heartbeat_timeout_in_ms / 1000

told = {"before": heartbeat_s()}
cluster_hooks.over_relays(("127.77.0.1:2222", "127.77.0.2:2223"), float(sys.argv[1]))
told["proxies"] = [os.environ[name] for name in ("no_proxy", "NO_PROXY")]
told["heartbeat"] = heartbeat_s()
told["named"] = heartbeat_s("", heartbeat_timeout_in_ms=10_000)
told["register"] = context.context().coordination_service.cluster_register_timeout_in_ms
heartbeat_s("", True, 5_000)
told["registers"] = context.context().coordination_service.cluster_register_timeout_in_ms
asked = tf.distribute.experimental.CommunicationOptions(
    bytes_per_pack=7, implementation=tf.distribute.experimental.CommunicationImplementation.NCCL
)
told["sums"], told["bytes_per_pack"] = asked.implementation.value, asked.bytes_per_pack
told["default"] = collective_util.Options().implementation.value
print(json.dumps(told))
"""


def told(away_s: float) -> dict[str, Any]:
    return dict(json.loads(run(["-c", CODE, str(away_s)]).splitlines()[-1]))


@pytest.mark.parametrize(("away_s", "heartbeat_s"), [(60.0, 600.0), (600.0, 660.0), (604_800.0, 604_860.0)])
def test_over_relays_tensorflow_is_more_patient_than_the_run_and_sums_by_itself(
    away_s: float, heartbeat_s: float
) -> None:
    found = told(away_s)
    assert found["before"] == 0, "which is TensorFlow's own ten seconds"
    assert found["heartbeat"] == found["named"] == heartbeat_s
    assert (found["register"], found["registers"]) == (0, 5_000), "nothing else is changed"
    assert found["sums"] == found["default"] == "RING" and found["bytes_per_pack"] == 7


def test_over_relays_no_proxy_joins_members() -> None:
    """gRPC asks a proxy for everything not named there."""
    found = told(60.0)
    expected = "intranet.example,localhost,127.0.0.1,::1,127.77.0.1,127.77.0.2"
    assert found["proxies"] == [expected, expected]
