"""The matrix's processes, shared by all tests that check their results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.exactness.matrix import CELLS, Cell, Matrix
from tests.exactness.plain_results import PlainResults, version_key


def cell_of(item: pytest.Item) -> Cell | None:
    """The matrix cell of a test."""
    values: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    cell = values.get("name"), values.get("members")
    return cell if cell in CELLS else None


@pytest.fixture(scope="session")
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """Runs the scenarios of the cells tested in this session, starting with the first test that asks."""
    kept: pytest.Cache | None = getattr(request.config, "cache", None)
    results = PlainResults(kept.mkdir("exactness") if kept else None, version_key())
    cells = [cell for item in request.session.items if (cell := cell_of(item))]
    matrix = Matrix(cells, tmp_path_factory.mktemp("matrix"), results)
    matrix.begin()
    return matrix
