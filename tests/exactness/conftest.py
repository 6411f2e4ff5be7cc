"""The matrix's processes, shared by all tests that look at what they leave."""

from __future__ import annotations

from typing import Any

import pytest

from tests.exactness.matrix import Cell, Matrix
from tests.exactness.plain_results import PlainResults, version_key


def asked_for(item: pytest.Item) -> Cell | None:
    """The cell of a test of one."""
    values: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return (values["name"], values["shares"]) if values.keys() == {"name", "shares"} else None


@pytest.fixture(scope="session")
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """Runs the scenarios of the cells that are tested in this session, from the first test that asks on."""
    kept: pytest.Cache | None = getattr(request.config, "cache", None)
    results = PlainResults(kept.mkdir("exactness") if kept else None, version_key())
    cells = [cell for item in request.session.items if (cell := asked_for(item))]
    matrix = Matrix(cells, tmp_path_factory.mktemp("matrix"), results)
    matrix.begin()
    return matrix
