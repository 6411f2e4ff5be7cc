"""Everything that Keras lists for training: names for the tables of `keras_names.py`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import keras
import numpy as np

from tests.exactness.scenarios.registry import Outcome, scenario

_MAKERS = {"deserialize", "get", "serialize"}


def listed(namespace: ModuleType, *, functions: bool) -> list[str]:
    """Public classes by their own names; functions as well, if wanted."""
    found = {}
    for name in dir(namespace):
        value = getattr(namespace, name)
        is_class, is_function = isinstance(value, type), callable(value) and functions
        if not name.startswith("_") and name not in _MAKERS and (is_class or is_function):
            is_alias = value.__name__ != name and hasattr(namespace, value.__name__)
            found[value.__name__ if is_alias else name] = value
    return sorted(found)


@scenario(once=True, core=True)
def keras_namespaces(folder: Path) -> Outcome:
    names = {
        "losses": listed(keras.losses, functions=True),
        "metrics": listed(keras.metrics, functions=True),
        "optimizers": listed(keras.optimizers, functions=False),
        "schedules": listed(keras.optimizers.schedules, functions=False),
        "layers": listed(keras.layers, functions=False),
    }
    return Outcome([], {f"listed/{kind}": np.array(each) for kind, each in names.items()})
