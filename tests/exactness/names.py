"""The names of the scenarios, read from their source: pytest's process imports no TensorFlow."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.exactness.expected import Named
from tests.exactness.script_names import SCRIPTS

AUDITED_MODULES = (
    "audited",
    "families",
    "from_papers",
    "in_practice",
    "invented",
    "planted",
    "rarely",
    "unaudited",
)


def _found(modules: str = "*") -> dict[str, Named]:
    found = {}
    for path in sorted((Path(__file__).parent / "scenarios").glob(f"{modules}.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "scenario":
                    options = {word.arg: ast.literal_eval(word.value) for word in mark.keywords if word.arg}
                    found[node.name] = Named(**options)
    return found


SCENARIOS = {**_found(), **SCRIPTS}
EVERY = tuple(name for name, named in SCENARIOS.items() if not named.once)
CORE = tuple(name for name in EVERY if SCENARIOS[name].core)
ONCE = tuple(name for name, named in SCENARIOS.items() if named.once)
AUDITED = tuple(name for module in AUDITED_MODULES for name, named in _found(module).items() if named.once)
"""Also at (40, 16, 8): what only an audit finds depends on where rows are cut."""
NOT_FOR_ONE_ROW = ("mixed_precision",)
"""The gradient of a single row may overflow float16 although the mean of all rows does not: then members skip
a step that one process makes, as a LossScaleOptimizer does."""
