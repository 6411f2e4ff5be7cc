"""One process of the random models: plain Keras, or a member of a cluster. Its order names kinds with
seeds."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from tests.exactness.member import Quiet, begin, join, leave

EAGERLY = "~"
"""Ends the names of models that are to run eagerly, and so round differently."""


class Telling(Quiet):
    """Records separately how a result differs."""

    def __init__(self) -> None:
        super().__init__()
        self.differences: list[str] = []

    def on_said(self, words: str, difference: bool = False) -> None:
        super().on_said(words)
        self.differences += [words] if difference else []


def main() -> None:
    begin()
    os.nice(10)
    order, observer = json.loads(sys.argv[1]), Telling()
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
        np.savez(out / f"{name}.npz", *map(np.asarray, made.model.weights))
        (out / "times.json").write_text(json.dumps(time.monotonic()))
        record[name] = {
            "what": made.words,
            "of_rows": made.of_rows,
            "words": list(observer.words),
            "differences": list(observer.differences),
        }
    leave(out, record)


if __name__ == "__main__":
    main()
