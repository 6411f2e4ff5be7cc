"""The strategy of members that meet by TensorFlow: on each one's processor, whatever it computes on.

What goes from one laptop to another goes through memory in any case. So a laptop with a graphics card and one
without are one cluster, and steps are computed where TensorFlow places them.
"""

from __future__ import annotations

import platform
import zlib
from typing import Any

import tensorflow as tf

from core.trainer.exact.members.collectives import Collectives


def multi_worker(**options: Any) -> Any:
    """Built from TF_CONFIG; waits for the other members. ``options``: MultiWorkerMirroredStrategy's own."""
    return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver(), **options)


def resolver() -> Any:
    """TF_CONFIG's cluster, in which every member offers its processor and nothing else."""
    found = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    # Told by a TFConfigClusterResolver, the strategy would take all GPUs, and on each member as many.
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        found.cluster_spec(),
        task_type=found.task_type,
        task_id=found.task_id,
        rpc_layer=found.rpc_layer or "grpc",
        num_accelerators={},
    )


def alike(collectives: Collectives) -> bool:
    """Whether all members compute on the same kind of device. Called by all of them.

    Unlike ones may round the same update differently (a graphics card fuses a product with a sum), and their
    weights drift apart by their last bits.
    """
    device = tf.DeviceSpec.from_string((tf.constant(1.0) + 1.0).device)
    kind = f"{device.device_type}:{device.device_index} {platform.machine()}"
    return len({word for (word,) in collectives.gather_words([zlib.crc32(kind.encode())])}) == 1
