"""A scenario's expectations, from its decorator (`scenarios/registry.py`)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.exactness.limits import TOLERANCE, VALUES_TOLERANCE


@dataclass(frozen=True)
class Named:
    core: bool = False
    once: bool = False
    exact: bool = True
    near: bool = False
    tolerance: float = TOLERANCE
    values_tolerance: float = VALUES_TOLERANCE
    told: str = ""
    differs: bool = False
    gathers: bool = False
