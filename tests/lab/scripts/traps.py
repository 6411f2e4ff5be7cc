"""Makes files that run code when a script loads them, and proves it.

Arguments: their folder, the folder that the code makes as a mark."""

import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import keras
import numpy as np

FOLDER, MARK = Path(sys.argv[1]), Path(sys.argv[2])


class Trap:
    def __reduce__(self) -> tuple[Callable[..., None], tuple[str, int, bool]]:
        return os.makedirs, (str(MARK), 0o777, True)


def springs(load: Callable[[], object]) -> bool:
    if MARK.exists():
        MARK.rmdir()
    load()
    return MARK.exists()


def model() -> keras.Model:
    mark = str(MARK)
    layer = keras.layers.Lambda(lambda x: (__import__("os").makedirs(mark, exist_ok=True), x)[1])
    return keras.Sequential([keras.Input((4,)), layer])


table, words, old, new = (FOLDER / name for name in ("table.pkl", "words.npz", "old.h5", "new.keras"))
table.write_bytes(pickle.dumps(Trap()))
np.savez(words, y=np.array([Trap()], dtype=object))
for path in (old, new):
    model().save(path)
assert springs(lambda: pickle.loads(table.read_bytes()))
assert springs(lambda: np.load(words, allow_pickle=True)["y"])
for path in (old, new):
    assert springs(partial(keras.models.load_model, path, safe_mode=False)), path
MARK.rmdir()
