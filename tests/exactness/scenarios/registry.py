"""Scenarios: ordinary single-machine Keras code, and data for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.exactness.limits import TOLERANCE, VALUES_TOLERANCE


@dataclass
class Outcome:
    """A scenario's results: models whose weights are compared, and values (numbers, arrays) that are compared
    too."""

    models: list[Any]
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """`run(folder)` is the same for one process and for members; `folder` is each process's own."""

    name: str
    run: Callable[[Path], Outcome]


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    *,
    core: bool = False,
    once: bool = False,
    exact: bool = True,
    near: bool = False,
    tolerance: float = TOLERANCE,
    values_tolerance: float = VALUES_TOLERANCE,
    told: str = "",
    differs: bool = False,
    gathers: bool = False,
) -> Callable[[Callable[[Path], Outcome]], Callable[[Path], Outcome]]:
    """Registers a scenario under its function's name.

    `core`: runs at all four shares. `once`: runs at (48, 16) alone, in `make test` only if it is also `core`;
    scenarios for audits also run at (40, 16, 8) (names.py). `exact=False`: members must be equal, one process
    may differ; with `near=True` by no more than the tolerances. `told`: words of a message to the user; there
    must be no other message, and none at all if it is empty. `differs`: among these is one that the result
    may differ, so that the run does not end green. `gathers`: losses of one of its models have the
    predictions of all rows. The options are read from the source, so they must be literals.
    """

    def register(run: Callable[[Path], Outcome]) -> Callable[[Path], Outcome]:
        name = run.__name__
        assert name not in SCENARIOS, f"two scenarios are called {name}"
        SCENARIOS[name] = Scenario(name, run)
        return run

    return register


def of_its_own_test(run: Callable[[Path], Outcome]) -> Callable[[Path], Outcome]:
    """Registers a scenario that the matrix does not run."""
    SCENARIOS[run.__name__] = Scenario(run.__name__, run)
    return run


ROWS, BATCH, FEATURES, CLASSES = 1280, 64, 8, 3
"""20 steps of 64 rows."""


def table(rows: int = ROWS, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Features in [-1, 1] and a smooth target per row."""
    random = np.random.RandomState(seed)
    x = random.uniform(-1, 1, (rows, FEATURES)).astype("float32")
    y = np.sin(x @ random.normal(size=(FEATURES, 1))).astype("float32")
    return x, y


def classes(rows: int = ROWS, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Features and a class per row."""
    x, y = table(rows, seed)
    return x, np.digitize(y[:, 0], [-0.3, 0.3]).astype("int32")
