"""The names of the scenarios, read from their source: pytest's process imports no TensorFlow."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.exactness.expected import Named
from tests.exactness.script_names import SCRIPTS

AUDITED_MODULES = ("audited", "families", "invented", "planted", "rarely")


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
"""At (40, 16, 8), too: what only an audit finds depends on where rows are cut."""
NOT_FOR_ONE_ROW = ("mixed_precision",)
"""The gradient of a single row may be more than float16 holds, where the mean of all rows is not: one process
trains by a step that members then leave out, as a LossScaleOptimizer does."""
