"""``python -m core.trainer.probe``: prints what TensorFlow finds here as JSON, for the doctor.

``[tensorflow version, keras version, [GPU names], seconds to import]``
"""

from __future__ import annotations

import json
import time


def probe() -> tuple[str, str, list[str], float]:
    """Raises whatever importing TensorFlow raises."""
    began_s = time.monotonic()
    import keras
    import tensorflow as tf

    seconds = time.monotonic() - began_s
    names = []
    for gpu in tf.config.list_physical_devices("GPU"):
        details = tf.config.experimental.get_device_details(gpu)
        names.append(str(details.get("device_name") or gpu.name))
    return tf.__version__, keras.__version__, names, seconds


def main() -> None:
    print(json.dumps(probe()), flush=True)


if __name__ == "__main__":
    main()
