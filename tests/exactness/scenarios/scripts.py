"""Scripts as users write them (`tests/exactness/scripts/`), each a scenario whose results are the variables
it names."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tests.exactness.scenarios.registry import SCENARIOS, Outcome, Scenario
from tests.exactness.script_names import SCRIPTS

FOLDER = Path(__file__).parents[1] / "scripts"
_LARGEST = 100_000
"""Numbers of one value; larger arrays are data."""


def run(path: Path, folder: Path) -> Outcome:
    """Runs a script as `python script.py` does; returns its models, histories and numbers, by their names."""
    main = types.ModuleType("__main__")
    main.__dict__["__file__"] = str(path)
    before, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), main.__dict__)
    finally:
        sys.modules["__main__"] = before
    left = {name: value for name, value in sorted(vars(main).items()) if not name.startswith("_")}
    models = {id(value): value for value in left.values() if isinstance(value, keras.Model)}
    values = {name: array for name, value in left.items() for name, array in _arrays(name, value)}
    return Outcome(list(models.values()), values)


def _arrays(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(value, keras.callbacks.History):
        value = value.history
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _arrays(f"{name}/{key}", each)
        return
    if isinstance(value, int | float | np.ndarray | np.generic | Sequence) and not isinstance(
        value, str | bytes
    ):
        try:
            array = np.asarray(value)
        except ValueError:  # of unequal lengths
            return
        if array.dtype.kind in "biuf" and array.size <= _LARGEST:
            yield name, array


for script in SCRIPTS:
    SCENARIOS[script] = Scenario(script, partial(run, FOLDER / script))
