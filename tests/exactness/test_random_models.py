"""Random models end as in one process, or the difference is reported; for purely row-wise ones nothing is.

`make fuzz` tries 500 of tables and 150 of images, and prints how they end. A failing seed prints its model.
What shows in fewer than one step of ten, and so may fall between two audits, is counted.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exactness import processes
from tests.exactness.limits import TOLERANCE, VALUES_TOLERANCE
from tests.exactness.matrix import NO_PROGRESS_S, UNEVEN
from tests.exactness.random_member import EAGERLY

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(7200)]
FIRST = int(os.environ.get("TANDEM_FUZZ_FIRST", "1"))
MODELS = int(os.environ.get("TANDEM_FUZZ_MODELS", "40"))
MODULE = "tests.exactness.random_member"
SHORT = {"tables": 32, "images": 8}
"""Models of `make test`: scenarios of the matrix have the same parts."""
OFTEN = 0.1
"""A fault in this part of the steps must be found."""
IMAGES = 0.3
"""Models of images for each model of a table."""


def names(kind: str) -> list[str]:
    count = MODELS if kind == "tables" else round(IMAGES * MODELS)
    return [f"{kind}-{FIRST + number}" for number in range(count)]


@pytest.mark.parametrize("kind", SHORT)
@pytest.mark.parametrize("length", ["short", pytest.param("complete", marks=pytest.mark.complete)])
def test_random_models_end_as_in_one_process_or_are_reported(
    tmp_path: Path, kind: str, length: str, capsys: pytest.CaptureFixture[str]
) -> None:
    some = names(kind)[: SHORT[kind]] if length == "short" else names(kind)[SHORT[kind] :]
    (alone,) = processes.run((), some, tmp_path / "alone", NO_PROGRESS_S, module=MODULE)
    chief, worker = processes.run(UNEVEN.shares, some, tmp_path / "members", NO_PROGRESS_S, module=MODULE)
    record = json.loads((chief / "record.json").read_text())
    wrong, ends = [], Counter[str]()
    for name in some:
        (one, first, second), told = [_weights(f, name) for f in (alone, chief, worker)], record[name]
        apart = _far(one, first)
        equal = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))
        values = _values_apart(alone, chief, name)
        end = _end(told, apart, values) if equal else "members differ"
        if end == "wrong" and _is_rounding(name, one, first, tmp_path / f"eager-{name}"):
            end = "rounding"
            print(f"left out: {name}, which rounding moves as far ({told['what']})")
        ends[end] += 1
        if told["rate"] < OFTEN:
            ends["show in fewer than one step of ten"] += 1
        ends["found by audits"] += any("audit" in words for words in told["words"])
        if end not in GOOD:
            wrong.append(
                f"{name}, {end} ({told['what']}): {apart:.1e} apart, values {values}, told {told['words']}"
            )
    with capsys.disabled():
        print(
            f"\n{kind} from {some[0]}: {len(some)} models, "
            + ", ".join(f"{n} {what}" for what, n in ends.items())
        )
    assert not wrong, "\n".join(wrong)
    assert ends["found by audits"], "no audit found anything: nothing was tried"


GOOD = ("exact", "put right", "told", "a metric told", "rarely wrong", "rounding")


def _end(told: Any, apart: float, values: dict[str, float]) -> str:
    """``values``: how far the logs are apart that differ, by name."""
    of_metrics = [words for words in told["differences"] if " metric " in words]
    if told["of_rows"] and told["words"]:
        return "false alarm"
    if len(told["differences"]) > len(of_metrics):
        return "told"
    if apart > TOLERANCE:
        return "wrong" if told["rate"] >= OFTEN else "rarely wrong"
    if not all(any(repr(name) in words for words in of_metrics) for name in values):
        return "wrong metric"
    return "a metric told" if of_metrics else "put right" if told["words"] else "exact"


def _is_rounding(name: str, one: list[np.ndarray], members: list[np.ndarray], out: Path) -> bool:
    """Whether members end no farther from one of two processes that round differently than these do from each
    other."""
    (alone,) = processes.run((), [name + EAGERLY], out, NO_PROGRESS_S, module=MODULE)
    other = _weights(alone, name + EAGERLY)
    return min(_far(members, one), _far(members, other)) <= _far(one, other)


def _far(some: list[np.ndarray], others: list[np.ndarray]) -> float:
    return max(_apart(a, b) for a, b in zip(some, others, strict=True))


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """Weights that became NaN in one process must be NaN in members."""
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return float("inf")
    return float(np.abs(one - other, where=np.isfinite(one), out=np.zeros_like(one)).max())


def _weights(folder: Path, name: str) -> list[np.ndarray]:
    left = np.load(folder / f"{name}.npz")
    return [left[name] for name in left.files if not name.startswith("value/")]


def _values_apart(alone: Path, member: Path, name: str) -> dict[str, float]:
    """How far logs are apart, by name: those that differ."""
    one, other = (np.load(folder / f"{name}.npz") for folder in (alone, member))
    found = {key: _apart(one[key], other[key]) for key in one.files if key.startswith("value/")}
    return {key.removeprefix("value/"): apart for key, apart in found.items() if apart > VALUES_TOLERANCE}
