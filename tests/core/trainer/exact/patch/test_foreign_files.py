"""Keras' own refusals: another laptop's file reads no other file where it is loaded."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

pytestmark = pytest.mark.cluster


def dense() -> Any:
    import keras

    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])


@pytest.mark.filterwarnings("ignore:__array__ implementation")
@pytest.mark.parametrize("how", ["external bytes", "an external link", "a virtual dataset"])
def test_invariant_weights_that_lie_in_another_file_are_not_read(tmp_path: Path, how: str) -> None:
    secret, other = tmp_path / "secret", tmp_path / "other.h5"
    secret.write_bytes(bytes(32))
    with h5py.File(other, "w") as file:
        file["x"] = np.zeros((4, 2), "float32")
    weights = tmp_path / "model.weights.h5"
    dense().save_weights(weights)
    with h5py.File(weights, "r+") as file:
        found: list[str] = []
        file.visititems(
            lambda name, each: found.append(name) if getattr(each, "shape", 0) == (4, 2) else None
        )
        del file[found[0]]
        match how:
            case "external bytes":
                file.create_dataset(found[0], (4, 2), "float32", external=[(str(secret), 0, 32)])
            case "an external link":
                file[found[0]] = h5py.ExternalLink(str(other), "/x")
            case _:
                layout = h5py.VirtualLayout((4, 2), "float32")
                layout[:] = h5py.VirtualSource(str(other), "x", shape=(4, 2))
                file.create_virtual_dataset(found[0], layout)
    with pytest.raises(ValueError, match="Not allowed: H5 file with"):
        dense().load_weights(weights)


def test_invariant_a_vocabulary_elsewhere_is_not_read(tmp_path: Path) -> None:
    import keras

    words, good, harmful = tmp_path / "words", tmp_path / "good.keras", tmp_path / "harmful.keras"
    words.write_text("alpha\nbeta\n")
    lookup = keras.layers.StringLookup(vocabulary=["a"])
    keras.Sequential([keras.Input((1,), dtype="string"), lookup]).save(good)
    with zipfile.ZipFile(good) as read, zipfile.ZipFile(harmful, "w") as written:
        config = json.loads(read.read("config.json"))
        config["config"]["layers"][1]["config"]["vocabulary"] = str(words)
        for name in ("metadata.json", "model.weights.h5"):
            written.writestr(name, read.read(name))
        written.writestr("config.json", json.dumps(config))
    with pytest.raises((TypeError, ValueError), match="vocabulary file outside of the model archive"):
        keras.models.load_model(harmful, safe_mode=True)
