import ast
from pathlib import Path

import pytest

from tests.trouble.index import COVERED

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("trouble", COVERED)
def test_every_trouble_is_tested_where_the_index_says(trouble: str) -> None:
    assert COVERED[trouble]
    for place in COVERED[trouble]:
        path, _, name = place.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        functions = {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in functions, place
