"""Every loss, metric, optimizer, schedule and layer of Keras is classified, and trained with as classified.

The names come from Keras' own lists: one added by a new release fails here until it is in a table.
"""

from __future__ import annotations

import pytest

from tests.exactness import keras_names
from tests.exactness.matrix import Matrix
from tests.exactness.names import ONCE, SCENARIOS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]
TABLES: dict[str, keras_names.Table] = {
    "losses": keras_names.LOSSES,
    "metrics": keras_names.METRICS,
    "optimizers": keras_names.OPTIMIZERS,
    "schedules": keras_names.SCHEDULES,
    "layers": keras_names.LAYERS,
}
OF_KERAS = [name for name in ONCE if name.startswith("keras_")]


@pytest.mark.parametrize("kind", TABLES)
def test_every_name_of_keras_is_classed(matrix: Matrix, kind: str) -> None:
    listed = set(matrix.plain("keras_namespaces")[f"value/listed/{kind}"])
    table = set(TABLES[kind])
    assert listed == table, f"not classed: {sorted(listed - table)}; gone: {sorted(table - listed)}"


@pytest.mark.complete
@pytest.mark.parametrize("kind", TABLES)
def test_every_name_is_trained_with_as_it_is_classed(matrix: Matrix, kind: str) -> None:
    """The matrix's scenarios do the training: this only checks which of them has which name."""
    found: dict[str, set[str]] = {}
    for scenario in OF_KERAS:
        expected = SCENARIOS[scenario]
        exact = "gathered" if expected.gathers else "whole" if expected.told else "exact"
        outcome = exact if expected.exact else "random"
        for name in matrix.plain(scenario).get(f"value/checked/{kind}", ()):
            found.setdefault(str(name), set()).add(outcome)
    classed = {name: {outcome} for name, outcome in TABLES[kind].items() if outcome != "not trained"}
    assert found == classed
