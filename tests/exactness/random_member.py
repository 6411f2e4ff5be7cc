"""One process of the random models: plain Keras, or a member of a cluster. Its order names kinds with
seeds."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.exactness.member import Quiet, begin, join, leave

EAGERLY = "~"
"""Ends the names of models that are to run eagerly, and so round differently."""


def main() -> None:
    begin()
    os.nice(10)
    order, observer = json.loads(sys.argv[1]), Quiet()
    out = Path(order["out"])
    installation = join(order, observer) if order["shares"] else None
    import keras
    import numpy as np

    from tests.exactness import random_images, random_models

    trained = {"tables": random_models.trained, "images": random_images.trained}
    record = {}
    for name in order["names"]:
        print(f"{time.strftime('%X')} {name}", file=sys.stderr, flush=True)
        keras.backend.clear_session()
        observer.words.clear()
        observer.differences.clear()
        if installation:
            installation.begin_training()
        kind, seed = name.split("-")
        made = trained[kind](int(seed.removesuffix(EAGERLY)), eager=seed.endswith(EAGERLY))
        history = made.model.history.history
        logs: dict[str, Any] = {f"value/{key}": np.array(values) for key, values in history.items()}
        np.savez(out / f"{name}.npz", *map(np.asarray, made.model.weights), **logs)
        (out / "times.json").write_text(json.dumps(time.monotonic()))
        record[name] = {
            "what": made.words,
            "of_rows": made.of_rows,
            "rate": made.rate,
            "words": list(observer.words),
            "differences": list(observer.differences),
        }
    leave(out, record)


if __name__ == "__main__":
    main()
